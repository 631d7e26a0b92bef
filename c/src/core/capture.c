// capture.c: see capture.h.
#include "core/capture.h"

#include <string.h>

#include "base/alloc.h"
#include "core/validate.h"

#define fail_as(function, status, ...) vt_error_set((status), VT_DOMAIN_VT, 0, (function), __VA_ARGS__)

typedef struct member {
  vt_queue *queue;  // holds a reference
  uint32_t position;
  vt__clock clock;
} member;

struct vt__capture {
  vt__exit_guard guard;  // first: a thread that ends aborts its captures
  uint64_t id;
  struct vt__capture *next;  // open captures of this thread
  bool failed;
  vt__saved_error error;
  uint32_t count;
  member members[VT__CAPTURE_MAX_QUEUES];  // members[0] is the origin
};

static _Thread_local vt__capture *open_captures;

// Two threads that begin at once: one gets the queue.
static vt_status add_member(vt__capture *capture, vt_queue *queue, const char *function) {
  const void *nobody = NULL;
  // acquire: partner is the release store in vt__capture_close(): the members of the queue are this thread's now.
  if (!atomic_compare_exchange_strong_explicit(&queue->capture_owner, &nobody, vt__thread_token(), memory_order_acquire,
                                               memory_order_relaxed)) {
    return fail_as(function, VT_ERR_FAILED_PRECONDITION, "queue %llu is in a capture already",
                   (unsigned long long)queue->handle.id);
  }
  vt__handle_ref(queue);
  queue->capture = capture;
  queue->capture_slot = capture->count;
  capture->members[capture->count++] = (member){.queue = queue};
  // release: partner is the acquire load in vt__queue_check_submit().
  atomic_fetch_or_explicit(&queue->state, VT__QUEUE_CAPTURING, memory_order_release);
  return VT_OK;
}

static void abort_in_backend(vt__capture *capture) {
  vt_queue *origin = capture->members[0].queue;
  const vt_backend *backend = origin->backend;
  // What can't be aborted is the backend's defect; the members are let go all the same.
  (void)backend->ops.capture_abort(backend->self, origin->native);
}

static void on_thread_end(vt__exit_guard *guard) {
  vt__capture *capture = (vt__capture *)guard;
  abort_in_backend(capture);
  vt__exit_guard_push(guard);  // vt__capture_close() takes it out again
  vt__capture_close(capture->members[0].queue);
}

vt_status vt__capture_begin(vt_queue *queue, const char *function) {
  vt__capture *capture = vt__calloc(1, sizeof(*capture));
  if (capture == NULL) {
    return fail_as(function, VT_ERR_OUT_OF_MEMORY, "no memory for a capture");
  }
  vt_status status = add_member(capture, queue, function);
  if (status != VT_OK) {
    vt__free(capture);
    return status;
  }
  capture->id = vt__next_id();
  capture->guard.on_thread_end = on_thread_end;
  capture->next = open_captures;
  open_captures = capture;
  vt__exit_guard_push(&capture->guard);
  vt__capture_depth++;
  return VT_OK;
}

vt_status vt__capture_check_origin(vt_queue *queue, const char *function) {
  // relaxed: only this thread's own bit and token lead on.
  if ((atomic_load_explicit(&queue->state, memory_order_relaxed) & VT__QUEUE_CAPTURING) == 0) {
    return fail_as(function, VT_ERR_FAILED_PRECONDITION, "queue %llu is not capturing", (unsigned long long)queue->handle.id);
  }
  if (!vt__queue_is_recording(queue)) {
    return fail_as(function, VT_ERR_FAILED_PRECONDITION, "the capture of queue %llu was begun on another thread",
                   (unsigned long long)queue->handle.id);
  }
  if (queue->capture_slot != 0) {
    return fail_as(function, VT_ERR_FAILED_PRECONDITION, "queue %llu joined a capture that began on queue %llu: end it there",
                   (unsigned long long)queue->handle.id, (unsigned long long)queue->capture->members[0].queue->handle.id);
  }
  return VT_OK;
}

