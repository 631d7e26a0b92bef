// event.c: the event handle: checks, capture rules and lifetimes, then one method of the backend.
#include "vllm_vt/event.h"

#include <pthread.h>

#include "base/alloc.h"
#include "core/capture.h"
#include "core/validate.h"

struct vt_event {
  vt__handle handle;
  const vt_backend *backend;
  void *native;  // NULL where the backend has no events: then a record is complete at once
  uint32_t flags;
  vt_wait_mode mode;          // of the flags
  _Atomic uint64_t captured;  // process-unique number of the latest record, if that was made in a capture; else 0
  pthread_mutex_t mutex;      // guards what follows, and the backend's half of a captured record
  uint64_t capture_id;        // of the capture that holds the latest captured record
  vt__clock *clock;           // what that record comes after; kept for the next one
  vt__shadow_event *shadow;   // what the validation layer knows of it, or NULL; guarded by that layer's lock
};

static void finalize(vt__handle *handle) {
  vt_event *event = (vt_event *)handle;
  vt__validate_event_gone(event->shadow);
  if (event->native != NULL) {
    event->backend->ops.event_destroy(event->backend->self, event->native);
  }
  vt__free(event->clock);
  pthread_mutex_destroy(&event->mutex);
  vt__handle_recycle(handle);
}

// Whole lines: 128 bytes with x86-64's mutex, more with aarch64's.
#define EVENT_BYTES ((sizeof(struct vt_event) + VT_CACHE_LINE - 1) / VT_CACHE_LINE * VT_CACHE_LINE)

vt__handle_pool vt__event_pool = {
    .tag = 0x4556454e, .object_size = EVENT_BYTES, .slab_objects = 64, .finalize = finalize, .mutex = PTHREAD_MUTEX_INITIALIZER};

static vt_status check(const vt_event *event, const char *function) {
  return vt__check_live(event, &vt__event_pool, "event", function);
}

static bool same_device(vt_device a, vt_device b) {
  return a.type == b.type && a.index == b.index;
}

#define WAIT_FLAGS ((uint32_t)(VT_EVENT_BLOCKING | VT_EVENT_SPINNING | VT_EVENT_YIELDING))

static vt_wait_mode mode_of(uint32_t flags) {
  if ((flags & VT_EVENT_BLOCKING) != 0) {
    return VT_WAIT_MODE_BLOCK;
  }
  if ((flags & VT_EVENT_SPINNING) != 0) {
    return VT_WAIT_MODE_SPIN;
  }
  return (flags & VT_EVENT_YIELDING) != 0 ? VT_WAIT_MODE_YIELD : VT_WAIT_MODE_DEFAULT;
}

// Whether an event of these flags waits in this way by event_wait, which every backend with events has.
static bool is_plain(uint32_t flags, vt_wait_mode mode) {
  return mode == VT_WAIT_MODE_DEFAULT || (mode == VT_WAIT_MODE_BLOCK && (flags & VT_EVENT_BLOCKING) != 0);
}

// Without events there is nothing to wait for.
static vt_status check_mode(const vt_backend *backend, uint32_t flags, vt_wait_mode mode, const char *function) {
  if (!is_plain(flags, mode) && backend->ops.event_wait_by == NULL && backend->ops.event_wait != NULL) {
    return vt_error_set(VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, function, "backend '%s' can't wait by mode %d", backend->name, mode);
  }
  return VT_OK;
}

static vt_status check_flags(const vt_backend *backend, uint32_t flags, const char *function) {
  if ((flags & VT_EVENT_TIMING) != 0 && backend->ops.event_get_elapsed == NULL) {
    return vt_error_set(VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, function, "backend '%s' has no timing events", backend->name);
  }
  return check_mode(backend, flags, mode_of(flags), function);
}

