// turn.c: what collectives and messages have in common: turns, numbers, failures and endings.
#include "comm/inproc/inproc.h"

uint32_t vt__turn_take(vt__turns *turns) {
  // relaxed: a ticket publishes nothing.
  return atomic_fetch_add_explicit(&turns->next, 1, memory_order_relaxed);
}

bool vt__turn_has_come(const vt__turns *turns, uint32_t ticket) {
  // acquire: partner is the release store in vt__turn_pass(): the number and what was met are of the operation before.
  return atomic_load_explicit(&((vt__turns *)(uintptr_t)turns)->serving, memory_order_acquire) == ticket;
}

void vt__turn_pass(vt__turns *turns) {
  // relaxed: only whose turn it is changes it.
  uint32_t ticket = atomic_load_explicit(&turns->serving, memory_order_relaxed);
  // release: partner is the acquire load in vt__turn_has_come().
  atomic_store_explicit(&turns->serving, ticket + 1, memory_order_release);
}

void vt__op_started(vt__comm_op *op, vt__turns *turns) {
  op->number = ++turns->number;
  op->stage = VT__STAGE_PREPARE;
  op->cursor = 0;
  vt_comm_record what = {
      .sequence = op->number,
      .count = op->call.count,
      .op = op->call.op,
      .dtype = op->call.dtype,
      .reduce_op = op->call.reduce_op,
      .peer = op->call.peer,
  };
  op->entry = vt__recorder_begin(op->call.comm->recorder, &what);
  if (VT_UNLIKELY((op->call.flags & VT__CALL_RECORDED) != 0)) {
    // relaxed: only for the text of a time-out.
    atomic_store_explicit(&vt__inproc_rank_of(op)->recorded, VT_COMM_OP_NONE, memory_order_relaxed);
  }
}

bool vt__op_end(vt__comm_op *op, vt__turns *turns, vt_status status) {
  op->status = op->refusal != NULL ? VT_OK : status;
  op->stage = VT__STAGE_END;
  if (op->entry != NULL) {
    vt__recorder_end(op->entry, op->refusal != NULL ? VT_ERR_INVALID_ARGUMENT : status);
    vt__turn_pass(turns);
  }
  return true;
}

// The operation fails by the poison of its group. A refused call has no buffers, and its caller has an answer already.
bool vt__op_step_failed(vt__comm_op *op, vt__turns *turns) {
  op->stage = VT__STAGE_QUIESCE;
  vt__inproc *group = vt__inproc_of(op);
  if (op->refusal != NULL) {
    return vt__op_end(op, turns, VT_OK);
  }
  // acquire: partner is the release in vt__inproc_poison(). A gate may be closed by a rank that saw the alarm before this one.
  bool poisoned = (atomic_load_explicit(&group->alarm, memory_order_acquire) & VT__ALARM_POISONED) != 0;
  return poisoned && vt__inproc_is_quiet(group) && vt__op_end(op, turns, vt__error_restore(&group->cause));
}

// `peer` has not published `number` in `word` yet. Answers whether the operation has ended by that.
// `run` are the peer's refusals, NULL where they can't stand in.
bool vt__op_blocked(vt__comm_op *op, vt__turns *turns, int32_t peer, const _Atomic uint64_t *word, const vt__refused_run *run,
                    uint64_t number) {
  vt__inproc *group = vt__inproc_of(op);
  // acquire: partners are the releases in vt__inproc_poison() and where a rank goes.
  uint32_t alarm = atomic_load_explicit(&group->alarm, memory_order_acquire);
  if (VT_LIKELY(alarm == 0)) {
    return false;
  }
  if ((alarm & VT__ALARM_POISONED) != 0) {
    return vt__op_step_failed(op, turns);
  }
  // acquire: partner is the release store of `gone`, which comes after the last publication of the rank.
  bool gone = atomic_load_explicit(&group->ranks[peer].gone, memory_order_acquire) != 0;
  // acquire: partner is the release store of the publication.
  if (gone && atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)word, memory_order_acquire) < number &&
      (run == NULL || !vt__refused_run_holds(group, run, number))) {
    vt__inproc_poison(group, VT_ERR_PEER_LOST, vt__comm_op_function(op->call.op),
                      "rank %d has gone: its last reference was released, and rank %d needs it for %s number %llu", peer,
                      op->call.comm->rank, vt__comm_op_name(op->call.op), (unsigned long long)op->number);
  }
  return false;
}

static uint64_t provider_hash(const char *name) {
  if (vt__comm_is_native(name)) {
    return 0;
  }
  uint64_t hash = UINT64_C(14695981039346656037);
  for (; *name != 0; name++) {
    hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
  }
  return hash;
}

vt__call_key vt__call_key_of(const vt__comm_op *op) {
  const vt__comm_call_data *call = &op->call;
  // The two sides of a message call different operations, and a refused call may hold anything.
  uint32_t kind = vt__comm_is_message(call->op) ? 0 : (uint32_t)call->op;
  return (vt__call_key){
      .what = kind | ((uint32_t)call->dtype & 0xffu) << 8 | ((uint32_t)call->reduce_op & 0xffu) << 16,
      .refused = op->refusal != NULL,
      .root = (int16_t)(kind == 0 ? -1 : call->peer),
      .count = call->parts == NULL ? call->count : 0,
      .sequence = call->sequence,
      .provider = provider_hash(call->provider),
  };
}
