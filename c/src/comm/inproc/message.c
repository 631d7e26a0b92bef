// message.c: the state machine of a message. Each ordered pair of ranks has a channel; either side publishes, both compare, the
// receiver copies from the sender's buffer, and the sender waits until it has.
#include <string.h>

#include "comm/inproc/inproc.h"
#include "comm/schedule.h"

vt__channel *vt__channel_of(const vt__comm_op *op) {
  vt__inproc *group = vt__inproc_of(op);
  size_t own = (size_t)op->call.comm->rank;
  size_t peer = (size_t)op->call.peer;
  size_t from = vt__comm_is_send(op->call.op) ? own : peer;
  size_t to = vt__comm_is_send(op->call.op) ? peer : own;
  return &group->channels[from * (size_t)group->world + to];
}

static vt__channel_side *side_of(const vt__comm_op *op, bool own) {
  vt__channel *channel = vt__channel_of(op);
  return (vt__comm_is_send(op->call.op)) == own ? &channel->sender : &channel->receiver;
}

vt__turns *vt__message_turns(const vt__comm_op *op) {
  return &side_of(op, true)->turns;
}

static bool end(vt__comm_op *op, vt_status status) {
  return vt__op_end(op, vt__message_turns(op), status);
}

static void publish(vt__comm_op *op) {
  vt__message_post *post = &side_of(op, true)->posts[op->number & 1];
  post->key = vt__call_key_of(op);
  post->provider = op->call.provider;
  post->address = op->call.send;
  if (VT_UNLIKELY(op->refusal != NULL)) {
    size_t length = vt__min_size(strlen(op->refusal), sizeof(post->text) - 1);
    memcpy(post->text, op->refusal, length);
    post->text[length] = 0;
  }
  // release: partner is the acquire load in reached() of the peer.
  atomic_store_explicit(&post->number, op->number, memory_order_release);
  vt__bell_ring(&vt__inproc_rank_of(op)->bell);
}

// Whether `word` has reached `number`, or `run`, which may be NULL, holds it; if not, *out_ended says whether the operation has
// ended by poison.
static bool reached(vt__comm_op *op, const _Atomic uint64_t *word, const vt__refused_run *run, uint64_t number, bool *out_ended) {
  *out_ended = false;
  // acquire: partners are the release stores in publish() and step_copy() of the peer.
  if (atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)word, memory_order_acquire) >= number ||
      (run != NULL && vt__refused_run_holds(vt__inproc_of(op), run, number))) {
    return true;
  }
  *out_ended = vt__op_blocked(op, vt__message_turns(op), op->call.peer, word, run, number);
  return false;
}

// Whether the peer has published or refused its side of message `number`.
static bool peer_has_come(vt__comm_op *op, uint64_t number, bool *out_ended) {
  vt__channel_side *peer = side_of(op, false);
  return reached(op, &peer->posts[number & 1].number, &peer->refused, number, out_ended);
}

static bool copy(const vt__comm_op *op, const char *from) {
  char *to = op->call.recv;
  for (size_t at = 0, chunk = 0; at < op->schedule.bytes; at += VT__CHUNK_BYTES, chunk++) {
    vt__inproc_chunk_hook(op, chunk);
    if (VT_UNLIKELY(vt__gate_is_closed(op))) {
      return false;
    }
    // A message to oneself may overlap.
    memmove(to + at, from + at, vt__min_size(VT__CHUNK_BYTES, op->schedule.bytes - at));
  }
  return true;
}

static bool step_copy(vt__comm_op *op) {
  if (!vt__gate_enter(op)) {
    return vt__op_step_failed(op, vt__message_turns(op));
  }
  vt__recorder_state(op->entry, VT_COMM_STATE_MOVING);
  bool copied = copy(op, side_of(op, false)->posts[op->number & 1].address);
  vt__gate_leave(op);
  if (!copied) {
    return vt__op_step_failed(op, vt__message_turns(op));
  }
  // release: partner is the acquire load in step_leave() of the sender: its buffer is its own again.
  atomic_store_explicit(&vt__channel_of(op)->taken, op->number, memory_order_release);
  vt__bell_ring(&vt__inproc_rank_of(op)->bell);
  return end(op, VT_OK);
}

static bool step_leave(vt__comm_op *op) {
  bool ended;
  return reached(op, &vt__channel_of(op)->taken, NULL, op->number, &ended) ? end(op, VT_OK) : ended;
}

static bool step_meet(vt__comm_op *op) {
  bool ended;
  if (!peer_has_come(op, op->number, &ended)) {
    return ended;
  }
  vt__message_turns(op)->met = true;
  vt_status verdict = vt__message_verdict(op, vt__channel_of(op));
  if (verdict != VT_OK || op->schedule.bytes == 0) {
    return end(op, verdict);
  }
  if (!vt__comm_is_send(op->call.op)) {
    return step_copy(op);
  }
  op->stage = VT__STAGE_LEAVE;
  return step_leave(op);
}

// Whether the post of this message is free; if not, *out_ended says whether the operation has ended by poison.
static bool is_prepared(vt__comm_op *op, bool *out_ended) {
  *out_ended = false;
  return vt__message_turns(op)->met || op->number == 1 || peer_has_come(op, op->number - 1, out_ended);
}

static bool step_prepare(vt__comm_op *op) {
  bool ended;
  if (VT_UNLIKELY(op->refusal != NULL)) {
    vt__channel_side *own = side_of(op, true);
    return vt__op_refuse(op, &own->turns, &own->refused, is_prepared, publish);
  }
  if (!is_prepared(op, &ended)) {
    return ended;
  }
  vt__message_turns(op)->met = false;
  publish(op);
  vt__recorder_state(op->entry, VT_COMM_STATE_WAITING);
  op->stage = VT__STAGE_MEET;
  return step_meet(op);
}

static bool step_token(vt__comm_op *op) {
  vt__turns *turns = vt__message_turns(op);
  // acquire: partner is the release in vt__inproc_poison().
  if ((atomic_load_explicit(&vt__inproc_of(op)->alarm, memory_order_acquire) & VT__ALARM_POISONED) != 0) {
    return vt__op_step_failed(op, turns);
  }
  if (!vt__turn_has_come(turns, op->ticket)) {
    return false;
  }
  vt__op_started(op, turns);
  vt__comm_plan(op, NULL);
  return step_prepare(op);
}

bool vt__message_step(vt__comm_op *op) {
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
      return vt__op_step_failed(op, vt__message_turns(op));
    default:
      return true;
  }
}