vt_status vt_event_create(vt_device device, uint32_t flags, vt_event **out_event) {
  uint32_t waits = flags & WAIT_FLAGS;
  VT_TRY(vt__check_usable(__func__));
  VT_CHECK_ARG(out_event != NULL, "out_event is NULL");
  VT_CHECK_ARG((flags & ~(WAIT_FLAGS | VT_EVENT_TIMING)) == 0, "event flags 0x%x hold an unknown bit", flags);
  VT_CHECK_ARG((waits & (waits - 1)) == 0, "event flags 0x%x ask for two ways to wait", flags);
  const vt_backend *backend;
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  VT_TRY(check_flags(backend, flags, __func__));
  vt_event *event = vt__handle_new(&vt__event_pool);
  if (event == NULL) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for an event");
  }
  event->backend = backend;
  event->flags = flags;
  event->mode = mode_of(flags);
  if (backend->ops.event_create != NULL) {
    uint64_t serial = vt__error_serial();
    uint32_t passed = flags & (VT_EVENT_BLOCKING | VT_EVENT_TIMING);
    vt_status status =
        vt__backend_failed(backend, "event_create", backend->ops.event_create(backend->self, passed, &event->native), serial);
    if (status != VT_OK) {
      vt__handle_discard(event);
      return status;
    }
  }
  pthread_mutex_init(&event->mutex, NULL);
  *out_event = event;
  return VT_OK;
}

vt_status vt_event_retain(vt_event *event) {
  return vt__retain(event, &vt__event_pool, "event", __func__);
}

void vt_event_release(vt_event *event) {
  vt__release(event, &vt__event_pool, "event", __func__);
}

static vt_status record_in_backend(vt_event *event, vt_queue *queue) {
  const vt_backend *backend = event->backend;
  if (backend->ops.event_record == NULL) {
    return VT_OK;
  }
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.event_record(backend->self, event->native, queue->native);
  return vt__backend_failed(backend, "event_record", status, serial);
}

static vt_status record_captured_locked(vt_event *event, vt_queue *queue) {
  if (event->clock == NULL && (event->clock = vt__malloc(sizeof(*event->clock))) == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_event_record", "no memory for a captured record");
  }
  VT_TRY(record_in_backend(event, queue));
  *event->clock = *vt__capture_clock(queue);
  event->capture_id = vt__capture_get_id(queue->capture);
  // relaxed: who goes on with it takes the lock. Behind the backend's record: see record_now().
  atomic_store_explicit(&event->captured, vt__next_id(), memory_order_relaxed);
  return VT_OK;
}

static vt_status record_captured(vt_event *event, vt_queue *queue) {
  pthread_mutex_lock(&event->mutex);
  vt_status status = record_captured_locked(event, queue);
  pthread_mutex_unlock(&event->mutex);
  return status;
}

// Takes no lock, since the backend may wait for room. Only the captured record that was there before the backend's new one is
// forgotten: of another thread's captured record at the same time, the backend may hold either.
static vt_status record_now(vt_event *event, vt_queue *queue) {
  // relaxed, both: who uses the record on another thread was told of it by other means.
  uint64_t before = atomic_load_explicit(&event->captured, memory_order_relaxed);
  VT_TRY(record_in_backend(event, queue));
  if (before != 0) {
    (void)atomic_compare_exchange_strong_explicit(&event->captured, &before, 0, memory_order_relaxed, memory_order_relaxed);
  }
  return VT_OK;
}

static vt_status record(vt_event *event, vt_queue *queue) {
  const vt_backend *backend = event->backend;
  if (!same_device(backend->device, queue->backend->device)) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_event_record", "event %llu is of %s, queue %llu of %s",
                        (unsigned long long)event->handle.id, vt__device_name(backend->device).text,
                        (unsigned long long)queue->handle.id, vt__device_name(queue->backend->device).text);
  }
  return vt__queue_is_recording(queue) ? record_captured(event, queue) : record_now(event, queue);
}

vt_status vt_event_record(vt_event *event, vt_queue *queue) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  vt_status status = check(event, __func__);
  if (status == VT_OK) {
    status = record(event, queue);
    if (vt__validate_is_on() && status == VT_OK) {
      vt__validate_event_recorded(&event->shadow, queue);
    }
  }
  return vt__queue_refused(queue, status, VT__CALLER);
}

