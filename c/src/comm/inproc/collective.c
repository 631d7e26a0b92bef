// collective.c: the state machine of a collective: turn, prepare, publish, meet, move, leave. See docs/architecture.md.
#include <string.h>

#include "base/clock.h"
#include "comm/inproc/execute.h"
#include "comm/parts.h"

static void post_refusal(vt__post *post, const char *refusal) {
  size_t length = vt__min_size(strlen(refusal), sizeof(post->payload) - 1);
  memcpy(post->payload, refusal, length);
  post->payload[length] = 0;
}

// Publishes this rank's side of the operation.
static void publish(vt__comm_op *op) {
  vt__post *post = &vt__inproc_rank_of(op)->posts[op->number & 1];
  post->key = vt__call_key_of(op);
  post->provider = op->call.provider;
  if (VT_UNLIKELY(op->refusal != NULL)) {
    post_refusal(post, op->refusal);
  } else if (op->algo->posts) {
    vt__execute_post(op, post);
  } else {
    vt__post_addresses addresses = {.send = op->call.send, .recv = op->call.recv};
    memcpy(post->payload, &addresses, sizeof(addresses));
  }
  if (VT_UNLIKELY(op->call.parts != NULL)) {
    memcpy(vt__posted_parts(op, op->call.comm->rank), op->call.parts->of,
           (size_t)op->call.comm->world * sizeof(op->call.parts->of[0]));
  }
  // release: partner is the acquire load in step_meet() of the peers.
  atomic_store_explicit(&post->number, op->number, memory_order_release);
  vt__bell_ring(&vt__inproc_rank_of(op)->bell);
}

// Whether `peer` has reached `number` in its word; where it hasn't, whether the operation has ended by that.
static bool has_reached(vt__comm_op *op, int32_t peer, bool leaving, uint64_t number, bool *out_ended) {
  vt__inproc *group = vt__inproc_of(op);
  vt__inproc_rank *rank = &group->ranks[peer];
  _Atomic uint64_t *word = leaving ? &rank->left : &rank->posts[number & 1].number;
  // acquire: partners are the release stores in publish() and in step_move().
  if (atomic_load_explicit(word, memory_order_acquire) >= number) {
    return true;
  }
  const vt__refused_run *run = leaving ? NULL : &rank->refused;
  if (run != NULL && vt__refused_run_holds(group, run, number)) {
    return true;
  }
  *out_ended = vt__op_blocked(op, &vt__inproc_rank_of(op)->turns, peer, word, run, number);
  return false;
}

// Goes on from op->cursor through the peers while they have reached `number` in their word. Answers whether all have; else
// *out_ended says whether the operation has ended by poison.
static bool all_reached(vt__comm_op *op, bool leaving, uint64_t number, bool *out_ended) {
  vt__inproc *group = vt__inproc_of(op);
  *out_ended = false;
  while (op->cursor < group->world && has_reached(op, op->cursor, leaving, number, out_ended)) {
    op->cursor++;
  }
  if (op->cursor == group->world) {
    op->cursor = 0;
    return true;
  }
  // A rank behind the one that is awaited may have gone. acquire: partner is the release where a rank goes.
  bool some_went = (atomic_load_explicit(&group->alarm, memory_order_acquire) & ~VT__ALARM_REFUSED) != 0;
  for (int32_t r = op->cursor + 1; VT_UNLIKELY(some_went) && !*out_ended && r < group->world; r++) {
    (void)has_reached(op, r, leaving, number, out_ended);
  }
  return false;
}

static bool end(vt__comm_op *op, vt_status status) {
  if (VT_UNLIKELY((op->call.flags & VT__CALL_AGREE) != 0)) {
    vt__inproc_rank_of(op)->turns.disagreed = status != VT_OK || op->refusal != NULL;
  }
  return vt__op_end(op, &vt__inproc_rank_of(op)->turns, status);
}

static bool step_leave(vt__comm_op *op) {
  bool ended;
  return all_reached(op, true, op->number, &ended) ? end(op, VT_OK) : ended;
}

