// run.c: running operations on this thread: step them in turn, wait with a backoff, look at the deadlines.
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "comm/parts.h"
#include "comm/transport.h"

_Thread_local vt__comm_thread vt__comm_this_thread;

// The first failure of a run, kept while the others go on.
typedef struct outcome {
  vt_status status;
  vt__saved_error error;
} outcome;

static void thread_ends(vt__exit_guard *guard) {
  vt__comm_thread *self = &vt__comm_this_thread;
  (void)guard;
  for (size_t i = 0; i < self->run_count; i++) {
    vt__comm_op *op = &self->run_ops[i];
    if (op->stage != VT__STAGE_END) {
      op->call.comm->transport->forsake(op);
    }
  }
  if (self->run_block != NULL) {
    vt__comm_block_put(self->run_block);
  } else if (self->run_ops == &self->solo) {
    vt__comm_call_unref(&self->solo.call);
  }
  vt__comm_parts_abandon();
}

// The clock of an operation runs from its turn to the end of its data phase.
static bool is_timed(const vt__comm_op *op) {
  return op->stage > VT__STAGE_TOKEN && op->stage < VT__STAGE_QUIESCE;
}

void vt__comm_start_clock(vt__comm_op *op, uint64_t now) {
  uint64_t timeout_ns = op->call.timeout_ns != 0 ? op->call.timeout_ns : op->call.comm->timeout_ns;
  op->deadline_ns = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

// Reading the clock costs a good part of a small operation, so an operation's clock starts at the first look, some polls after its
// turn.
static void look_at_clock(vt__comm_op *ops, size_t count) {
  uint64_t now = vt__now_ns();
  for (size_t i = 0; i < count; i++) {
    vt__comm_op *op = &ops[i];
    if (!is_timed(op)) {
      continue;
    }
    if (op->deadline_ns == 0) {
      vt__comm_start_clock(op, now);
    } else if (now >= op->deadline_ns) {
      op->call.comm->transport->expire(op);
    }
  }
}

// Steps every unfinished operation once. Answers whether any of them came further; *first skips the finished ones at the beginning.
static bool step_all(vt__comm_op *ops, size_t count, size_t *first, outcome *out) {
  bool moved = false;
  size_t begin = count;
  for (size_t i = *first; i < count; i++) {
    vt__comm_op *op = &ops[i];
    int32_t before = op->stage;
    if (before == VT__STAGE_END) {
      continue;
    }
    bool ended = op->call.comm->transport->step(op);
    moved |= op->stage != before;
    if (!ended && begin == count) {
      begin = i;
    }
    if (ended && op->status != VT_OK && out->status == VT_OK) {
      out->status = op->status;
      vt__error_save(&out->error, op->status);
    }
  }
  *first = begin;
  return moved;
}

// Where nothing moved: what the first unfinished operation waits for decides which bell the thread sleeps on. What the others wait
// for is found at the end of that sleep, 1 ms later at most.
static void wait_for_peers(vt__backoff *backoff, vt__comm_op *ops, size_t count) {
  vt__bell *bell = VT_UNLIKELY(backoff->tired) ? ops->call.comm->transport->bell(ops) : NULL;
  if (vt__backoff_wait(backoff, bell)) {
    look_at_clock(ops, count);
  }
}

_Static_assert((int)VT__WAIT_ADAPTIVE == VT_WAIT_MODE_DEFAULT && (int)VT__WAIT_SLEEP == VT_WAIT_MODE_BLOCK &&
                   (int)VT__WAIT_YIELD == VT_WAIT_MODE_YIELD && (int)VT__WAIT_SPIN == VT_WAIT_MODE_SPIN,
               "a policy is a wait mode");

static vt__wait_policy policy_of(const vt__comm_op *op) {
  uint32_t wanted = (uint32_t)op->call.flags >> VT__CALL_WAIT_SHIFT;
  return (vt__wait_policy)(wanted != VT_WAIT_MODE_DEFAULT ? wanted : (uint32_t)op->call.comm->wait);
}

static vt_status run_many(vt__comm_op *ops, size_t count, vt__backoff backoff) {
  outcome out;
  out.status = VT_OK;
  for (size_t first = 0;;) {
    bool moved = step_all(ops, count, &first, &out);
    if (first == count) {
      return out.status == VT_OK ? VT_OK : vt__error_restore(&out.error);
    }
    if (moved) {
      vt__backoff_moved(&backoff);
    } else {
      wait_for_peers(&backoff, ops + first, count - first);
    }
  }
}

static vt_status run_one(vt__comm_op *op, vt__backoff backoff) {
  bool (*step)(vt__comm_op *) = op->call.comm->transport->step;
  for (int32_t stage = op->stage; !step(op);) {
    if (op->stage != stage) {
      stage = op->stage;
      vt__backoff_moved(&backoff);
    } else {
      wait_for_peers(&backoff, op, 1);
    }
  }
  vt__backoff_moved(&backoff);
  return op->status;
}

vt_status vt__comm_run(vt__comm_op *ops, size_t count, vt__comm_block *owned) {
  if (count == 0) {
    return VT_OK;
  }
  vt__comm_thread *self = &vt__comm_this_thread;
  self->run_ops = ops;
  self->run_count = count;
  self->run_block = owned;
  self->runs++;
  self->run_guard.on_thread_end = thread_ends;
  vt__exit_guard_push(&self->run_guard);
  for (size_t i = 0; i < count; i++) {
    ops[i].call.comm->transport->begin(&ops[i]);
  }
  vt__backoff backoff = vt__backoff_begin((uint32_t)ops[0].call.comm->world, policy_of(ops));
  vt_status status = count == 1 ? run_one(ops, backoff) : run_many(ops, count, backoff);
  vt__exit_guard_pop(&self->run_guard);
  return status;
}

vt_status vt__comm_run_one(const void *call, const char *refusal) {
  vt__comm_op *op = &vt__comm_this_thread.solo;
  memcpy(&op->call, call, sizeof(op->call));
  op->queue = NULL;
  op->refusal = refusal;
  op->number = 0;
  op->deadline_ns = 0;
  op->entry = NULL;
  op->stage = VT__STAGE_TOKEN;
  op->inside = false;
  op->status = VT_OK;
  return vt__comm_run(op, 1, NULL);
}