static vt_status check_host_may_ask(vt_event *event, const char *function) {
  VT_TRY(vt__check_usable(function));
  VT_TRY(check(event, function));
  // relaxed: see record_now().
  if (atomic_load_explicit(&event->captured, memory_order_relaxed) != 0) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function,
                        "event %llu was recorded in a capture: the host can't ask for it, only queues of that capture can",
                        (unsigned long long)event->handle.id);
  }
  return VT_OK;
}

static vt_status query(vt_event *event) {
  const vt_backend *backend = event->backend;
  if (backend->ops.event_query == NULL) {
    return VT_OK;
  }
  uint64_t serial = vt__error_serial();
  vt_status status = vt__backend_failed(backend, "event_query", backend->ops.event_query(backend->self, event->native), serial);
  if (vt__validate_is_on() && status != VT_NOT_READY) {
    vt__validate_event_settled(&event->shadow);
  }
  return status;
}

vt_status vt_event_query(vt_event *event) {
  VT_TRY(check_host_may_ask(event, __func__));
  return query(event);
}

static vt_status wait_plainly(vt_event *event, uint64_t timeout_ns) {
  const vt_backend *backend = event->backend;
  uint64_t serial = vt__error_serial();
  return vt__backend_failed(backend, "event_wait", backend->ops.event_wait(backend->self, event->native, timeout_ns), serial);
}

static vt_status wait_by_mode(vt_event *event, vt_wait_mode mode, uint64_t timeout_ns) {
  const vt_backend *backend = event->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.event_wait_by(backend->self, event->native, mode, timeout_ns);
  return vt__backend_failed(backend, "event_wait_by", status, serial);
}

static vt_status wait_in_backend(vt_event *event, vt_wait_mode mode, uint64_t timeout_ns) {
  if (event->backend->ops.event_wait == NULL) {
    return VT_OK;
  }
  return is_plain(event->flags, mode) ? wait_plainly(event, timeout_ns) : wait_by_mode(event, mode, timeout_ns);
}

static vt_status wait(vt_event *event, vt_wait_mode mode, uint64_t timeout_ns, vt__call_site site) {
  VT_TRY(check_host_may_ask(event, site.function));
  mode = mode == VT_WAIT_MODE_DEFAULT ? event->mode : mode;
  VT_TRY(check_mode(event->backend, event->flags, mode, site.function));
  if (timeout_ns == 0) {
    return query(event);
  }
  VT_TRY(vt__check_not_capturing(site));
  vt_status status = vt__error_rename(wait_in_backend(event, mode, timeout_ns), "vt_event_wait", site.function);
  if (vt__validate_is_on()) {
    vt__validate_event_awaited(&event->shadow, event->handle.id, NULL, site);
    // A time-out may also be what failed in the queue; asking again tells, and the record stays that of the wait.
    if (status == VT_ERR_TIMEOUT) {
      vt__error_mark before = vt__error_begin();
      (void)query(event);
      vt__error_forget(&before, VT_OK);
    } else {
      vt__validate_event_settled(&event->shadow);
    }
  }
  return status;
}

vt_status vt_event_synchronize(vt_event *event) {
  return wait(event, VT_WAIT_MODE_DEFAULT, VT_WAIT_FOREVER, VT__HERE);
}

vt_status vt_event_wait(vt_event *event, uint64_t timeout_ns) {
  return wait(event, VT_WAIT_MODE_DEFAULT, timeout_ns, VT__HERE);
}

vt_status vt_event_wait_by(vt_event *event, vt_wait_mode mode, uint64_t timeout_ns) {
  VT_CHECK_ARG(vt__wait_mode_is_known(mode), "wait mode %d is unknown", mode);
  return wait(event, mode, timeout_ns, VT__HERE);
}

static vt_status queue_in_backend(vt_queue *queue, vt_event *event) {
  const vt_backend *backend = queue->backend;
  if (backend->ops.queue_after_event == NULL) {
    return VT_OK;
  }
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.queue_after_event(backend->self, queue->native, event->native);
  return vt__backend_failed(backend, "queue_after_event", status, serial);
}

