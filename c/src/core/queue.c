// queue.c: the queue handle: checks and lifetimes, then one method of the backend.
#include "core/queue.h"

#include <string.h>

#include "base/alloc.h"
#include "core/capture.h"
#include "core/log.h"
#include "core/validate.h"

#define MAX_RING_CAPACITY 65536

static void finalize(vt__handle *handle);

vt__handle_pool vt__queue_pool = {
    .tag = 0x51554555, .object_size = 256, .slab_objects = 16, .finalize = finalize, .mutex = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(struct vt_queue) <= 256, "the pool's object_size must hold a queue");

// The last reference may go inside a callback or while this thread captures; the hooks may call the runtime all the same.
static void run_hooks(vt_queue *queue) {
  int32_t callback_depth = vt__callback_depth;
  int32_t capture_depth = vt__capture_depth;
  vt__callback_depth = 0;
  vt__capture_depth = 0;
  while (queue->hooks != NULL) {
    vt__queue_hook *hook = queue->hooks;
    queue->hooks = hook->next;
    hook->fn(hook->user);
    vt__free(hook);
  }
  // Added, since a hook may have begun or ended a capture.
  vt__callback_depth += callback_depth;
  vt__capture_depth += capture_depth;
}

// Runs after the queue's last work, on whichever thread finds that.
static void after_last_work(void *user) {
  vt_queue *queue = user;
  if (queue->shadow != NULL) {
    vt__validate_queue_gone(queue);
  }
  run_hooks(queue);
  vt__pool_queue_end(queue);
  if (queue->stored != NULL) {
    vt__handle_unref(queue->stored);
  }
  pthread_mutex_destroy(&queue->mutex);
  vt__handle_recycle(queue);
}

static void finalize(vt__handle *handle) {
  vt_queue *queue = (vt_queue *)handle;
  const vt_backend *backend = queue->backend;
  if (queue->resources != NULL) {
    queue->resources->destroy_queue(backend->device, queue->native, after_last_work, queue);
  } else {
    backend->ops.queue_destroy(backend->self, queue->native, after_last_work, queue);
  }
}

static vt_status normalize(const vt_queue_options *options, vt_queue_options *out) {
  *out = (vt_queue_options)VT_QUEUE_OPTIONS_INIT;
  if (options != NULL) {
    VT_CHECK_ARG(options->struct_size >= offsetof(vt_queue_options, ring_capacity),
                 "struct_size %zu of the queue options is too small", options->struct_size);
    memcpy(out, options, vt__min_size(options->struct_size, sizeof(*out)));
    out->struct_size = sizeof(*out);
  }
  VT_CHECK_ARG((out->flags & ~(uint32_t)(VT_QUEUE_ASYNC | VT_QUEUE_FAIL_FULL)) == 0, "queue flags 0x%x hold an unknown bit",
               out->flags);
  VT_CHECK_ARG(out->ring_capacity <= MAX_RING_CAPACITY, "ring_capacity %u is above %d", out->ring_capacity, MAX_RING_CAPACITY);
  VT_CHECK_ARG(out->priority >= -20 && out->priority <= 19, "priority %d is outside -20..19", out->priority);
  uint32_t rounded = 1;
  while (rounded < (out->ring_capacity == 0 ? 1024 : out->ring_capacity)) {
    rounded *= 2;
  }
  out->ring_capacity = rounded;
  return VT_OK;
}

static vt_status create_native(vt_queue *queue, vt_device device, const vt_queue_options *options) {
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = queue->resources != NULL ? queue->resources->create_queue(device, options, queue->handle.id, &queue->native)
                                              : backend->ops.queue_create(backend->self, options, queue->handle.id, &queue->native);
  return vt__backend_failed(backend, "queue_create", status, serial);
}

// CPU queues say what they are; other devices with asynchronous queues have no other ones.
static int32_t is_synchronous(const vt_backend *backend, const vt_queue_options *options) {
  if (backend->device.type == VT_DEVICE_CPU) {
    return (options->flags & VT_QUEUE_ASYNC) == 0;
  }
  vt_device_info info = VT_DEVICE_INFO_INIT;
  return backend->ops.get_info(backend->self, &info) == VT_OK && (info.caps & VT_CAP_ASYNC_QUEUES) == 0;
}

