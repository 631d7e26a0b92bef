// comm_inspect.h: what a communicator did, and what its providers see.
#ifndef VLLM_VT_COMM_INSPECT_H
#define VLLM_VT_COMM_INSPECT_H

#include "vllm_vt/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a communicator does, in the flight recorder.
typedef int32_t vt_comm_op;

enum {
  VT_COMM_OP_NONE = 0,
  VT_COMM_OP_ALL_REDUCE = 1,
  VT_COMM_OP_ALL_GATHER = 2,
  VT_COMM_OP_SEND = 3,
  VT_COMM_OP_RECV = 4,
  VT_COMM_OP_BARRIER = 5,
  VT_COMM_OP_REDUCE = 6,
  VT_COMM_OP_BROADCAST = 7,
  VT_COMM_OP_GATHER = 8,
  VT_COMM_OP_SCATTER = 9,
  VT_COMM_OP_REDUCE_SCATTER = 10,
  VT_COMM_OP_ALL_TO_ALL = 11,
  VT_COMM_OP_ALL_GATHERV = 12,
  VT_COMM_OP_REDUCE_SCATTERV = 13,
  VT_COMM_OP_ALL_TO_ALLV = 14,
  VT_COMM_OP_SPLIT = 15,  // no operation of a queue, and no provider's; so is the next one
  VT_COMM_OP_FINALIZE = 16,
  VT_COMM_OP_COUNT = 17,
};

// How far an operation has come.
typedef int32_t vt_comm_state;

enum {
  VT_COMM_STATE_STARTED = 0,   // at the head of its queue
  VT_COMM_STATE_WAITING = 1,   // published, waits for its peers
  VT_COMM_STATE_MOVING = 2,    // in the data phase
  VT_COMM_STATE_FINISHED = 3,  // completed
  VT_COMM_STATE_FAILED = 4,
};

// One entry of the flight recorder.
typedef struct vt_comm_record {
  uint64_t sequence;     // collectives of this communicator count from 1; messages count per pair and direction
  uint64_t count;        // elements; with a count for every rank, their sum (of all_to_allv: what this rank sends)
  uint64_t start_ticks;  // cycle counter
  uint64_t end_ticks;    // 0 while in progress
  vt_comm_op op;
  vt_dtype dtype;
  vt_reduce_op reduce_op;
  int32_t peer;  // of a message, or the root, else -1
  vt_comm_state state;
  vt_status status;
} vt_comm_record;

// Reads the last operations of a communicator, newest first; at most 256 are kept. An operation that is still in progress when 256
// others have begun after it is no longer among them.
//
// Order    a snapshot; entries in progress may change while they are read
// Memory   fills at most `capacity` entries
// Units    entries
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live communicator, `out_count` NULL, or `records` NULL with a capacity
VT_API vt_status vt_comm_get_records(vt_comm *comm, vt_comm_record *records, size_t capacity, size_t *out_count);

// What a communicator promises: bits. Those of one process promise all of them.
enum {
  VT_COMM_GUARANTEE_SAME_BITS = 1 << 0,        // on every rank, in every run, for every size and algorithm
  VT_COMM_GUARANTEE_WIDE_HALVES = 1 << 1,      // half types accumulate in f32 and are rounded once
  VT_COMM_GUARANTEE_NAN_PROPAGATES = 1 << 2,   // and min and max are those of IEEE 754-2019
  VT_COMM_GUARANTEE_MISMATCH_FOUND = 1 << 3,   // on all ranks, before user memory is touched
  VT_COMM_GUARANTEE_SEND_IS_MATCHED = 1 << 4,  // a send completes after its receive was matched
  VT_COMM_GUARANTEE_QUIET_RETURN = 1 << 5,     // nobody writes to a rank's memory after its call has returned
};

// Reads what the transport of a communicator promises.
//
// Order    none
// Memory   none
// Units    VT_COMM_GUARANTEE_* bits
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live communicator, or `out_guarantees` NULL
VT_API vt_status vt_comm_get_guarantees(vt_comm *comm, uint32_t *out_guarantees);

