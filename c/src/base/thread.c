// thread.c: see thread.h.
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/macros.h"

_Thread_local int32_t vt__callback_depth;
_Atomic uint32_t vt__forked;
_Thread_local char vt__thread_mark;
_Thread_local vt__thread_grant vt__thread_granted;

typedef struct start {
  vt__thread_options options;
  char name[16];  // the kernel keeps 15 bytes
  void (*fn)(void *arg);
  void *arg;
} start;

// Binds this thread to those CPUs of `mask` that the process may use, and answers which these are. Where there are none, which is
// refused, it stays as it is. What the starting thread is bound to doesn't count: an engine binds that one to a CPU of its own.
static uint64_t bind_to(uint64_t mask) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t cpu = 0; cpu < 64; cpu++) {
    if ((mask >> cpu & 1) != 0) {
      CPU_SET(cpu, &set);
    }
  }
  if (sched_setaffinity(0, sizeof(set), &set) != 0 || sched_getaffinity(0, sizeof(set), &set) != 0) {
    return 0;
  }
  uint64_t granted = 0;
  for (size_t cpu = 0; cpu < 64; cpu++) {
    granted |= CPU_ISSET(cpu, &set) ? UINT64_C(1) << cpu : 0;
  }
  return granted;
}

static void apply(const start *begin) {
  const vt__thread_options *options = &begin->options;
  (void)prctl(PR_SET_NAME, begin->name);
  vt__thread_granted.cpu_mask = options->cpu_mask == 0 ? 0 : bind_to(options->cpu_mask);
  vt__thread_granted.priority =
      options->priority == 0 || setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), options->priority) == 0;
}

static void *thread_main(void *arg) {
  start begin = *(start *)arg;
  vt__free(arg);
  apply(&begin);
  begin.fn(begin.arg);
  return NULL;
}

// Signals belong to the program's own threads: a thread of ours starts, and stays, with all of them blocked.
static int create_detached(start *begin) {
  pthread_attr_t attr;
  sigset_t all;
  sigset_t before;
  pthread_t thread;
  int error = pthread_attr_init(&attr);
  if (error != 0) {
    return error;
  }
  (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(&thread, &attr, thread_main, begin);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return error;
}

int vt__thread_start(const vt__thread_options *options, void (*fn)(void *arg), void *arg) {
  start *begin = vt__calloc(1, sizeof(*begin));
  if (begin == NULL) {
    return ENOMEM;
  }
  begin->options = *options;
  for (size_t i = 0; options->name != NULL && options->name[i] != 0 && i < sizeof(begin->name) - 1; i++) {
    begin->name[i] = options->name[i];
  }
  begin->fn = fn;
  begin->arg = arg;
  int error = create_detached(begin);
  if (error != 0) {
    vt__free(begin);
  }
  return error;
}

static pthread_key_t guard_key;
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;
static bool guard_key_made;
static _Thread_local vt__exit_guard *guards;
static _Thread_local bool guard_armed;

// Runs at the end of a thread that has pushed a guard once. Thread-local storage is still there.
static void run_guards(void *armed) {
  (void)armed;
  while (guards != NULL) {
    vt__exit_guard *guard = guards;
    guards = guard->next;
    guard->on_thread_end(guard);
  }
}

static void make_guard_key(void) {
  guard_key_made = pthread_key_create(&guard_key, run_guards) == 0;
}

static void arm(void) {
  pthread_once(&guard_once, make_guard_key);
  // Without a key, a thread that ends inside an operation isn't noticed; its peers still have their deadline.
  guard_armed = guard_key_made && pthread_setspecific(guard_key, &guard_key) == 0;
}

void vt__exit_guard_push(vt__exit_guard *guard) {
  if (VT_UNLIKELY(!guard_armed)) {
    arm();
  }
  guard->next = guards;
  guards = guard;
}

void vt__exit_guard_pop(vt__exit_guard *guard) {
  vt__exit_guard **link = &guards;
  while (*link != guard) {
    link = &(*link)->next;
  }
  *link = guard->next;
}

static void note_fork(void) {
  // relaxed: the child has one thread, this one.
  atomic_store_explicit(&vt__forked, 1, memory_order_relaxed);
}

bool vt__fork_watch(void) {
  static bool installed;
  installed = installed || pthread_atfork(NULL, NULL, note_fork) == 0;
  return installed;
}
