// trace_file.c: the trace file and what threads have collected for it.
//
// Locks are taken in this order: `files`, a buffer's, `output`. A buffer's own lock is contended only when the file is completed.
#include "core/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/write.h"
#include "core/check.h"
#include "core/log.h"
#include "core/registry.h"

#define FLUSH_NS UINT64_C(200000000)
#define PATH_BYTES 4096

enum {
  MAX_DEPTH = 8,  // a launch, its node, and operations of hooks that run inside
  MAX_RECORDS = 256,
};

// What one thread has collected. Never freed: a later thread takes it over.
typedef struct buffer {
  vt__exit_guard guard;  // first, see thread_ends()
  struct buffer *next;
  struct buffer *next_idle;
  pthread_mutex_t mutex;  // guards what follows
  uint64_t session;       // that the rest belongs to
  uint64_t flushed_ns;
  uint32_t depth;  // of operations that run, also those beyond MAX_DEPTH
  uint32_t count;
  uint64_t begins[MAX_DEPTH];
  vt__trace_record records[MAX_RECORDS];
} buffer;

_Static_assert(sizeof(buffer) <= 40 << 10, "trace.h names this size");

static struct {
  pthread_mutex_t mutex;  // held while a file is begun or completed
  buffer *all;
  buffer *idle;
  uint64_t sessions;  // begun so far
  bool exit_watched;
  char path[PATH_BYTES];
} files = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct {
  pthread_mutex_t mutex;
  bool logged;  // the failure to write
  vt__trace_out out;
} output = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Atomic uint64_t session;  // the number of the open file; 0: there is none
static _Atomic uint64_t missing;  // operations that found no place
static _Thread_local buffer *own;

static uint64_t current_session(void) {
  // relaxed: whoever completes a file stores 0 and then takes the lock of every buffer, which the reader holds.
  return atomic_load_explicit(&session, memory_order_relaxed);
}

// Writes what a buffer holds. Answers the errno of a write that failed, the first time.
static int flush_locked(buffer *from) {
  pthread_mutex_lock(&output.mutex);
  for (uint32_t i = 0; i < from->count; i++) {
    vt__trace_text_add(&output.out, &from->records[i]);
  }
  vt__trace_text_flush(&output.out);
  int error = output.logged ? 0 : output.out.error;
  output.logged |= error != 0;
  pthread_mutex_unlock(&output.mutex);
  from->count = 0;
  return error;
}

static void log_failure(int error) {
  if (error != 0) {
    vt__log(VT_LOG_ERROR, "writing the trace file failed (errno %d): it ends there", error);
  }
}

static bool is_forked(void) {
  // relaxed: see vt__check_usable().
  return atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0;
}

static void thread_ends(vt__exit_guard *guard) {
  buffer *mine = (buffer *)guard;
  own = NULL;
  if (is_forked()) {
    return;
  }
  pthread_mutex_lock(&mine->mutex);
  int error = mine->session != 0 && mine->session == current_session() ? flush_locked(mine) : 0;
  mine->depth = 0;
  pthread_mutex_unlock(&mine->mutex);
  pthread_mutex_lock(&files.mutex);
  mine->next_idle = files.idle;
  files.idle = mine;
  pthread_mutex_unlock(&files.mutex);
  log_failure(error);
}

static buffer *new_buffer_locked(void) {
  buffer *made = vt__calloc(1, sizeof(*made));
  if (made != NULL) {
    pthread_mutex_init(&made->mutex, NULL);
    made->guard.on_thread_end = thread_ends;
    made->next = files.all;
    files.all = made;
  }
  return made;
}

static buffer *own_buffer(void) {
  if (VT_LIKELY(own != NULL)) {
    return own;
  }
  pthread_mutex_lock(&files.mutex);
  own = files.idle;
  if (own != NULL) {
    files.idle = own->next_idle;
  } else {
    own = new_buffer_locked();
  }
  pthread_mutex_unlock(&files.mutex);
  if (own != NULL) {
    vt__exit_guard_push(&own->guard);
  }
  return own;
}

static void note_missing(void) {
  // relaxed: a count.
  atomic_fetch_add_explicit(&missing, 1, memory_order_relaxed);
}

