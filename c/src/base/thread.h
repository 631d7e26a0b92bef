// thread.h: the library's own threads, and the end of everybody's.
#ifndef VT_BASE_THREAD_H
#define VT_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// How a thread of ours should run. Everything but the function is best effort.
typedef struct vt__thread_options {
  const char *name;
  uint64_t cpu_mask;  // 0 = inherit
  int32_t priority;   // nice value; 0 = inherit
} vt__thread_options;

// What the running thread of ours got of its options: the CPUs of its mask that it may use (0: it runs where it was started), and
// whether it has its priority.
typedef struct vt__thread_grant {
  uint64_t cpu_mask;
  bool priority;
} vt__thread_grant;

extern _Thread_local vt__thread_grant vt__thread_granted;

// Starts a detached thread with all signals blocked. Answers 0 or an errno.
int vt__thread_start(const vt__thread_options *options, void (*fn)(void *arg), void *arg);

// Something to be undone if the thread ends while it is in force. Lives on the thread's stack or in an object that outlives it.
typedef struct vt__exit_guard {
  void (*on_thread_end)(struct vt__exit_guard *guard);
  struct vt__exit_guard *next;
} vt__exit_guard;

// Puts a guard in force on this thread, and takes it out of force.
void vt__exit_guard_push(vt__exit_guard *guard);
void vt__exit_guard_pop(vt__exit_guard *guard);

// An address that no other living thread has.
extern _Thread_local char vt__thread_mark;
static inline const void *vt__thread_token(void) {
  return &vt__thread_mark;
}

// Above 0 while this thread runs a callback of the user, from which the runtime may not be called.
extern _Thread_local int32_t vt__callback_depth;

// Set in a forked child: the threads of the parent do not exist there.
extern _Atomic uint32_t vt__forked;

// Installs the fork handler, once; not for several threads at a time. False if there is no memory.
bool vt__fork_watch(void);

#endif
