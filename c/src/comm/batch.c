// batch.c: collecting operations on a thread, and their common end.
#include <stdio.h>

#include "comm/comm.h"
#include "comm/text.h"
#include "comm/transport.h"

void vt__comm_batch_fail(vt_status status) {
  vt__comm_thread *self = &vt__comm_this_thread;
  if (!self->failed) {
    self->failed = true;
    vt__error_save(&self->failure, status);
  }
}

vt_status vt__comm_batch_add(vt_queue *queue, const vt__comm_call_data *call) {
  vt__comm_thread *self = &vt__comm_this_thread;
  if (!vt__comm_block_grow(&self->block)) {
    vt_status status = vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, vt__comm_op_function(call->op), "no memory for a batch");
    vt__comm_batch_fail(status);
    return status;
  }
  vt__comm_op *op = &self->block->ops[self->block->count++];
  *op = (vt__comm_op){.call = *call, .queue = queue};
  op->call.flags |= queue != NULL && vt__queue_is_recording(queue) ? VT__CALL_RECORDED : 0u;
  vt__comm_call_ref(call);
  if (queue != NULL) {
    vt__handle_ref(queue);
  }
  return VT_OK;
}

// Whether an operation runs on the thread that ends the batch.
static bool runs_here(const vt__comm_op *op) {
  return op->queue == NULL || (op->queue->synchronous != 0 && !vt__queue_is_recording(op->queue));
}

// What the end of a batch has come to.
typedef struct outcome {
  vt__call_site site;  // of the end
  vt_status refused;   // not VT_OK: the whole batch is, for this reason
  vt_status first;     // failure, with its record
  vt__saved_error record;
} outcome;

static void note(outcome *out, vt_status status) {
  if (status < 0 && out->first == VT_OK) {
    out->first = status;
    vt__error_save(&out->record, status);
  }
}

// Runs what a block holds on this thread, and gives up the block.
static vt_status run_here(vt__comm_block *block) {
  vt__comm_block_rewind(block);
  vt_status status = vt__comm_run(block->ops, block->count, block);
  vt__comm_block_put(block);
  return status;
}

// Moves the operations of `queue` from one block to another, in order. Work needs no reference to its own queue.
static void move_ops(vt__comm_block *from, vt_queue *queue, vt__comm_block *to) {
  size_t kept = 0;
  bool recording = vt__queue_is_recording(queue);
  for (size_t i = 0; i < from->count; i++) {
    vt__comm_op op = from->ops[i];
    if (op.queue != queue) {
      from->ops[kept++] = op;
      continue;
    }
    vt__handle_unref(queue);
    op.queue = NULL;
    if (recording) {
      op.call.comm->transport->note_recorded(op.call.comm, op.call.op);
    }
    to->ops[to->count++] = op;
  }
  from->count = kept;
  if (from->refused) {
    vt__comm_block_refuse(to, from->text);
  }
}

// Submits `part`, the operations of one queue. Where the queue doesn't take them, the peers are told on this thread.
static void submit_part(vt__comm_block *part, vt_queue *queue, outcome *out) {
  bool recording = vt__queue_is_recording(queue);
  if (recording && part->refused) {
    // Nothing of it is recorded and nothing is published; a batch that failed fails the capture.
    (void)vt__queue_refused(queue, out->refused, out->site.caller);
    vt__comm_block_put(part);
    return;
  }
  vt_status status = vt__queue_check_submit(queue, "vt_comm_batch_end");
  if (status == VT_OK) {
    vt__comm_block_ref(part);
    status = vt__comm_submit_block(queue, part, out->site.caller);
    for (size_t i = 0; vt__validate_is_on() && status == VT_OK && !part->refused && i < part->count; i++) {
      vt__comm_validate_note(&part->ops[i].call, queue, out->site);
    }
  }
  if (status == VT_NOT_READY) {
    status = vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_comm_batch_end", "the ring of queue %llu is full",
                          (unsigned long long)queue->handle.id);
  }
  note(out, status);
  if (status == VT_OK || recording) {
    vt__comm_block_put(part);
  } else {
    if (!part->refused) {
      vt__comm_block_refuse(part, "failed: its queue took no work");
    }
    (void)run_here(part);
  }
}

