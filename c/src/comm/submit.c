// submit.c: from a checked call to its execution: now on this thread, or as a host call of its queue.
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "comm/comm.h"
#include "comm/text.h"
#include "comm/transport.h"

// Room for a refusal, prefix included.
typedef struct refusal_text {
  char text[VT_ERROR_MESSAGE_MAX];
} refusal_text;

// What the peers are told where the queue of a call has failed: the thread's record holds the failure.
static refusal_text queue_failed(void) {
  refusal_text out;
  (void)snprintf(out.text, sizeof(out.text), "failed: its queue had failed: %.440s", vt_last_error()->message);
  return out;
}

static vt__comm_call_data unpack(const void *payload) {
  vt__comm_call_data call;
  memcpy(&call, payload, sizeof(call));
  return call;
}

// The deadline of a refusal is the communicator's: what was given may be what was refused.
static vt__comm_call_data as_refused(const vt__comm_call_data *call) {
  vt__comm_call_data refused = *call;
  refused.timeout_ns = 0;
  return refused;
}

static vt_status run_call(void *payload) {
  return vt__comm_run_one(payload, NULL);
}

static void cancel_call(void *payload) {
  vt__comm_call_data call = unpack(payload);
  vt__comm_call_data refused = as_refused(&call);
  refusal_text why = queue_failed();
  (void)vt__comm_run_one(&refused, why.text);
}

static void drop_call(void *payload) {
  vt__comm_call_data call = unpack(payload);
  vt__comm_call_unref(&call);
}

static vt__comm_block *block_of(const void *payload) {
  vt__comm_block *block;
  memcpy(&block, payload, sizeof(block));
  return block;
}

static vt_status run_block(void *payload) {
  vt__comm_block *block = block_of(payload);
  vt__comm_block_rewind(block);
  // The queue drops its reference, so the run does not own the block.
  return vt__comm_run(block->ops, block->count, NULL);
}

// A graph may run the block again later, so the refusal is of this time only.
static void cancel_block(void *payload) {
  vt__comm_block *block = block_of(payload);
  refusal_text why = queue_failed();
  vt__comm_block_rewind(block);
  for (size_t i = 0; i < block->count; i++) {
    block->ops[i].refusal = block->refused ? block->text : why.text;
  }
  (void)vt__comm_run(block->ops, block->count, NULL);
}

static void drop_block(void *payload) {
  vt__comm_block_put(block_of(payload));
}

vt_status vt__comm_submit_block(vt_queue *queue, vt__comm_block *block, const void *caller) {
  vt_host_call host = {.run = run_block, .cancel = cancel_block, .drop = drop_block};
  memcpy(host.payload, &block, sizeof(block));
  return vt__queue_submit_call(queue, &host, (vt__call_site){"vt_comm_batch_end", caller});
}

static void describe_call(const void *payload, vt_trace_event *event) {
  vt__comm_call_data call = unpack(payload);
  vt__comm_trace_call(event, &call, event->is_end != 0 ? vt__comm_this_thread.solo.number : 0);
}

static void describe_block(const void *payload, vt_trace_event *event) {
  vt__comm_trace_block(event, block_of(payload), NULL);
}

void vt__comm_submit_describe(void) {
  vt__trace_describe(run_call, describe_call);
  vt__trace_describe(run_block, describe_block);
}

// Tells the peers that a call of this rank will not run, keeping the thread's record.
static void tell_now(const vt__comm_call_data *call, const char *refusal, vt_status status) {
  vt__saved_error record;
  vt__error_save(&record, status);
  vt__comm_call_data refused = as_refused(call);
  // The thread may end inside, hence the reference.
  vt__comm_call_ref(call);
  (void)vt__comm_run_one(&refused, refusal);
  vt__comm_call_unref(call);
  (void)vt__error_restore(&record);
}

// Queues one refusal. VT_NOT_READY where the ring is full.
static vt_status submit_refusal(vt_queue *queue, const vt__comm_call_data *call, const char *refusal) {
  vt__comm_block *block = vt__comm_block_get(1);
  if (block == NULL) {
    return VT_ERR_OUT_OF_MEMORY;
  }
  vt__comm_block_refuse(block, refusal);
  block->count = 1;
  block->ops[0] = (vt__comm_op){.call = as_refused(call)};
  vt__comm_call_ref(call);
  return vt__comm_submit_block(queue, block, NULL);
}

// Queues what tell_now() does, so that the call takes its number in stream order; a full ring is waited for, also where a
// submission would not wait. False if that was not possible.
static bool tell_in_order(vt_queue *queue, const vt__comm_call_data *call, const char *refusal, vt_status status) {
  vt__saved_error record;
  vt__error_save(&record, status);
  vt__backoff backoff = vt__backoff_begin(UINT32_MAX, VT__WAIT_ADAPTIVE);
  vt_status queued = submit_refusal(queue, call, refusal);
  while (queued == VT_NOT_READY) {
    (void)vt__backoff_wait(&backoff, NULL);
    queued = submit_refusal(queue, call, refusal);
  }
  (void)vt__error_restore(&record);
  return queued == VT_OK;
}

// The data plane of another provider follows an agreement. If that one was queued and this one wasn't, the agreement has failed or
// will be cancelled, and the peers don't wait for more.
static bool follows_agreement(const vt__comm_call_data *call) {
  return (call->flags & VT__CALL_AGREE) == 0 && !vt__comm_is_message(call->op) && !vt__comm_is_native(call->provider);
}

static vt_status submit_call(vt_queue *queue, vt__comm_call_data *call) {
  bool recording = vt__queue_is_recording(queue);
  uint64_t runs = vt__comm_this_thread.runs;
  vt_host_call host = {.run = run_call, .cancel = cancel_call, .drop = drop_call};
  call->flags |= recording ? VT__CALL_RECORDED : 0u;
  // The queue's, until it drops the call; the caller's own may be given up meanwhile.
  vt__comm_call_ref(call);
  memcpy(host.payload, call, sizeof(*call));
  vt_status status = vt__queue_submit_call(queue, &host, (vt__call_site){vt__comm_op_function(call->op), NULL});
  if (VT_LIKELY(vt__comm_this_thread.runs != runs)) {
    return status;  // of the operation, which ran on this thread
  }
  if (recording && status == VT_OK) {
    call->comm->transport->note_recorded(call->comm, call->op);
  }
  if (status < 0 && !recording && !follows_agreement(call)) {
    refusal_text why = queue_failed();
    tell_now(call, why.text, status);
  }
  return status;
}

vt_status vt__comm_submit(vt_queue *queue, vt__comm_call_data *call) {
  return vt__comm_in_batch() ? vt__comm_batch_add(queue, call) : submit_call(queue, call);
}

vt_status vt__comm_refuse(vt_queue *queue, const vt__comm_call_data *call, vt_status status, const void *caller) {
  if (vt__comm_in_batch()) {
    vt__comm_batch_fail(status);
    // Without memory for it, the refused call itself can't be told; the status is what the caller gets anyway.
    (void)vt__comm_batch_add(queue, call);
    return vt__error_restore(&vt__comm_this_thread.failure);
  }
  if (queue != NULL && vt__queue_is_recording(queue)) {
    return vt__queue_refused(queue, status, caller);
  }
  char refusal[VT_ERROR_MESSAGE_MAX];
  (void)snprintf(refusal, sizeof(refusal), "failed: %.480s", vt_last_error()->message);
  if (queue == NULL || queue->synchronous != 0 || !tell_in_order(queue, call, refusal, status)) {
    tell_now(call, refusal, status);
  }
  return status;
}