static bool step_move(vt__comm_op *op) {
  if (!vt__gate_enter(op)) {
    return vt__op_step_failed(op, &vt__inproc_rank_of(op)->turns);
  }
  vt__recorder_state(op->entry, VT_COMM_STATE_MOVING);
  if (op->deadline_ns == 0 && op->schedule.bytes >= VT__CHUNK_BYTES) {
    vt__comm_start_clock(op, vt__now_ns());
  }
  bool moved = vt__execute(op);
  vt__gate_leave(op);
  if (!moved) {
    return vt__op_step_failed(op, &vt__inproc_rank_of(op)->turns);
  }
  // release: partner is the acquire load in all_reached() of the peers: their buffers are complete, and mine is theirs no more.
  atomic_store_explicit(&vt__inproc_rank_of(op)->left, op->number, memory_order_release);
  vt__bell_ring(&vt__inproc_rank_of(op)->bell);
  op->stage = VT__STAGE_LEAVE;
  return step_leave(op);
}

static bool step_meet(vt__comm_op *op) {
  bool ended;
  if (!all_reached(op, false, op->number, &ended)) {
    return ended;
  }
  vt__inproc_rank_of(op)->turns.met = true;
  vt_status verdict = vt__collective_verdict(op);
  if (VT_UNLIKELY(verdict != VT_OK)) {
    return end(op, verdict);
  }
  if (!op->algo->posts) {
    return step_move(op);
  }
  (void)vt__execute(op);  // outside the gate, nothing stops it
  return end(op, VT_OK);
}

// Whether the post of this operation is free; if not, *out_ended says whether the operation has ended by poison.
static bool is_prepared(vt__comm_op *op, bool *out_ended) {
  *out_ended = false;
  return vt__inproc_rank_of(op)->turns.met || op->number == 1 || all_reached(op, false, op->number - 1, out_ended);
}

static bool step_prepare(vt__comm_op *op) {
  bool ended;
  if (VT_UNLIKELY(op->refusal != NULL)) {
    vt__inproc_rank *own = vt__inproc_rank_of(op);
    return vt__op_refuse(op, &own->turns, &own->refused, is_prepared, publish);
  }
  if (!is_prepared(op, &ended)) {
    return ended;
  }
  vt__inproc_rank_of(op)->turns.met = false;
  publish(op);
  vt__recorder_state(op->entry, VT_COMM_STATE_WAITING);
  op->stage = VT__STAGE_MEET;
  return step_meet(op);
}

// The ranks did not agree on a call of another provider. What follows of it ends here, without a number: the ranks that have the
// native provider have nothing that it would meet.
static bool is_void(vt__comm_op *op) {
  vt__turns *turns = &vt__inproc_rank_of(op)->turns;
  turns->disagreed = false;
  if ((op->call.flags & VT__CALL_AGREE) != 0 || vt__comm_is_native(op->call.provider)) {
    return false;
  }
  op->stage = VT__STAGE_END;
  op->status = op->refusal != NULL ? VT_OK
                                   : vt_error_set(VT_ERR_MISMATCH, VT_DOMAIN_VT, 0, vt__comm_op_function(op->call.op),
                                                  "the ranks did not agree on the call before");
  vt__turn_pass(turns);
  return true;
}

static bool step_token(vt__comm_op *op) {
  vt__inproc *group = vt__inproc_of(op);
  vt__turns *turns = &vt__inproc_rank_of(op)->turns;
  // acquire: partner is the release in vt__inproc_poison().
  if (VT_UNLIKELY((atomic_load_explicit(&group->alarm, memory_order_acquire) & VT__ALARM_POISONED) != 0)) {
    return vt__op_step_failed(op, turns);
  }
  if (!vt__turn_has_come(turns, op->ticket)) {
    return false;
  }
  if (VT_UNLIKELY(turns->disagreed) && is_void(op)) {
    return true;
  }
  vt__op_started(op, turns);
  vt__comm_plan(op, vt__execute_parts);
  if (group->world == 1) {
    (void)vt__execute(op);  // outside the gate, nothing stops it
    return end(op, VT_OK);
  }
  return step_prepare(op);
}

bool vt__collective_step(vt__comm_op *op) {
  switch (op->stage) {
    case VT__STAGE_TOKEN:
      return step_token(op);
    case VT__STAGE_PREPARE:
      return step_prepare(op);
    case VT__STAGE_MEET:
      return step_meet(op);
    case VT__STAGE_LEAVE:
      return step_leave(op);
    case VT__STAGE_QUIESCE:
      return vt__op_step_failed(op, &vt__inproc_rank_of(op)->turns);
    default:
      return true;
  }
}
