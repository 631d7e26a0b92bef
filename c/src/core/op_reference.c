// op_reference.c: the reference tier: a CPU function as a host call of the op's queue.
#include <string.h>

#include "base/alloc.h"
#include "core/check.h"
#include "core/log.h"
#include "core/op.h"
#include "core/queue.h"

typedef struct reference_call {
  const vt__op_reference_tier *tier;
  uint64_t args[VT_OP_REFERENCE_ARGS_MAX / 8];
} reference_call;

_Static_assert(sizeof(reference_call) <= VT_HOST_CALL_PAYLOAD, "the payload must hold a reference and its arguments");

static vt__op_reference_tier *new_tier(vt_op_id id, const vt_op_reference *reference) {
  vt__op_reference_tier *tier = vt__calloc(1, sizeof(*tier));
  uint32_t first;
  if (tier == NULL || !vt__op_counters_allot(VT_DEVICE_TYPE_COUNT, &first)) {
    vt__free(tier);
    return NULL;
  }
  tier->reference = *reference;
  tier->op = id;
  for (uint32_t type = 0; type < VT_DEVICE_TYPE_COUNT; type++) {
    vt__op_entry *entry = &tier->entries[type];
    memcpy(entry->name, VT_OP_REFERENCE_NAME, sizeof(VT_OP_REFERENCE_NAME));
    entry->provider = (vt_op_provider){.struct_size = sizeof(entry->provider),
                                       .name = entry->name,
                                       .priority = VT_OP_REFERENCE_PRIORITY,
                                       .fn = (vt_fn)reference->fn};
    entry->number = first + type;
  }
  return tier;
}

static bool is_same(const vt_op_reference *a, const vt_op_reference *b) {
  return a->fn == b->fn && a->args_bytes == b->args_bytes;
}

// The mutex is held.
static vt_status add(vt__op *op, vt_op_id id, const vt_op_reference *reference) {
  // relaxed: changed under the mutex only.
  const vt__op_reference_tier *present = atomic_load_explicit(&op->tier, memory_order_relaxed);
  if (present != NULL) {
    return is_same(&present->reference, reference) ? VT_OK : VT_ERR_ALREADY_EXISTS;
  }
  vt__op_reference_tier *tier = new_tier(id, reference);
  if (tier == NULL) {
    return VT_ERR_OUT_OF_MEMORY;
  }
  // release: partners are the acquire loads of the tier.
  atomic_store_explicit(&op->tier, tier, memory_order_release);
  return VT_OK;
}

vt_status vt_op_reference_register(vt_op_id id, const vt_op_reference *reference) {
  VT_TRY(vt__check_not_forked(__func__));
  const char *name = vt_op_get_name(id);
  VT_CHECK_ARG(name != NULL, "operation %d is unknown", id);
  VT_CHECK_ARG(reference != NULL, "reference is NULL");
  VT_CHECK_ARG(reference->struct_size >= sizeof(*reference), "reference->struct_size is %zu", reference->struct_size);
  VT_CHECK_ARG(reference->fn != NULL, "the reference of %s has no function", name);
  VT_CHECK_ARG(reference->args_bytes <= VT_OP_REFERENCE_ARGS_MAX, "args_bytes %zu of the reference of %s is above %d",
               reference->args_bytes, name, VT_OP_REFERENCE_ARGS_MAX);
  pthread_mutex_lock(&vt__op_mutex);
  vt_status status = add(vt__op_find(id), id, reference);
  pthread_mutex_unlock(&vt__op_mutex);
  if (status == VT_ERR_ALREADY_EXISTS) {
    return vt__fail(status, "%s has another reference", name);
  }
  return status == VT_OK ? VT_OK : vt__fail(status, "no memory for the reference of %s", name);
}

static vt_status run(void *payload) {
  reference_call *call = payload;
  uint64_t serial = vt__error_serial();
  vt__callback_depth++;
  vt_status status = call->tier->reference.fn(call->args);
  vt__callback_depth--;
  if (status >= 0) {
    return VT_OK;
  }
  if (vt__error_serial() == serial || vt_last_error()->status != status) {
    return vt_error_set(status, VT_DOMAIN_VT, 0, "vt_op_call_reference", "the CPU function of %s answered %s (%d)",
                        vt__op_name_for_text(call->tier->op), vt_status_get_name(status), status);
  }
  return status;
}