// Takes the part of `queue` out of a block and submits it. Without memory for it, the whole rest of the batch is refused.
static void submit_queue(vt__comm_block *block, vt_queue *queue, outcome *out) {
  size_t count = 0;
  for (size_t i = 0; i < block->count; i++) {
    count += block->ops[i].queue == queue;
  }
  vt__comm_block *part = vt__comm_block_get(count);
  if (part == NULL) {
    note(out, vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_comm_batch_end", "no memory for a batch"));
    (void)vt__queue_refused(queue, out->first, out->site.caller);
    vt__comm_block_refuse(block, "failed: no memory for a batch");
    for (size_t i = 0; i < block->count; i++) {
      if (block->ops[i].queue != NULL) {
        vt__handle_unref(block->ops[i].queue);
        block->ops[i].queue = NULL;
      }
    }
    return;
  }
  vt__handle_ref(queue);
  move_ops(block, queue, part);
  submit_part(part, queue, out);
  vt__handle_unref(queue);
}

// What the mark of a queue stands for.
typedef struct marked {
  const vt__comm_block *block;
  const vt_queue *queue;
} marked;

static vt_status do_nothing(void *payload) {
  (void)payload;
  return VT_OK;
}

static void describe_mark(const void *payload, vt_trace_event *event) {
  marked mark;
  memcpy(&mark, payload, sizeof(mark));
  vt__comm_trace_block(event, mark.block, mark.queue);
}

void vt__comm_batch_describe(void) {
  vt__trace_describe(do_nothing, describe_mark);
}

// The operations of several synchronous queues run together, outside of all of them. Each queue gets a ticket, and a trace, for its
// part.
static void mark_queues(const vt__comm_block *block) {
  vt_host_call mark = {.run = do_nothing};
  for (size_t i = 0; i < block->count; i++) {
    vt_queue *queue = block->ops[i].queue;
    size_t k = i;
    while (k > 0 && block->ops[k - 1].queue != queue) {
      k--;
    }
    if (queue != NULL && k == 0) {
      memcpy(mark.payload, &(marked){block, queue}, sizeof(marked));
      (void)vt__queue_submit_call(queue, &mark, (vt__call_site){"vt_comm_batch_end", NULL});
    }
  }
}

// Submits to the asynchronous and recording queues, in order of their first operation, then runs the rest. Gives up the block.
static vt_status dispatch(vt__comm_block *block, vt_status refused, vt__call_site site) {
  outcome out;
  out.site = site;
  out.refused = refused;
  out.first = VT_OK;
  for (size_t i = 0; i < block->count;) {
    if (runs_here(&block->ops[i])) {
      i++;
    } else {
      submit_queue(block, block->ops[i].queue, &out);
    }
  }
  if (!block->refused) {
    mark_queues(block);
  }
  note(&out, run_here(block));
  return out.first == VT_OK ? VT_OK : vt__error_restore(&out.record);
}

static bool is_to_itself(const vt__comm_call_data *call) {
  return vt__comm_is_message(call->op) && call->peer == call->comm->rank;
}

// A message to oneself has no peer that would wait for it, and its other side may not have been called.
static void forget_self_messages(vt__comm_block *block) {
  size_t kept = 0;
  for (size_t i = 0; i < block->count; i++) {
    vt__comm_op op = block->ops[i];
    if (!is_to_itself(&op.call)) {
      block->ops[kept++] = op;
      continue;
    }
    if (op.queue != NULL) {
      vt__handle_unref(op.queue);
    }
    vt__comm_call_unref(&op.call);
  }
  block->count = kept;
}

// Tells the peers of all operations collected that they will not run.
static void drop_batch(vt__comm_block *block, const char *text, vt_status status) {
  forget_self_messages(block);
  vt__comm_block_refuse(block, text);
  (void)dispatch(block, status, (vt__call_site){0});  // nothing of it is used
}

static void thread_ends(vt__exit_guard *guard) {
  vt__comm_thread *self = &vt__comm_this_thread;
  vt__comm_block *block = self->block;
  (void)guard;
  self->block = NULL;
  self->depth = 0;
  if (block != NULL) {
    drop_batch(block, "ended its thread inside a batch", VT_OK);
  }
}

// How many more messages a rank sends to itself than it receives from itself.
static int64_t self_surplus(const vt__comm_block *block, const vt_comm *comm) {
  int64_t surplus = 0;
  for (size_t i = 0; i < block->count; i++) {
    const vt__comm_call_data *call = &block->ops[i].call;
    if (call->comm == comm && is_to_itself(call)) {
      surplus += call->op == VT_COMM_OP_SEND ? 1 : -1;
    }
  }
  return surplus;
}

// A message to oneself has both its sides in the batch. Such messages are rare, so looking at all operations for each is quick.
static vt_status check_self_messages(const vt__comm_block *block) {
  for (size_t i = 0; i < block->count; i++) {
    const vt__comm_call_data *call = &block->ops[i].call;
    int64_t surplus = is_to_itself(call) ? self_surplus(block, call->comm) : 0;
    if (surplus != 0) {
      return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_comm_batch_end",
                          "the batch has %lld %s of rank %d to itself without the other side",
                          (long long)(surplus > 0 ? surplus : -surplus), surplus > 0 ? "sends" : "receives", call->comm->rank);
    }
  }
  return VT_OK;
}