// Whoever completes a file empties all buffers before another one begins; until then the contents are his.
static bool enter_session_locked(buffer *mine) {
  uint64_t current = current_session();
  if (current != 0 && mine->session != current) {
    mine->session = current;
    mine->depth = 0;
    mine->count = 0;
    mine->flushed_ns = vt__now_ns();
  }
  return current != 0;
}

static void take_begin(buffer *mine) {
  pthread_mutex_lock(&mine->mutex);
  if (enter_session_locked(mine) && mine->depth++ < MAX_DEPTH) {
    mine->begins[mine->depth - 1] = vt__now_ns();
  }
  pthread_mutex_unlock(&mine->mutex);
}

static int take_end_locked(buffer *mine, const vt_trace_event *event, uint64_t now) {
  if (!enter_session_locked(mine) || mine->depth == 0) {
    return 0;  // it began before the file
  }
  if (--mine->depth >= MAX_DEPTH) {
    note_missing();
    return 0;
  }
  vt__trace_record *record = &mine->records[mine->count++];
  *record = (vt__trace_record){.begin_ns = mine->begins[mine->depth], .end_ns = now, .event = *event};
  memcpy(record->queue_name, event->queue_name, strnlen(event->queue_name, sizeof(record->queue_name) - 1));
  record->event.queue_name = NULL;
  if (mine->count < MAX_RECORDS && now - mine->flushed_ns < FLUSH_NS) {
    return 0;
  }
  mine->flushed_ns = now;
  return flush_locked(mine);
}

static void take_end(buffer *mine, const vt_trace_event *event) {
  uint64_t now = vt__now_ns();
  pthread_mutex_lock(&mine->mutex);
  int error = take_end_locked(mine, event, now);
  pthread_mutex_unlock(&mine->mutex);
  log_failure(error);
}

void vt__trace_file_take(const vt_trace_event *event) {
  buffer *mine = is_forked() ? NULL : own_buffer();
  if (mine == NULL) {
    // At its end there may be a buffer again, which knows nothing of it.
    if (event->is_end == 0) {
      note_missing();
    }
  } else if (event->is_end == 0) {
    take_begin(mine);
  } else {
    take_end(mine, event);
  }
}

// Puts the process id in place of "%p". False if the result is too long.
static bool expand_path(const char *path, char *out, size_t capacity) {
  size_t used = 0;
  for (const char *p = path; *p != 0 && used < capacity; p++) {
    if (p[0] == '%' && p[1] == 'p') {
      int length = snprintf(out + used, capacity - used, "%d", (int)getpid());
      used += length > 0 ? (size_t)length : 0;
      p++;
    } else {
      out[used++] = *p;
    }
  }
  if (used >= capacity) {
    return false;
  }
  out[used] = 0;
  return true;
}

static vt_status fail_open(const char *function, const char *path, int error) {
  return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_ERRNO, error, function,
                      "the trace file '%s' can't be written (errno %d)", path, error);
}

// Two processes with one path would spoil each other's file. Where a file system has no locks, they may.
static vt_status claim(int fd, const char *path, const char *function) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    return VT_OK;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return vt_error_set(VT_ERR_ALREADY_EXISTS, VT_DOMAIN_VT, 0, function,
                        "another process is writing the trace file '%s'; %%p in the path stands for the process id", path);
  }
  return ftruncate(fd, 0) == 0 ? VT_OK : fail_open(function, path, errno);
}

static vt_status open_output(const char *path, const char *function) {
  // Without a reader, a named pipe is an error and no wait.
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (fd < 0) {
    return fail_open(function, path, errno);
  }
  vt_status status = claim(fd, path, function);
  if (status == VT_OK) {
    pthread_mutex_lock(&output.mutex);
    output.logged = false;
    vt__trace_text_begin(&output.out, fd);
    status = output.out.error == 0 ? VT_OK : fail_open(function, path, output.out.error);
    pthread_mutex_unlock(&output.mutex);
  }
  if (status != VT_OK) {
    (void)close(fd);
  }
  return status;
}

static void at_exit(void);