// Makes `queue` part of the capture in which the event was recorded.
static vt_status join_locked(vt_queue *queue, vt_event *event) {
  vt__capture *capture = vt__capture_find(event->capture_id);
  if (capture == NULL) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_queue_after_event",
                        "event %llu was recorded in a capture that has ended or belongs to another thread",
                        (unsigned long long)event->handle.id);
  }
  if (vt__queue_is_recording(queue) && queue->capture != capture) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_queue_after_event",
                        "event %llu was recorded in another capture than that of queue %llu", (unsigned long long)event->handle.id,
                        (unsigned long long)queue->handle.id);
  }
  bool joins = !vt__queue_is_recording(queue);
  VT_TRY(vt__capture_join(capture, queue, event->clock, "vt_queue_after_event"));
  vt_status status = queue_in_backend(queue, event);
  if (status != VT_OK && joins) {
    vt__capture_leave(queue);
  }
  return status;
}

// Another thread may be recording the event into a capture of its own: the clock and the backend's half belong together.
static vt_status join(vt_queue *queue, vt_event *event) {
  pthread_mutex_lock(&event->mutex);
  vt_status status = join_locked(queue, event);
  pthread_mutex_unlock(&event->mutex);
  return status;
}

static vt_status after_event(vt_queue *queue, vt_event *event) {
  const vt_backend *backend = queue->backend;
  if (backend->ops.queue_after_event != event->backend->ops.queue_after_event) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_queue_after_event",
                        "a queue of %s can't wait for an event of %s", vt__device_name(backend->device).text,
                        vt__device_name(event->backend->device).text);
  }
  // relaxed: see record_now().
  if (atomic_load_explicit(&event->captured, memory_order_relaxed) != 0) {
    return join(queue, event);
  }
  if (vt__queue_is_recording(queue)) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_queue_after_event",
                        "event %llu was not recorded in the capture of queue %llu", (unsigned long long)event->handle.id,
                        (unsigned long long)queue->handle.id);
  }
  return queue_in_backend(queue, event);
}

vt_status vt_queue_after_event(vt_queue *queue, vt_event *event) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  vt_status status = check(event, __func__);
  if (status == VT_OK) {
    status = after_event(queue, event);
    if (vt__validate_is_on() && status == VT_OK) {
      vt__validate_event_awaited(&event->shadow, event->handle.id, queue, VT__HERE);
    }
  }
  return vt__queue_refused(queue, status, VT__CALLER);
}

static vt_status check_timed(vt_event *event, const char *what) {
  if ((event->flags & VT_EVENT_TIMING) == 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_event_get_elapsed",
                        "the %s event was made without VT_EVENT_TIMING", what);
  }
  return check_host_may_ask(event, "vt_event_get_elapsed");
}

vt_status vt_event_get_elapsed(vt_event *start, vt_event *end, uint64_t *out_ns) {
  VT_TRY(check(start, __func__));
  VT_TRY(check(end, __func__));
  VT_CHECK_ARG(out_ns != NULL, "out_ns is NULL");
  VT_TRY(check_timed(start, "start"));
  VT_TRY(check_timed(end, "end"));
  const vt_backend *backend = start->backend;
  VT_CHECK_ARG(backend == end->backend, "the start event is of %s, the end event of %s", vt__device_name(backend->device).text,
               vt__device_name(end->backend->device).text);
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.event_get_elapsed(backend->self, start->native, end->native, out_ns);
  return vt__backend_failed(backend, "event_get_elapsed", status, serial);
}

vt_status vt_event_get_device(vt_event *event, vt_device *out_device) {
  VT_TRY(check(event, __func__));
  VT_CHECK_ARG(out_device != NULL, "out_device is NULL");
  *out_device = event->backend->device;
  return VT_OK;
}

uint64_t vt_event_get_id(vt_event *event) {
  return check(event, __func__) == VT_OK ? event->handle.id : 0;
}

void *vt_event_get_native(vt_event *event) {
  if (check(event, __func__) != VT_OK || event->backend->ops.event_get_native == NULL) {
    return NULL;
  }
  return event->backend->ops.event_get_native(event->backend->self, event->native);
}