vt_status vt_queue_create(vt_device device, const vt_queue_options *options, vt_queue **out_queue) {
  VT_TRY(vt__check_not_capturing(VT__HERE));
  VT_CHECK_ARG(out_queue != NULL, "out_queue is NULL");
  vt_queue_options wanted;
  VT_TRY(normalize(options, &wanted));
  const vt_backend *backend;
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  vt_queue *queue = vt__handle_new(&vt__queue_pool);
  if (queue == NULL) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for a queue");
  }
  queue->backend = backend;
  queue->resources = vt__resource_find(device);
  queue->synchronous = is_synchronous(backend, &wanted);
  vt_status status = create_native(queue, device, &wanted);
  if (status != VT_OK) {
    vt__handle_discard(queue);
    return status;
  }
  pthread_mutex_init(&queue->mutex, NULL);
  vt__pool_queue_begin(queue);
  *out_queue = queue;
  return VT_OK;
}

static vt_status check(const vt_queue *queue, const char *function) {
  return vt__check_live(queue, &vt__queue_pool, "queue", function);
}

vt_status vt_queue_retain(vt_queue *queue) {
  return vt__retain(queue, &vt__queue_pool, "queue", __func__);
}

void vt_queue_release(vt_queue *queue) {
  // A capture holds a reference of its own: two left means that the caller's is the last one outside.
  // relaxed: best effort, as for any use of a handle that another thread releases at the same time.
  if (vt__handle_is_live(queue, &vt__queue_pool) && vt__queue_is_recording(queue) &&
      atomic_load_explicit(&queue->handle.refs, memory_order_relaxed) == 2) {
    vt__capture_abandon(queue, "was released inside its capture", VT__CALLER);
  }
  vt__release(queue, &vt__queue_pool, "queue", __func__);
}

static vt_status refuse_capturing(vt_queue *queue, vt__call_site site) {
  // relaxed: the bit of another thread's capture is enough to refuse.
  if ((atomic_load_explicit(&queue->state, memory_order_relaxed) & VT__QUEUE_CAPTURING) == 0) {
    return VT_OK;
  }
  vt_status status = vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, site.function,
                                  "%s is illegal inside a capture, and queue %llu is capturing", site.function,
                                  (unsigned long long)queue->handle.id);
  return vt__queue_refused(queue, status, site.caller);
}

// The door of the calls that block.
static vt_status check_may_block(vt_queue *queue, vt__call_site site) {
  VT_TRY(vt__check_usable(site.function));
  VT_TRY(check(queue, site.function));
  VT_TRY(refuse_capturing(queue, site));
  return vt__check_not_capturing(site);
}

// Waits for all work; a failure is one of that work, or of the device, so nothing is pending in any case.
static vt_status synchronize(vt_queue *queue) {
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status =
      vt__backend_failed(backend, "queue_synchronize", backend->ops.queue_synchronize(backend->self, queue->native), serial);
  if (vt__validate_is_on()) {
    vt__validate_queue_settled(queue);
  }
  return status;
}

vt_status vt_queue_synchronize(vt_queue *queue) {
  VT_TRY(check_may_block(queue, VT__HERE));
  return synchronize(queue);
}

vt_status vt_queue_destroy(vt_queue *queue) {
  VT_TRY(check_may_block(queue, VT__HERE));
  // release: partner is the acquire load in vt__queue_check_submit().
  atomic_fetch_or_explicit(&queue->state, VT__QUEUE_CLOSED, memory_order_release);
  vt_status status = synchronize(queue);
  vt__handle_unref(queue);
  return status;
}

vt_status vt_queue_query(vt_queue *queue) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(check(queue, __func__));
  VT_TRY(refuse_capturing(queue, VT__HERE));
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = vt__backend_failed(backend, "queue_query", backend->ops.queue_query(backend->self, queue->native), serial);
  if (vt__validate_is_on() && status != VT_NOT_READY) {
    vt__validate_queue_settled(queue);
  }
  return status;
}

vt_status vt_queue_get_ticket(vt_queue *queue, uint64_t *out_ticket) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(check(queue, __func__));
  VT_CHECK_ARG(out_ticket != NULL, "out_ticket is NULL");
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  return vt__backend_failed(backend, "queue_get_ticket", backend->ops.queue_get_ticket(backend->self, queue->native, out_ticket),
                            serial);
}

