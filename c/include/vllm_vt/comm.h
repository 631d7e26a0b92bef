// comm.h: collectives and messages between the ranks of a group.
//
// Every operation is ordered on a queue of the communicator's device: on a synchronous queue it has completed when the call
// returns, on an asynchronous one it runs behind the earlier work. All ranks of a group make the same calls in the same order; the
// ranks compare what they called before any user memory is touched.
//
// Results are the same bits on every rank, in every run and for every size: elements are reduced in rank order, half types in f32
// with one rounding at the end, NaN results are the canonical quiet NaN, min and max follow IEEE 754-2019 minimum and maximum.
// A world of 1 is the identity, byte for byte.
//
// VT_ERR_MISMATCH leaves the group usable. VT_ERR_TIMEOUT, VT_ERR_PEER_LOST and VT_ERR_ABORTED poison it: every later call on any
// of its ranks answers the first cause, and the contents of receive buffers of the failed call are indeterminate. A call returns
// one of these only when no peer can touch its buffers any more.
#ifndef VLLM_VT_COMM_H
#define VLLM_VT_COMM_H

#include "vllm_vt/comm_group.h"
#include "vllm_vt/dtype.h"
#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_reduce_op;

enum {
  VT_REDUCE_SUM = 0,
  VT_REDUCE_MAX = 1,
  VT_REDUCE_MIN = 2,
  VT_REDUCE_PROD = 3,
  VT_REDUCE_AVG = 4,  // the accumulated sum divided by the world, then rounded once; integers truncate
  VT_REDUCE_COUNT = 5,
};

// Options of one call. NULL means all defaults. Start from VT_COMM_CALL_INIT.
typedef struct vt_comm_call {
  size_t struct_size;
  uint64_t timeout_ns;   // counted from when the operation reaches the head of its queue; 0 = the group's; UINT64_MAX is refused
  uint64_t sequence;     // the caller's own number of this call, compared between the ranks; 0 = not given
  const char *provider;  // set by the routing layer; callers leave it NULL
  vt_wait_mode wait;     // how this rank waits for the others in this call; default = as the group's options say
} vt_comm_call;

#define VT_COMM_CALL_INIT \
  { sizeof(vt_comm_call), 0, 0, NULL, VT_WAIT_MODE_DEFAULT }

// Reduces the ranks' `send` arrays element by element; every rank gets the result in `recv`.
//
// Order    in stream order
// Memory   in place with send == recv; any other overlap is refused. Any byte address. NULL is fine for count 0
// Units    `count` elements of `dtype` on every rank
// Threads  calls on one communicator are made in the same order on every rank; two at once are serialised in an unspecified order
// Capture  recorded, the deadline too; ranks meet at each launch
// Errors   VT_ERR_INVALID_ARGUMENT     not live, a NULL array, unknown dtype or op, a type that can't be reduced, bytes that
//                                      overflow, an overlap, a queue of another device, an infinite deadline, an unknown
//                                      wait mode. The peers are told
//          VT_ERR_MISMATCH             the ranks called different things, or one of them was refused; no user memory was touched
//          VT_ERR_TIMEOUT              the deadline passed; the message says who is where
//          VT_ERR_PEER_LOST            a rank has gone
//          VT_ERR_ABORTED              the group was aborted
//          VT_ERR_NOT_FOUND            no provider wants the call
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          or the failure that stuck to the queue
VT_API vt_status vt_comm_all_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                    vt_reduce_op op, const vt_comm_call *opts);

// Gathers the ranks' `send` arrays in rank order; every rank gets them all in `recv`.
//
// Order    in stream order
// Memory   `recv` holds world * count elements. In place with send == recv + rank * count; any other overlap is refused
// Units    `count` elements per rank; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce()
VT_API vt_status vt_comm_all_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                    const vt_comm_call *opts);

// Sends to one rank. It completes after the matching receive has taken the data. Sends from one rank to another match its receives
// in order. To oneself only inside a batch that holds the matching receive.
//
// Order    in stream order
// Memory   any byte address; NULL is fine for count 0
// Units    `count` elements; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce(), and VT_ERR_INVALID_ARGUMENT for a peer that isn't a rank, or to oneself outside a batch
VT_API vt_status vt_comm_send(vt_comm *comm, vt_queue *queue, const void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                              const vt_comm_call *opts);

// Receives from one rank.
//
// Order    in stream order
// Memory   any byte address; NULL is fine for count 0
// Units    `count` elements, the same as the sender's
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_send()
VT_API vt_status vt_comm_recv(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                              const vt_comm_call *opts);

// Meets all ranks: none passes before all have arrived.
//
// Order    in stream order
// Memory   none
// Units    none
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce()
VT_API vt_status vt_comm_barrier(vt_comm *comm, vt_queue *queue, const vt_comm_call *opts);

// Begins a batch on this thread. Until the outermost end, operations of any communicators are collected and none of them runs. They
// are then in progress together: collectives of one communicator in order, messages of one pair in order, everything else in any
// order. So one thread can drive all ranks of a group, and exchanges can't deadlock on their order.
//
// Order    the batch takes, on each of its queues, the place of vt_comm_batch_end()
// Memory   buffers must live until the operations have completed
// Units    batches may nest: only the outermost end runs them
// Threads  a batch belongs to the thread
// Capture  allowed
// Errors   VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_comm_batch_begin(void);

// Ends a batch. The outermost end runs, queues or records what was collected. If a call inside the batch was refused, nothing of it
// runs: the peers are told, and the end answers that refusal.
//
// Order    see vt_comm_batch_begin(). On synchronous queues all operations have completed when it returns
// Memory   none
// Units    none
// Threads  the thread that began
// Capture  records the operations of capturing queues
// Errors   VT_ERR_FAILED_PRECONDITION  no batch was begun on this thread
//                                      or one of its queues could take no work (a full ring included): the peers are told
//          VT_ERR_INVALID_ARGUMENT     a send to oneself without its receive, or the other way round
//          or the first failure of an operation
VT_API vt_status vt_comm_batch_end(void);

// Ends a batch, all nested ones included, without running anything. The peers are told.
//
// Order    none
// Memory   none
// Units    none
// Threads  the thread that began
// Capture  nothing is recorded
// Errors   VT_ERR_FAILED_PRECONDITION  no batch was begun on this thread
VT_API vt_status vt_comm_batch_abandon(void);

#ifdef __cplusplus
}
#endif

#endif
