// where.c: the texts that say who is where: of time-outs and for watchdogs.
#include "comm/inproc/inproc.h"

static void add_record(vt__text *text, const vt_comm_record *record) {
  vt__text_add(text, "%s number %llu", vt__comm_op_name(record->op), (unsigned long long)record->sequence);
  if (vt__comm_is_message(record->op)) {
    vt__text_add(text, vt__comm_is_send(record->op) ? " to rank %d" : " from rank %d", record->peer);
  }
  vt__text_add(text, " %s", vt__comm_state_name(record->state));
}

static bool is_gone(const vt__inproc *group, int32_t rank) {
  // acquire: partner is the release store where a rank goes. Only for a text.
  return atomic_load_explicit(&group->ranks[rank].gone, memory_order_acquire) != 0;
}

// What `rank` did last and does now. Answers false if it has not called anything.
static bool add_place(vt__text *text, const vt__inproc *group, int32_t rank) {
  vt_comm_record record;
  bool known = vt__recorder_find(&group->recorders[rank], false, &record);
  if (known) {
    add_record(text, &record);
  }
  if (vt__recorder_find(&group->recorders[rank], true, &record)) {
    vt__text_add(text, known ? ", in " : "");
    add_record(text, &record);
    known = true;
  }
  return known;
}

// Whether `rank` has come to the operation that timed out.
static bool has_come(const vt__comm_op *op, int32_t rank) {
  if (rank == op->call.comm->rank) {
    return true;
  }
  // relaxed: only for a text; so is the load below.
  if (!vt__comm_is_message(op->call.op)) {
    return atomic_load_explicit(&((vt__post *)(uintptr_t)vt__post_of(op, rank))->number, memory_order_relaxed) >= op->number;
  }
  vt__channel *channel = vt__channel_of(op);
  vt__channel_side *side = vt__comm_is_send(op->call.op) ? &channel->receiver : &channel->sender;
  return rank != op->call.peer || atomic_load_explicit(&side->posts[op->number & 1].number, memory_order_relaxed) >= op->number;
}

static void add_rank(vt__text *text, const vt__comm_op *op, int32_t rank) {
  vt__inproc *group = vt__inproc_of(op);
  // relaxed: only for a text.
  vt_comm_op recorded = atomic_load_explicit(&group->ranks[rank].recorded, memory_order_relaxed);
  vt__text_add(text, "; rank %d ", rank);
  if (is_gone(group, rank)) {
    vt__text_add(text, "has gone");
    return;
  }
  if (has_come(op, rank)) {
    vt__text_add(text, "is in ");
    vt__text_add(text, add_place(text, group, rank) ? "" : "no call");
    return;
  }
  vt__text_add(text, "never came");
  if (recorded != VT_COMM_OP_NONE) {
    vt__text_add(text, ": it has recorded %s into a graph that was not launched", vt__comm_op_name(recorded));
    return;
  }
  vt__text_add(text, " (last: ");
  vt__text_add(text, add_place(text, group, rank) ? ")" : "no call yet)");
}

// Those who are missing come first: a text of many ranks may be cut.
void vt__inproc_expire(vt__comm_op *op) {
  char buffer[VT_ERROR_MESSAGE_MAX];
  vt__text text = vt__text_begin(buffer, sizeof(buffer));
  const vt_comm *comm = op->call.comm;
  uint64_t timeout_ns = op->call.timeout_ns != 0 ? op->call.timeout_ns : comm->timeout_ns;
  vt__text_add(&text, "%s number %llu timed out on rank %d after %.6g ms", vt__comm_op_name(op->call.op),
               (unsigned long long)op->number, comm->rank, (double)timeout_ns / 1e6);
  for (int32_t come = 0; come <= 1; come++) {
    for (int32_t r = 0; r < comm->world && text.length < text.capacity; r++) {
      if (has_come(op, r) == (come != 0)) {
        add_rank(&text, op, r);
      }
    }
  }
  vt__inproc_poison(vt__inproc_of(op), VT_ERR_TIMEOUT, vt__comm_op_function(op->call.op), "%s", buffer);
}

size_t vt__inproc_describe(void *state, char *buffer, size_t capacity) {
  const vt__inproc *group = state;
  vt__text text = vt__text_begin(buffer, capacity);
  for (int32_t r = 0; r < group->world; r++) {
    vt__text_add(&text, "rank %d: ", r);
    vt__text_add(&text, is_gone(group, r) ? "gone, last " : "");
    vt__text_add(&text, add_place(&text, group, r) ? "\n" : "no call yet\n");
  }
  return text.length;
}