// Whether the ticket is no longer pending after a wait that ended in `status`. A time-out may be what failed in the queue, too;
// asking again tells, and the record stays that of the wait.
static bool is_settled(vt_queue *queue, uint64_t ticket, vt_status status) {
  if (status != VT_ERR_TIMEOUT) {
    return status != VT_NOT_READY;
  }
  const vt_backend *backend = queue->backend;
  vt__error_mark before = vt__error_begin();
  vt_status now = backend->ops.queue_wait_ticket(backend->self, queue->native, ticket, 0);
  vt__error_forget(&before, VT_OK);
  return now != VT_NOT_READY;
}

vt_status vt_queue_wait_ticket(vt_queue *queue, uint64_t ticket, uint64_t timeout_ns) {
  if (timeout_ns != 0) {
    VT_TRY(check_may_block(queue, VT__HERE));
  } else {
    VT_TRY(vt__check_usable(__func__));
    VT_TRY(check(queue, __func__));
  }
  uint64_t given;
  VT_TRY(vt_queue_get_ticket(queue, &given));
  VT_CHECK_ARG(ticket <= given, "ticket %llu of queue %llu was not given out yet, the last one is %llu", (unsigned long long)ticket,
               (unsigned long long)queue->handle.id, (unsigned long long)given);
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.queue_wait_ticket(backend->self, queue->native, ticket, timeout_ns);
  status = vt__backend_failed(backend, "queue_wait_ticket", status, serial);
  if (vt__validate_is_on() && is_settled(queue, ticket, status)) {
    vt__validate_ticket_settled(queue, ticket);
  }
  return status;
}

vt_status vt__queue_check_submit_slow(vt_queue *queue, const char *function) {
  // acquire: partners are the stores of the bits.
  uint32_t state = atomic_load_explicit(&queue->state, memory_order_acquire);
  if ((state & VT__QUEUE_CLOSED) != 0) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function, "queue %llu was destroyed and takes no new work",
                        (unsigned long long)queue->handle.id);
  }
  if ((state & VT__QUEUE_CAPTURING) != 0 && !vt__queue_is_recording(queue)) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function, "queue %llu is being captured by another thread",
                        (unsigned long long)queue->handle.id);
  }
  return VT_OK;
}

void vt__queue_note_recorded(vt_queue *queue, vt_status status, const void *caller) {
  if (status == VT_OK) {
    vt__capture_advance(queue);
  } else if (status < 0) {
    vt__capture_fail(queue, status, caller);
  }
}

vt_status vt__queue_get_failure(vt_queue *queue) {
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.queue_query(backend->self, queue->native);
  return status >= 0 ? VT_OK : vt__backend_failed(backend, "queue_query", status, serial);
}

vt_status vt__queue_submit_nothing(vt_queue *queue) {
  return vt__queue_is_recording(queue) ? VT_OK : vt__queue_get_failure(queue);
}

vt_status vt__queue_submit_call(vt_queue *queue, const vt_host_call *call, vt__call_site site) {
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.queue_host_call(backend->self, queue->native, call);
  status = vt__backend_failed(backend, "queue_host_call", status, serial);
  return vt__queue_submitted(queue, vt__error_rename(status, "vt_queue_host_func", site.function), site.caller);
}

vt_status vt_queue_on_destroy(vt_queue *queue, void (*fn)(void *user), void *user) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(check(queue, __func__));
  VT_CHECK_ARG(fn != NULL, "fn is NULL");
  vt__queue_hook *hook = vt__malloc(sizeof(*hook));
  if (hook == NULL) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for a hook");
  }
  pthread_mutex_lock(&queue->mutex);
  *hook = (vt__queue_hook){.fn = fn, .user = user, .next = queue->hooks};
  queue->hooks = hook;
  pthread_mutex_unlock(&queue->mutex);
  return VT_OK;
}

vt_status vt_queue_get_device(vt_queue *queue, vt_device *out_device) {
  VT_TRY(check(queue, __func__));
  VT_CHECK_ARG(out_device != NULL, "out_device is NULL");
  *out_device = queue->backend->device;
  return VT_OK;
}

uint64_t vt_queue_get_id(vt_queue *queue) {
  return check(queue, __func__) == VT_OK ? queue->handle.id : 0;
}

void *vt_queue_get_native(vt_queue *queue) {
  if (check(queue, __func__) != VT_OK || queue->backend->ops.queue_get_native == NULL) {
    return NULL;
  }
  return queue->backend->ops.queue_get_native(queue->backend->self, queue->native);
}

int32_t vt_queue_is_synchronous(vt_queue *queue) {
  return check(queue, __func__) == VT_OK ? queue->synchronous : 0;
}