// Whether the host may dereference memory of the queue's device.
static bool is_addressable(const vt_backend *backend) {
  // Facts that don't change are asked for once: 0 unknown, 1 no, 2 yes.
  static _Atomic uint32_t known[VT_DEVICE_TYPE_COUNT][VT_MAX_DEVICES_PER_TYPE];
  _Atomic uint32_t *place = &known[backend->device.type][backend->device.index];
  // relaxed, here and below: the value stands for itself.
  uint32_t fact = atomic_load_explicit(place, memory_order_relaxed);
  if (fact == 0) {
    vt_device_info info = VT_DEVICE_INFO_INIT;
    if (backend->ops.get_info(backend->self, &info) != VT_OK) {
      return false;
    }
    fact = info.host_addressable != 0 ? 2 : 1;
    atomic_store_explicit(place, fact, memory_order_relaxed);
  }
  return fact == 2;
}

#define refuse(status, ...) vt_error_set((status), VT_DOMAIN_VT, 0, "vt_op_call_reference", __VA_ARGS__)

// Whether the tier may serve a call on the queue, which has passed vt__queue_check_submit().
static vt_status check(const vt__op_reference_tier *tier, vt_op_id id, const vt_queue *queue, const void *args) {
  const char *name = vt__op_name_for_text(id);
  vt__device_text where = vt__device_name(queue->backend->device);
  if (tier == NULL) {
    return refuse(VT_ERR_NOT_FOUND, "%s (id %d) has no reference for %s", name, id, where.text);
  }
  if (vt__queue_is_recording(queue)) {
    return refuse(VT_ERR_FAILED_PRECONDITION, "%s can't use its CPU function (%s) inside a capture, and queue %llu is capturing",
                  name, VT_OP_REFERENCE_NAME, (unsigned long long)queue->handle.id);
  }
  if (vt__op_tier_is_disabled()) {
    return refuse(VT_ERR_UNSUPPORTED, "%s on %s: the reference tier (%s) is disabled", name, where.text, VT_OP_REFERENCE_NAME);
  }
  if (vt__op_is_strict()) {
    return refuse(VT_ERR_UNSUPPORTED, "%s on %s: strict mode forbids the reference tier (%s)", name, where.text,
                  VT_OP_REFERENCE_NAME);
  }
  if (!is_addressable(queue->backend)) {
    return refuse(VT_ERR_UNSUPPORTED,
                  "%s on %s: the host can't address the device's memory, so its CPU function (%s) can't serve it", name, where.text,
                  VT_OP_REFERENCE_NAME);
  }
  if (args == NULL && tier->reference.args_bytes > 0) {
    return refuse(VT_ERR_INVALID_ARGUMENT, "args is NULL, and the reference of %s takes %zu bytes", name,
                  tier->reference.args_bytes);
  }
  return VT_OK;
}

// Counts a call that was queued, and says once that the slow path is in use.
static void note(vt__op *op, vt__op_reference_tier *tier, vt_device_type type) {
  const vt__op_entry *entry = &tier->entries[type];
  vt__op_note_selected(op, type, entry, entry->number);
  vt__op_count(entry->number, VT__OP_FALLBACKS);
  uint32_t bit = 1u << type;
  // relaxed, both: the bit stands for itself.
  if ((atomic_load_explicit(&tier->said, memory_order_relaxed) & bit) == 0 &&
      (atomic_fetch_or_explicit(&tier->said, bit, memory_order_relaxed) & bit) == 0) {
    vt__log(VT_LOG_WARN, "%s on %s is served by its CPU function (%s): no provider does it", vt__op_name_for_text(tier->op),
            vt_device_type_get_name(type), VT_OP_REFERENCE_NAME);
  }
}

vt_status vt_op_call_reference(vt_op_id id, vt_queue *queue, const void *args) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  vt__op *op = vt__op_find(id);
  // acquire: partner is the release store in add().
  vt__op_reference_tier *tier = op == NULL ? NULL : atomic_load_explicit(&op->tier, memory_order_acquire);
  vt_status status = check(tier, id, queue, args);
  if (status != VT_OK) {
    return vt__queue_refused(queue, status, VT__CALLER);
  }
  vt_device_type type = queue->backend->device.type;
  reference_call data = {.tier = tier};
  if (tier->reference.args_bytes > 0) {
    memcpy(data.args, args, tier->reference.args_bytes);
  }
  vt_host_call call = {.run = run};
  memcpy(call.payload, &data, sizeof(data));
  status = vt__queue_submit_call(queue, &call, VT__HERE);
  if (status == VT_OK) {
    note(op, tier, type);
  }
  return status;
}
