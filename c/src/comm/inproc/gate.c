// gate.c: poison, gates and the quiet after it.
//
// A group is poisoned once: the first cause is kept. Then every gate is closed, so no rank can begin to touch a peer's memory, and
// those that are inside see it at their next look and leave. When no gate counts anybody any more, no peer can touch a rank's
// memory.
#include <stdarg.h>
#include <stdio.h>

#include "comm/inproc/inproc.h"

void vt__inproc_ring_all(vt__inproc *group) {
  for (int32_t r = 0; r < group->world; r++) {
    vt__bell_ring(&group->ranks[r].bell);
  }
}

static void close_gates(vt__inproc *group) {
  for (int32_t r = 0; r < group->world; r++) {
    // acq_rel: partner is the exchange in vt__gate_enter(): who finds its gate closed sees the cause.
    atomic_fetch_or_explicit(&group->ranks[r].gate, VT__GATE_CLOSED, memory_order_acq_rel);
  }
}

void vt__inproc_poison(vt__inproc *group, vt_status status, const char *function, const char *format, ...) {
  uint32_t unclaimed = 0;
  // relaxed: only one may write the cause; the alarm below publishes it.
  if (!atomic_compare_exchange_strong_explicit(&group->claimed, &unclaimed, 1, memory_order_relaxed, memory_order_relaxed)) {
    return;
  }
  group->cause = (vt__saved_error){.status = status, .domain = VT_DOMAIN_VT, .native = 0, .function = function};
  va_list args;
  va_start(args, format);
  (void)vsnprintf(group->cause.message, sizeof(group->cause.message), format, args);
  va_end(args);
  // release: partners are the acquire loads of the alarm.
  atomic_fetch_or_explicit(&group->alarm, VT__ALARM_POISONED, memory_order_release);
  close_gates(group);
  vt__inproc_ring_all(group);
}

vt_status vt__inproc_query(void *state) {
  vt__inproc *group = state;
  // acquire: partner is the release in vt__inproc_poison().
  if (VT_LIKELY((atomic_load_explicit(&group->alarm, memory_order_acquire) & VT__ALARM_POISONED) == 0)) {
    return VT_OK;
  }
  return vt__error_restore(&group->cause);
}

bool vt__gate_enter(vt__comm_op *op) {
  _Atomic uint32_t *gate = &vt__inproc_rank_of(op)->gate;
  // relaxed: the exchange decides.
  uint32_t seen = atomic_load_explicit(gate, memory_order_relaxed);
  while ((seen & VT__GATE_CLOSED) == 0) {
    // acquire: partner is close_gates(). The count is seen by whoever closes the gate afterwards, in the order of this one word.
    if (atomic_compare_exchange_weak_explicit(gate, &seen, seen + VT__GATE_ONE, memory_order_acquire, memory_order_relaxed)) {
      op->inside = true;
      return true;
    }
  }
  return false;
}

void vt__gate_leave(vt__comm_op *op) {
  op->inside = false;
  // release: partner is the acquire load in vt__inproc_is_quiet(): what this rank wrote happens before a peer's return.
  atomic_fetch_sub_explicit(&vt__inproc_rank_of(op)->gate, VT__GATE_ONE, memory_order_release);
}

bool vt__gate_is_closed(const vt__comm_op *op) {
  // relaxed: only whether to stop; the cause is read after an acquire load of the alarm.
  return (atomic_load_explicit(&vt__inproc_rank_of(op)->gate, memory_order_relaxed) & VT__GATE_CLOSED) != 0;
}

bool vt__inproc_is_quiet(vt__inproc *group) {
  for (int32_t r = 0; r < group->world; r++) {
    _Atomic uint32_t *gate = &group->ranks[r].gate;
    // acquire: partner is the release in vt__gate_leave().
    uint32_t seen = atomic_load_explicit(gate, memory_order_acquire);
    if ((seen & VT__GATE_CLOSED) == 0) {
      // acq_rel: as in close_gates(), whose thread has not come here yet.
      seen = atomic_fetch_or_explicit(gate, VT__GATE_CLOSED, memory_order_acq_rel) | VT__GATE_CLOSED;
    }
    if (seen != VT__GATE_CLOSED) {
      return false;
    }
  }
  return true;
}

void vt__inproc_chunk_hook(const vt__comm_op *op, size_t chunk) {
  const vt__inproc *group = vt__inproc_of(op);
  if (VT_UNLIKELY(group->chunk_hook != NULL)) {
    vt__callback_depth++;
    group->chunk_hook(group->chunk_user, op->call.comm->rank, op->number, chunk);
    vt__callback_depth--;
  }
}
