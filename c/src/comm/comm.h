// comm.h: the communicator handle, one operation of it, and how operations are run.
//
// An operation is a state machine: the front fills a vt__comm_call_data, a transport steps it. vt__comm_run() steps a set of
// operations on one thread until all have finished, so one thread can drive all ranks of a group.
#ifndef VT_COMM_COMM_H
#define VT_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/handle.h"
#include "base/thread.h"
#include "comm/algo/algo.h"
#include "comm/recorder.h"
#include "core/log.h"
#include "core/queue.h"
#include "core/validate.h"
#include "vllm_vt/comm.h"
#include "vllm_vt/comm_inspect.h"
#include "vllm_vt/comm_ops.h"
#include "vllm_vt/op.h"

struct vt__transport_ops;

struct vt_comm {
  vt__handle handle;
  int32_t rank;
  int32_t world;
  bool crowded;  // more ranks than processors
  vt_device device;
  uint64_t timeout_ns;  // of calls that name none
  vt_wait_mode wait;    // likewise
  const struct vt__transport_ops *transport;
  void *state;  // the transport's
  vt__comm_recorder *recorder;
  _Atomic uint32_t finalized;
  const vt__algo_wishes *wishes;  // the group's, which live as long as the transport's state
};

struct vt_comm_group {
  vt__handle handle;
  int32_t world;
  const struct vt__transport_ops *transport;
  void *state;      // the transport's
  vt_comm **comms;  // one reference to each
};

enum {
  VT__CALL_AGREE = 1u << 0,     // only compares; another provider moves the data
  VT__CALL_RECORDED = 1u << 1,  // runs from a graph
  VT__CALL_WAIT_SHIFT = 14,     // the two highest bits hold a vt_wait_mode
};

// A count for every rank: see parts.h.
typedef struct vt__comm_parts vt__comm_parts;

// What a call asks for. Fits the payload of a host call; immutable once submitted.
typedef struct vt__comm_call_data {
  vt_comm *comm;
  const void *send;
  void *recv;
  size_t count;           // with a count for every rank, their sum
  vt__comm_parts *parts;  // of operations with a count for every rank, NULL where they were refused; else NULL
  uint64_t timeout_ns;    // 0 = the communicator's
  uint64_t sequence;      // the caller's
  const char *provider;   // lives as long as the process
  vt_dtype dtype;
  vt_reduce_op reduce_op;
  int32_t peer;    // of a message, or the root, else -1
  int16_t op;      // a vt_comm_op
  uint16_t flags;  // VT__CALL_*
} vt__comm_call_data;

_Static_assert(sizeof(vt__comm_call_data) <= VT_HOST_CALL_PAYLOAD, "the payload must hold a call");

// Where an operation is. The transports use the stages in this order and may skip some.
enum {
  VT__STAGE_TOKEN = 0,    // waits for its turn among the operations of its rank
  VT__STAGE_PREPARE = 1,  // waits until it may overwrite what it published two operations ago
  VT__STAGE_MEET = 2,     // has published, waits for its peers
  VT__STAGE_LEAVE = 3,    // its own data is moved, waits for its peers'
  VT__STAGE_QUIESCE = 4,  // has failed, waits until no peer touches its memory
  VT__STAGE_END = 5,
};

// One operation in progress, or collected in a batch.
typedef struct vt__comm_op {
  vt__comm_call_data call;
  vt_queue *queue;         // in a batch: a reference, or NULL to run on the thread that ends it
  const char *refusal;     // not NULL: nothing runs, and the peers are told "rank k <refusal>"
  const vt__algo *algo;    // of a collective
  vt__algo_call schedule;  // what it depends on; known from PREPARE on, of messages too
  uint64_t number;         // among the operations of its kind; known from PREPARE on
  uint64_t deadline_ns;    // 0 until the clock was first looked at
  vt__comm_mark entry;     // of the flight recorder; NULL before PREPARE
  uint32_t ticket;         // its turn
  int32_t cursor;          // the next peer to look at
  int32_t stage;
  bool inside;  // its rank's gate counts it
  vt_status status;
} vt__comm_op;

// Collected or submitted operations. Blocks are recycled, never given back.
typedef struct vt__comm_block {
  struct vt__comm_block *next_free;
  _Atomic uint32_t refs;
  size_t capacity;
  size_t count;
  vt__comm_op *ops;
  bool refused;                     // all of it: the peers are told `text`
  char text[VT_ERROR_MESSAGE_MAX];  // "failed: ..."
} vt__comm_block;

// What each thread keeps for its operations. Thread-local, so that it outlives the thread's stack frames when the thread ends
// inside an operation.
typedef struct vt__comm_thread {
  vt__exit_guard run_guard;
  vt__comm_op *run_ops;  // what is being run
  size_t run_count;
  vt__comm_block *run_block;  // to be freed if the thread ends
  uint64_t runs;              // begun on this thread: tells whether a queue ran a call at once
  vt__comm_parts *parts;      // held by the calls that this thread is in, the innermost first
  vt__comm_op solo;
  int32_t depth;          // of open batches
  bool failed;            // a call of the batch was refused
  vt__comm_block *block;  // what the batch has collected; NULL before the first
  vt__exit_guard batch_guard;
  vt__saved_error failure;
} vt__comm_thread;

