// queue.h: the queue handle, and submitting to it.
#ifndef VT_CORE_QUEUE_H
#define VT_CORE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/check.h"
#include "core/pool.h"
#include "core/registry.h"
#include "vllm_vt/graph.h"
#include "vllm_vt/queue.h"

struct vt__capture;

enum {
  VT__QUEUE_CLOSED = 1u << 0,     // destroyed: refuses new work
  VT__QUEUE_CAPTURING = 1u << 1,  // member of a capture
};

typedef struct vt__queue_hook {
  void (*fn)(void *user);
  void *user;
  struct vt__queue_hook *next;
} vt__queue_hook;

struct vt_queue {
  vt__handle handle;
  const vt_backend *backend;
  void *native;                             // the backend's queue
  const vt_device_resource_ops *resources;  // that made it; NULL if the backend did
  struct vt__shadow_queue *shadow;          // what the validation layer knows of it, or NULL; guarded by that layer's lock
  int32_t synchronous;
  _Atomic uint32_t state;               // VT__QUEUE_* bits
  _Atomic(const void *) capture_owner;  // vt__thread_token() of the thread that captures; NULL: none does
  struct vt__capture *capture;          // of that thread only
  uint32_t capture_slot;                // this queue's place among the members
  pthread_mutex_t mutex;                // guards what follows
  vt_graph *stored;                     // see vt_queue_replay()
  vt__queue_hook *hooks;                // latest first
  vt__pool_seat pool;                   // guarded by vt__blocks_lock()
};

// Fails unless `queue` may take new work on this thread; a capturing queue may, on the thread that began. `function` is the public
// one.
vt_status vt__queue_check_submit_slow(vt_queue *queue, const char *function);
static inline vt_status vt__queue_check_submit(vt_queue *queue, const char *function) {
  VT_TRY(vt__check_usable(function));
  VT_TRY(vt__check_live(queue, &vt__queue_pool, "queue", function));
  // acquire: partners are the stores of the bits.
  bool plain = atomic_load_explicit(&queue->state, memory_order_acquire) == 0;
  return VT_LIKELY(plain) ? VT_OK : vt__queue_check_submit_slow(queue, function);
}

// Answers whether this thread is capturing the queue, so that its operations are recorded.
static inline bool vt__queue_is_recording(const vt_queue *queue) {
  // relaxed: only this thread's own token leads on.
  return atomic_load_explicit(&((vt_queue *)(uintptr_t)queue)->capture_owner, memory_order_relaxed) == vt__thread_token();
}

// Tells the capture of this thread in which the queue is: a recorded operation moves its clock on, a failure fails it with the
// thread's record. `caller` is who called the public function.
void vt__queue_note_recorded(vt_queue *queue, vt_status status, const void *caller);

// The end of every call that submits. Returns `status`.
static inline vt_status vt__queue_submitted(vt_queue *queue, vt_status status, const void *caller) {
  if (VT_UNLIKELY(vt__queue_is_recording(queue))) {
    vt__queue_note_recorded(queue, status, caller);
  }
  return status;
}

// The end of a call that was refused, or whose success isn't an operation. Returns `status`.
static inline vt_status vt__queue_refused(vt_queue *queue, vt_status status, const void *caller) {
  return VT_UNLIKELY(status < 0) ? vt__queue_submitted(queue, status, caller) : status;
}

// The failure that stuck to an asynchronous queue, if it has one; never blocks.
vt_status vt__queue_get_failure(vt_queue *queue);

// An operation on no bytes: there is nothing to queue or to record, but a failed queue answers its failure.
vt_status vt__queue_submit_nothing(vt_queue *queue);

// Queues or records a host call. The queue takes it over in any case: it is dropped exactly once, also where this fails. On a
// synchronous queue the status is that of the call. `site` is of the public function.
//
// The queue must have passed vt__queue_check_submit().
vt_status vt__queue_submit_call(vt_queue *queue, const vt_host_call *call, vt__call_site site);

#endif
