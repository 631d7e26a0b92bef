// write.c: see write.h.
#include "base/write.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { READER_MS = 1000 };

int vt__cancel_off(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

void vt__cancel_restore(int before) {
  (void)pthread_setcancelstate(before, NULL);
}

static int write_or_wait(int fd, const char *text, size_t bytes) {
  size_t written = 0;
  while (written < bytes) {
    ssize_t taken = write(fd, text + written, bytes - written);
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    if (taken >= 0) {
      written += (size_t)taken;
    } else if (errno == EAGAIN && poll(&room, 1, READER_MS) == 0) {
      return EAGAIN;
    } else if (errno != EAGAIN && errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Takes the signal that a failed write has sent to this thread, which has it blocked, unless one was pending before.
static void take_signal(int error, const sigset_t *pending) {
  int number = error == EPIPE ? SIGPIPE : SIGXFSZ;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  if (sigismember(pending, number) == 0) {
    (void)sigtimedwait(&one, NULL, &(struct timespec){0});
  }
}

int vt__write_all(int fd, const char *text, size_t bytes) {
  sigset_t raised;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&raised);
  sigaddset(&raised, SIGPIPE);
  sigaddset(&raised, SIGXFSZ);
  int cancel = vt__cancel_off();
  (void)pthread_sigmask(SIG_BLOCK, &raised, &before);
  (void)sigpending(&pending);
  int error = write_or_wait(fd, text, bytes);
  if (error == EPIPE || error == EFBIG) {
    take_signal(error, &pending);
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  vt__cancel_restore(cancel);
  return error;
}