// How a communicator is. The caller sets struct_size.
typedef struct vt_comm_health {
  size_t struct_size;
  uint64_t last_sequence;  // of the last operation that the rank has begun; 0: none yet
  vt_comm_op last_op;
  vt_comm_state last_state;
  vt_status last_status;  // how it ended, if it has
  int32_t world;
  int32_t alive;     // ranks that have not gone
  vt_status status;  // VT_OK, or what poisoned the group
} vt_comm_health;

// Reads how a communicator is, without blocking and without writing an error record for the group's state.
//
// Order    a snapshot; ranks go on while it is taken
// Memory   fills at most out_health->struct_size bytes
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live communicator, `out_health` NULL or its struct_size too small
VT_API vt_status vt_comm_get_health(vt_comm *comm, vt_comm_health *out_health);

// What a provider of a communicator operation is asked to support: the descriptor of vt_op_get().
typedef struct vt_comm_descriptor {
  size_t struct_size;
  vt_comm *comm;
  vt_queue *queue;
  size_t count;  // as in vt_comm_record
  vt_comm_op op;
  vt_dtype dtype;
  vt_reduce_op reduce_op;
  int32_t peer;  // of a message, or the root, else -1
} vt_comm_descriptor;

// The function types of the operations "vt.all_reduce", "vt.all_gather", "vt.send", "vt.recv", "vt.barrier", "vt.reduce",
// "vt.broadcast", "vt.gather", "vt.scatter", "vt.reduce_scatter", "vt.all_to_all", "vt.all_gatherv", "vt.reduce_scatterv" and
// "vt.all_to_allv". `opts` is never NULL. A provider gets the call with its name in opts->provider and passes opts on if it
// declines. Arrays of counts are the caller's: who needs them after its return copies them.
typedef vt_status (*vt_comm_all_reduce_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count,
                                           vt_dtype dtype, vt_reduce_op op, const vt_comm_call *opts);
typedef vt_status (*vt_comm_all_gather_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count,
                                           vt_dtype dtype, const vt_comm_call *opts);
typedef vt_status (*vt_comm_send_fn)(vt_comm *comm, vt_queue *queue, const void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                                     const vt_comm_call *opts);
typedef vt_status (*vt_comm_recv_fn)(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                                     const vt_comm_call *opts);
typedef vt_status (*vt_comm_barrier_fn)(vt_comm *comm, vt_queue *queue, const vt_comm_call *opts);
typedef vt_status (*vt_comm_reduce_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                       vt_reduce_op op, int32_t root, const vt_comm_call *opts);
typedef vt_status (*vt_comm_broadcast_fn)(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t root,
                                          const vt_comm_call *opts);
typedef vt_status (*vt_comm_gather_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                       int32_t root, const vt_comm_call *opts);
typedef vt_status (*vt_comm_scatter_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                        int32_t root, const vt_comm_call *opts);
typedef vt_status (*vt_comm_reduce_scatter_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count,
                                               vt_dtype dtype, vt_reduce_op op, const vt_comm_call *opts);
typedef vt_status (*vt_comm_all_to_all_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count,
                                           vt_dtype dtype, const vt_comm_call *opts);
typedef vt_status (*vt_comm_all_gatherv_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                                            const size_t *displs, vt_dtype dtype, const vt_comm_call *opts);
typedef vt_status (*vt_comm_reduce_scatterv_fn)(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                                                vt_dtype dtype, vt_reduce_op op, const vt_comm_call *opts);
typedef vt_status (*vt_comm_all_to_allv_fn)(vt_comm *comm, vt_queue *queue, const void *send, const size_t *send_counts,
                                            const size_t *send_displs, void *recv, const size_t *recv_counts,
                                            const size_t *recv_displs, vt_dtype dtype, const vt_comm_call *opts);

#ifdef __cplusplus
}
#endif

#endif
