// loader.c: a program that knows nothing of the library, loads an engine that uses it, and ends in a given way.
//
//   vt_loader SESSION leave WAY PLACE   ends by WAY (return, exit, _exit, quick_exit, elsewhere) while everything is in use. PLACE
//   says
//                                       where it is used once more and given back: nowhere, before, behind (the library's first
//                                       use, as atexit counts), static (as a C++ object), library (its destructor)
//   vt_loader SESSION host              compares what belongs to the host before and after loading and each part
//   vt_loader SESSION race              first use from many threads
//   vt_loader SESSION first N           call number N is the first one
//   vt_loader SESSION again             loads, uses and closes it many times
//
// Exit code 7 where all went well, else there is a message. The end of a `leave` says on stdout what it did.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

#define RIGHT 7
#define WRONG 99

static void *library;
static const char *path;

static void open_library(void) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(WRONG);
  }
}

// ISO C has no cast from an object to a function.
static void find(const char *name, void *function, size_t bytes) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s isn't exported\n", name);
    _exit(WRONG);
  }
  memcpy(function, &symbol, bytes);
}

static void must(const char *name, const char *problem) {
  if (problem != NULL) {
    fprintf(stderr, "%s: %s\n", name, problem);
    _exit(WRONG);
  }
}

static void call(const char *name) {
  vt_session_fn *fn;
  find(name, &fn, sizeof(fn));
  must(name, fn());
}

// The ways to leave.

static void use_late(void) {
  static const char text[] = "used at the end\n";
  call("vt_session_use");
  if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0) {
    _exit(WRONG);
  }
}

static void use_late_static(void *unused) {
  (void)unused;
  use_late();
}

// What a C++ compiler calls for the destructor of a static object.
extern int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

static void *exit_elsewhere(void *unused) {
  (void)unused;
  nanosleep(&(struct timespec){0, 5000000}, NULL);
  exit(RIGHT);
}

static int leave(const char *way, const char *place) {
  int quick = strcmp(way, "quick_exit") == 0;
  if (strcmp(place, "before") == 0) {
    (void)(quick ? at_quick_exit(use_late) : atexit(use_late));
  }
  call("vt_session_begin");
  if (strcmp(place, "behind") == 0) {
    (void)(quick ? at_quick_exit(use_late) : atexit(use_late));
  } else if (strcmp(place, "static") == 0) {
    __cxa_atexit(use_late_static, NULL, NULL);
  } else if (strcmp(place, "library") == 0) {
    vt_session_at_end_fn *at_end;
    find("vt_session_at_end", &at_end, sizeof(at_end));
    at_end(use_late);
  }
  if (strcmp(way, "exit") == 0) {
    exit(RIGHT);
  } else if (strcmp(way, "_exit") == 0) {
    _exit(RIGHT);
  } else if (quick) {
    quick_exit(RIGHT);
  } else if (strcmp(way, "elsewhere") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_elsewhere, NULL) == 0) {
      call("vt_session_block");
      for (;;) {
        pause();
      }
    }
    return WRONG;
  }
  return RIGHT;
}

// The host.

typedef struct host_state {
  cpu_set_t cpus;
  sigset_t blocked;
  struct sigaction actions[65];
} host_state;

static void take_state(host_state *state) {
  memset(state, 0, sizeof(*state));
  sched_getaffinity(0, sizeof(state->cpus), &state->cpus);
  pthread_sigmask(SIG_SETMASK, NULL, &state->blocked);
  for (int number = 1; number <= 64; number++) {
    (void)sigaction(number, NULL, &state->actions[number]);
  }
}

static void compare_state(const host_state *before, const char *what) {
  host_state now;
  take_state(&now);
  int same = CPU_EQUAL(&before->cpus, &now.cpus);
  for (int number = 1; number <= 64; number++) {
    same &= sigismember(&before->blocked, number) == sigismember(&now.blocked, number);
    same &= before->actions[number].sa_handler == now.actions[number].sa_handler;
    same &= before->actions[number].sa_flags == now.actions[number].sa_flags;
  }
  must(what, same ? NULL : "the CPU mask, a signal handler or the signal mask has changed");
}

// On one CPU, as in a narrow cpuset. The last one: a library that binds its host tends to take the first.
static void narrow(void) {
  cpu_set_t cpus;
  size_t cpu = CPU_SETSIZE - 1;
  sched_getaffinity(0, sizeof(cpus), &cpus);
  while (cpu > 0 && !CPU_ISSET(cpu, &cpus)) {
    cpu--;
  }
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int guest(void) {
  static const char *const parts[] = {"vt_session_enumerate", "vt_session_meet", "vt_session_begin", "vt_session_use"};
  host_state before;
  narrow();
  take_state(&before);
  open_library();
  compare_state(&before, "loading");
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    call(parts[i]);
    compare_state(&before, parts[i]);
  }
  return RIGHT;
}

static int again(void) {
  for (int i = 0; i < 20; i++) {
    open_library();
    call("vt_session_enumerate");
    call("vt_session_begin");
    if (i % 2 == 0) {
      call("vt_session_use");
    }
    dlclose(library);
  }
  // Time for threads that are still there.
  nanosleep(&(struct timespec){0, 50000000}, NULL);
  return RIGHT;
}

static int first(int n) {
  vt_session_first_fn *fn;
  find("vt_session_first", &fn, sizeof(fn));
  const char *problem = fn(n);
  if (problem != NULL && strcmp(problem, "no such call") == 0) {
    return RIGHT + 1;
  }
  must("the first call", problem);
  return RIGHT;
}

int main(int argc, char **argv) {
  const char *what = argc > 2 ? argv[2] : "";
  path = argc > 1 ? argv[1] : "";
  alarm(50);  // a hang ends
  if (strcmp(what, "host") == 0) {
    return guest();
  } else if (strcmp(what, "again") == 0) {
    return again();
  }
  open_library();
  if (strcmp(what, "leave") == 0 && argc == 5) {
    return leave(argv[3], argv[4]);
  } else if (strcmp(what, "race") == 0) {
    call("vt_session_race");
    return RIGHT;
  } else if (strcmp(what, "first") == 0 && argc == 4) {
    return first(atoi(argv[3]));
  }
  fprintf(stderr, "see the head of loader.c\n");
  return WRONG;
}