extern _Thread_local vt__comm_thread vt__comm_this_thread;

// Runs `count` operations to their end on this thread. Answers the first failure, with its record. `owned`, which may be NULL, is
// freed if the thread ends inside; without it the references of the first operation are dropped then.
vt_status vt__comm_run(vt__comm_op *ops, size_t count, vt__comm_block *owned);

// Sets the deadline of an operation whose time begins at `now`. vt__comm_run() does so at its first look at the clock; a transport
// does it before work that takes long.
void vt__comm_start_clock(vt__comm_op *op, uint64_t now);

// Runs one call on this thread: a vt__comm_call_data, or a payload that holds one. `refusal` as in vt__comm_op. The caller's
// reference to the communicator stays with the caller.
vt_status vt__comm_run_one(const void *call, const char *refusal);

// Collects, queues, records or runs a call that passed all checks. `function` is the public function.
vt_status vt__comm_submit(vt_queue *queue, vt__comm_call_data *call);

// Ends a call that was refused with `status`, whose record this thread holds: tells the peers, or fails the batch or the capture.
// `queue` is NULL where the queue can't be used, `caller` where it isn't known. Returns `status`.
vt_status vt__comm_refuse(vt_queue *queue, const vt__comm_call_data *call, vt_status status, const void *caller);

// Submits a block as one host call. The queue takes one reference to the block over in any case.
vt_status vt__comm_submit_block(vt_queue *queue, vt__comm_block *block, const void *caller);

// Takes, and gives up, a reference to all that a call needs.
void vt__comm_parts_ref(vt__comm_parts *parts);
void vt__comm_parts_unref(vt__comm_parts *parts);
static inline void vt__comm_call_ref(const vt__comm_call_data *call) {
  vt__handle_ref(call->comm);
  if (VT_UNLIKELY(call->parts != NULL)) {
    vt__comm_parts_ref(call->parts);
  }
}
static inline void vt__comm_call_unref(const vt__comm_call_data *call) {
  if (VT_UNLIKELY(call->parts != NULL)) {
    vt__comm_parts_unref(call->parts);
  }
  vt__handle_unref(call->comm);
}

// Makes a block ready to run: every operation at its beginning, all refused if the block is.
void vt__comm_block_rewind(vt__comm_block *block);

// Makes all operations of a block refused: the peers are told "rank k <text>".
void vt__comm_block_refuse(vt__comm_block *block, const char *text);

// The operations of a batch.
vt_status vt__comm_batch_add(vt_queue *queue, const vt__comm_call_data *call);
void vt__comm_batch_fail(vt_status status);

// handles.c: a group of `world` ranks with one reference; takes over the state of its transport, which is made. Of the options it
// takes devices, deadline and way to wait. NULL if there is no memory: then the state is given back.
vt_comm_group *vt__comm_group_make(const struct vt__transport_ops *transport, void *state, int32_t world,
                                   const vt_comm_group_options *options);

// front.c: brings the options of a call into it. NULL is fine.
vt_status vt__comm_take_options(vt__comm_call_data *call, const vt_comm_call *opts);

// Whether a name, NULL included, is that of this library's own provider.
static inline bool vt__comm_is_native(const char *provider) {
  return provider == NULL || strcmp(provider, VT_OP_NATIVE_NAME) == 0;
}
static inline bool vt__comm_in_batch(void) {
  return vt__comm_this_thread.depth > 0;
}

// trace.c: what the trace says of a host call: of one operation, with its number once it is known, or of those operations of a
// block that are of `queue` (NULL: of all).
void vt__comm_trace_call(vt_trace_event *event, const vt__comm_call_data *call, uint64_t number);
void vt__comm_trace_block(vt_trace_event *event, const vt__comm_block *block, const vt_queue *queue);

// validate.c: tells the validation layer what a call will use, and uses now that it was submitted.
void vt__comm_validate_check(const vt__comm_call_data *call, vt_queue *queue, vt__call_site site);
void vt__comm_validate_note(const vt__comm_call_data *call, vt_queue *queue, vt__call_site site);

// Makes the host calls of each file known to the trace.
void vt__comm_submit_describe(void);
void vt__comm_batch_describe(void);

// An empty block with one reference and room for `capacity` operations. NULL if there is no memory.
vt__comm_block *vt__comm_block_get(size_t capacity);

// Sees to it that `count` blocks of the usual size lie ready. False if there is no memory.
bool vt__comm_blocks_reserve(size_t count);

// Makes room for one more operation. False if there is no memory.
bool vt__comm_block_grow(vt__comm_block **block);

// Takes, and gives up, a reference. The last one drops the references of the operations and recycles the block.
void vt__comm_block_ref(vt__comm_block *block);
void vt__comm_block_put(vt__comm_block *block);

#endif
