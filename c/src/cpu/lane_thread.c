// lane_thread.c: see lane_thread.h.
#include "cpu/lane_thread.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/wait.h"
#include "cpu/cpu.h"

struct vt__lane_thread {
  vt__counter jobs;  // given so far
  vt__counter done;  // run so far
  void (*fn)(void *arg);
  void *arg;
  vt__lane_thread *next_idle;
  vt__lane_thread *next;  // of all threads, so that leak checkers see them
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vt__lane_thread *idle;
static vt__lane_thread *all;

static void put_idle(vt__lane_thread *thread) {
  pthread_mutex_lock(&mutex);
  thread->next_idle = idle;
  idle = thread;
  pthread_mutex_unlock(&mutex);
}

static void lane_main(void *arg) {
  vt__lane_thread *thread = arg;
  for (uint64_t job = 1;; job++) {
    (void)vt__counter_wait(&thread->jobs, job, UINT64_MAX, NULL, VT__CPU_SPINS);
    thread->fn(thread->arg);
    vt__counter_publish(&thread->done, job);
  }
}

static vt__lane_thread *start(void) {
  vt__lane_thread *thread = vt__calloc(1, sizeof(*thread));
  vt__thread_options options = {.name = "vt-lane"};
  if (thread == NULL) {
    return NULL;
  }
  if (vt__thread_start(&options, lane_main, thread) != 0) {
    vt__free(thread);
    return NULL;
  }
  pthread_mutex_lock(&mutex);
  thread->next = all;
  all = thread;
  pthread_mutex_unlock(&mutex);
  return thread;
}

static vt__lane_thread *take_idle(void) {
  pthread_mutex_lock(&mutex);
  vt__lane_thread *thread = idle;
  if (thread != NULL) {
    idle = thread->next_idle;
  }
  pthread_mutex_unlock(&mutex);
  return thread;
}

bool vt__lane_threads_take(vt__lane_thread **out, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = take_idle();
    if (out[i] == NULL && (out[i] = start()) == NULL) {
      vt__lane_threads_return(out, i);
      return false;
    }
  }
  return true;
}

void vt__lane_threads_return(vt__lane_thread **threads, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    put_idle(threads[i]);
  }
}

void vt__lane_thread_run(vt__lane_thread *thread, void (*fn)(void *arg), void *arg) {
  thread->fn = fn;
  thread->arg = arg;
  vt__counter_publish(&thread->jobs, vt__counter_load(&thread->jobs) + 1);
}

void vt__lane_thread_wait(vt__lane_thread *thread) {
  (void)vt__counter_wait(&thread->done, vt__counter_load(&thread->jobs), UINT64_MAX, NULL, VT__CPU_SPINS);
}