// Whether the queue of an operation takes it as it would have at the call.
static vt_status check_queue(const vt__comm_op *op) {
  vt_queue *queue = op->queue;
  VT_TRY(vt__queue_check_submit(queue, "vt_comm_batch_end"));
  bool recording = vt__queue_is_recording(queue);
  if (recording != ((op->call.flags & VT__CALL_RECORDED) != 0)) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_comm_batch_end",
                        "queue %llu has %s a capture since %s was called", (unsigned long long)queue->handle.id,
                        recording ? "joined" : "left", vt__comm_op_function(op->call.op));
  }
  return recording ? VT_OK : vt__queue_get_failure(queue);
}

// An error drops the whole batch, so all queues are asked before the first of them gets anything.
static vt_status check_queues(const vt__comm_block *block) {
  for (size_t i = 0; i < block->count; i++) {
    if (block->ops[i].queue != NULL && (i == 0 || block->ops[i].queue != block->ops[i - 1].queue)) {
      VT_TRY(check_queue(&block->ops[i]));
    }
  }
  return VT_OK;
}

vt_status vt_comm_batch_begin(void) {
  VT_TRY(vt__check_usable(__func__));
  vt__comm_thread *self = &vt__comm_this_thread;
  if (self->depth++ == 0) {
    self->failed = false;
    self->block = NULL;
    self->batch_guard.on_thread_end = thread_ends;
    vt__exit_guard_push(&self->batch_guard);
  }
  return VT_OK;
}

static vt_status check_open(const char *function) {
  VT_TRY(vt__check_usable(function));
  if (!vt__comm_in_batch()) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function, "no batch was begun on this thread");
  }
  return VT_OK;
}

// Leaves the outermost batch. Answers what it collected, or NULL.
static vt__comm_block *close_batch(void) {
  vt__comm_thread *self = &vt__comm_this_thread;
  vt__comm_block *block = self->block;
  self->depth = 0;
  self->block = NULL;
  vt__exit_guard_pop(&self->batch_guard);
  return block;
}

vt_status vt_comm_batch_end(void) {
  VT_TRY(check_open(__func__));
  vt__comm_thread *self = &vt__comm_this_thread;
  if (self->depth > 1) {
    self->depth--;
    return VT_OK;
  }
  vt__comm_block *block = close_batch();
  if (block != NULL && !self->failed) {
    vt_status status = check_self_messages(block);
    status = status == VT_OK ? check_queues(block) : status;
    if (status == VT_OK) {
      return dispatch(block, VT_OK, VT__HERE);
    }
    vt__comm_batch_fail(status);
  }
  if (!self->failed) {
    return VT_OK;
  }
  vt_status status = vt__error_restore(&self->failure);
  if (block != NULL) {
    char text[VT_ERROR_MESSAGE_MAX];
    (void)snprintf(text, sizeof(text), "failed: %.480s", self->failure.message);
    drop_batch(block, text, status);
  }
  return vt__error_restore(&self->failure);
}

vt_status vt_comm_batch_abandon(void) {
  VT_TRY(check_open(__func__));
  vt__comm_block *block = close_batch();
  if (block != NULL) {
    drop_batch(block, "abandoned a batch", VT_OK);
  }
  return VT_OK;
}