vt_status vt__capture_check_complete(vt_queue *origin, vt__call_site site) {
  const vt__capture *capture = origin->capture;
  if (capture->failed) {
    return vt__error_restore(&capture->error);
  }
  const vt__clock *covered = &capture->members[0].clock;
  for (uint32_t i = 1; i < capture->count; i++) {
    if (covered->position[i] < capture->members[i].position) {
      vt_status status = fail_as(
          site.function, VT_ERR_FAILED_PRECONDITION,
          "queue %llu was forked into the capture of queue %llu and not joined: record an event on it and make queue %llu wait",
          (unsigned long long)capture->members[i].queue->handle.id, (unsigned long long)origin->handle.id,
          (unsigned long long)origin->handle.id);
      if (vt__validate_is_on()) {
        vt__validate_capture_breach(capture->id, site.caller);
      }
      return status;
    }
  }
  return VT_OK;
}

static void let_go(vt_queue *queue) {
  queue->capture = NULL;
  // release: partner is the acquire load in vt__queue_check_submit().
  atomic_fetch_and_explicit(&queue->state, ~(uint32_t)VT__QUEUE_CAPTURING, memory_order_release);
  // release: partner is the exchange in add_member().
  atomic_store_explicit(&queue->capture_owner, NULL, memory_order_release);
}

void vt__capture_leave(vt_queue *queue) {
  queue->capture->count--;
  let_go(queue);
  vt__handle_unref(queue);
}

void vt__capture_close(vt_queue *origin) {
  vt__capture *capture = origin->capture;
  if (vt__validate_is_on()) {
    vt__validate_capture_closed(capture->id);
  }
  vt__capture **link = &open_captures;
  while (*link != capture) {
    link = &(*link)->next;
  }
  *link = capture->next;
  vt__exit_guard_pop(&capture->guard);
  vt__capture_depth--;
  for (uint32_t i = 0; i < capture->count; i++) {
    let_go(capture->members[i].queue);
  }
  for (uint32_t i = 0; i < capture->count; i++) {
    vt__handle_unref(capture->members[i].queue);
  }
  vt__free(capture);
}

void vt__capture_abandon(vt_queue *queue, const char *why, const void *caller) {
  vt__capture *capture = queue->capture;
  if (queue->capture_slot != 0) {
    vt_status status =
        fail_as("vt_queue_release", VT_ERR_FAILED_PRECONDITION, "queue %llu %s", (unsigned long long)queue->handle.id, why);
    vt__capture_fail(queue, status, caller);
    return;
  }
  abort_in_backend(capture);
  vt__capture_close(queue);
}

void vt__capture_fail(vt_queue *queue, vt_status status, const void *caller) {
  vt__capture *capture = queue->capture;
  if (!capture->failed) {
    capture->failed = true;
    vt__error_save(&capture->error, status);
    if (vt__validate_is_on()) {
      vt__validate_capture_breach(capture->id, caller);
    }
  }
}

void vt__capture_advance(vt_queue *queue) {
  member *own = &queue->capture->members[queue->capture_slot];
  own->clock.position[queue->capture_slot] = ++own->position;
}

vt__capture *vt__capture_find(uint64_t id) {
  vt__capture *capture = open_captures;
  while (capture != NULL && capture->id != id) {
    capture = capture->next;
  }
  return capture;
}

uint64_t vt__capture_get_id(const vt__capture *capture) {
  return capture->id;
}

const vt__clock *vt__capture_clock(const vt_queue *queue) {
  return &queue->capture->members[queue->capture_slot].clock;
}

static void merge(vt__clock *into, const vt__clock *from, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (into->position[i] < from->position[i]) {
      into->position[i] = from->position[i];
    }
  }
}

vt_status vt__capture_join(vt__capture *capture, vt_queue *queue, const vt__clock *clock, const char *function) {
  if (!vt__queue_is_recording(queue)) {
    if (capture->count == VT__CAPTURE_MAX_QUEUES) {
      return fail_as(function, VT_ERR_UNSUPPORTED, "a capture takes at most %d queues", VT__CAPTURE_MAX_QUEUES);
    }
    VT_TRY(add_member(capture, queue, function));
  }
  merge(&capture->members[queue->capture_slot].clock, clock, capture->count);
  return VT_OK;
}