static vt_status begin_locked(const char *path, const char *function) {
  if (current_session() != 0) {
    return vt_error_set(VT_ERR_ALREADY_EXISTS, VT_DOMAIN_VT, 0, function, "the trace file '%s' is being written", files.path);
  }
  if (!expand_path(path, files.path, sizeof(files.path))) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "the path is longer than %d bytes", PATH_BYTES - 1);
  }
  VT_TRY(open_output(files.path, function));
  if (!files.exit_watched) {
    files.exit_watched = true;
    (void)atexit(at_exit);  // without it the file lacks its closing bracket, no more
  }
  // relaxed, both: see current_session().
  atomic_store_explicit(&missing, 0, memory_order_relaxed);
  atomic_store_explicit(&session, ++files.sessions, memory_order_relaxed);
  vt__trace_set_file(true);
  return VT_OK;
}

static vt_status begin(const char *path, const char *function) {
  int cancel = vt__cancel_off();
  pthread_mutex_lock(&files.mutex);
  vt_status status = begin_locked(path, function);
  pthread_mutex_unlock(&files.mutex);
  vt__cancel_restore(cancel);
  return status;
}

vt_status vt_trace_file_begin(const char *path) {
  VT_TRY(vt__check_usable(__func__));
  VT_CHECK_ARG(path != NULL && path[0] != 0, "path is %s", path == NULL ? "NULL" : "empty");
  VT_TRY(vt__runtime_init(__func__));
  return begin(path, __func__);
}

void vt__trace_file_init(void) {
  const char *path = secure_getenv("VT_TRACE");  // a program with more rights than its user writes no file of his choice
  if (path != NULL && path[0] != 0 && begin(path, "VT_TRACE") != VT_OK) {
    vt__log(VT_LOG_ERROR, "VT_TRACE: %s", vt_last_error()->message);
  }
}

// Answers the errno of a write that has failed.
static int complete_locked(void) {
  uint64_t ended = current_session();
  vt__trace_set_file(false);
  // relaxed: see current_session().
  atomic_store_explicit(&session, 0, memory_order_relaxed);
  for (buffer *each = files.all; each != NULL; each = each->next) {
    pthread_mutex_lock(&each->mutex);
    if (each->session == ended) {
      (void)flush_locked(each);
    }
    each->session = 0;
    pthread_mutex_unlock(&each->mutex);
  }
  pthread_mutex_lock(&output.mutex);
  vt__trace_out *out = &output.out;
  vt__trace_text_end(out);
  (void)flock(out->fd, LOCK_UN);  // which a forked child would keep
  int closed = close(out->fd) == 0 ? 0 : errno;
  int error = out->error != 0 ? out->error : closed;
  pthread_mutex_unlock(&output.mutex);
  return error;
}

static vt_status complete(const char *function) {
  if (current_session() == 0) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function, "no trace file is being written");
  }
  int error = complete_locked();
  // relaxed: a count.
  uint64_t lost = atomic_load_explicit(&missing, memory_order_relaxed);
  if (error != 0) {
    return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_ERRNO, error, function,
                        "writing the trace file '%s' failed (errno %d): it ends there", files.path, error);
  }
  if (lost != 0) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, function, "%llu operations are missing in the trace file '%s'",
                        (unsigned long long)lost, files.path);
  }
  return VT_OK;
}

vt_status vt_trace_file_end(void) {
  VT_TRY(vt__check_usable(__func__));
  int cancel = vt__cancel_off();
  pthread_mutex_lock(&files.mutex);
  vt_status status = complete(__func__);
  pthread_mutex_unlock(&files.mutex);
  vt__cancel_restore(cancel);
  return status;
}

// A forked child has its parent's file open, and must leave it alone.
static void at_exit(void) {
  if (is_forked()) {
    return;
  }
  pthread_mutex_lock(&files.mutex);
  bool is_open = current_session() != 0;
  vt_status status = is_open ? complete("VT_TRACE") : VT_OK;
  pthread_mutex_unlock(&files.mutex);
  if (status != VT_OK) {
    vt__log(VT_LOG_ERROR, "%s", vt_last_error()->message);
  }
}
