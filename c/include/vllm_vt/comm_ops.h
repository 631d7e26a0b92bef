// comm_ops.h: collectives with a root, collectives whose parts belong to ranks, and those with a count for every rank.
//
// Everything that comm.h says of collectives holds here. A buffer that a rank has no part in (the `recv` of a gather on all ranks
// but the root, say) is not looked at and may be NULL. Ranks that name different roots, or different counts, get VT_ERR_MISMATCH.
#ifndef VLLM_VT_COMM_OPS_H
#define VLLM_VT_COMM_OPS_H

#include "vllm_vt/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reduces the ranks' `send` arrays element by element; the root gets the result in `recv`.
//
// Order    in stream order
// Memory   `recv` is the root's only. In place at the root with send == recv; any other overlap is refused
// Units    `count` elements of `dtype` on every rank
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce(), and VT_ERR_INVALID_ARGUMENT for a root that isn't a rank
VT_API vt_status vt_comm_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                vt_reduce_op op, int32_t root, const vt_comm_call *opts);

// Copies the root's `buffer` into everybody's.
//
// Order    in stream order
// Memory   the root's buffer is only read
// Units    `count` elements; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_reduce()
VT_API vt_status vt_comm_broadcast(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t root,
                                   const vt_comm_call *opts);

// Gathers the ranks' `send` arrays in rank order in the root's `recv`.
//
// Order    in stream order
// Memory   `recv` is the root's only and holds world * count elements. In place at the root with send == recv + root * count; any
//          other overlap is refused
// Units    `count` elements per rank; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_reduce()
VT_API vt_status vt_comm_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                int32_t root, const vt_comm_call *opts);

// Gives each rank its part of the root's `send`, in rank order.
//
// Order    in stream order
// Memory   `send` is the root's only and holds world * count elements. In place at the root with recv == send + root * count; any
//          other overlap is refused
// Units    `count` elements per rank; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_reduce()
VT_API vt_status vt_comm_scatter(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                 int32_t root, const vt_comm_call *opts);

// Reduces the ranks' `send` arrays element by element; each rank gets its part of the result, in rank order.
//
// Order    in stream order
// Memory   `send` holds world * count elements. In place with recv == send + rank * count: the other parts stay as they are. Any
//          other overlap is refused
// Units    `count` elements per rank
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce()
VT_API vt_status vt_comm_reduce_scatter(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                        vt_reduce_op op, const vt_comm_call *opts);

// Gives each rank its part of everybody's `send`: part i of rank j becomes part j of rank i.
//
// Order    in stream order
// Memory   `send` and `recv` hold world * count elements. In place with send == recv, on each rank as it likes; any other overlap
//          is refused
// Units    `count` elements per pair of ranks; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce()
VT_API vt_status vt_comm_all_to_all(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                    const vt_comm_call *opts);

// As vt_comm_all_gather(), with a count for every rank.
//
// Order    in stream order
// Memory   the part of rank r begins at recv + displs[r]; `displs` NULL: parts follow each other. Parts may not overlap. The arrays
//          hold one number per rank and are copied. In place with send == recv + displs[rank]; otherwise `send` may not lie between
//          the first and the last byte of the parts
// Units    `counts` and `displs` in elements; a block type needs whole blocks. `counts` are the same on all ranks, `displs` each
//          rank's own
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_reduce(), and VT_ERR_OUT_OF_MEMORY for the copy of the arrays, once per process and size of a world
VT_API vt_status vt_comm_all_gatherv(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                                     const size_t *displs, vt_dtype dtype, const vt_comm_call *opts);

// As vt_comm_reduce_scatter(), with a count for every rank. Parts follow each other in `send`.
//
// Order    in stream order
// Memory   `counts` holds one number per rank and is copied. In place with `recv` at the rank's own part of `send`; any other
//          overlap is refused
// Units    `counts` in elements, the same on all ranks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_gatherv()
VT_API vt_status vt_comm_reduce_scatterv(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                                         vt_dtype dtype, vt_reduce_op op, const vt_comm_call *opts);

// As vt_comm_all_to_all(), with a count for every pair of ranks. What a rank sends to another one is what that one receives from
// it.
//
// Order    in stream order
// Memory   the part for rank r begins at send + send_displs[r], the part from it at recv + recv_displs[r]; NULL: parts follow each
//          other. Parts of `recv` may not overlap. The arrays hold one number per rank and are copied. Not in place: `send` and
//          `recv`, from the first to the last byte of their parts, may not overlap
// Units    all arrays in elements; a block type needs whole blocks
// Threads  as vt_comm_all_reduce()
// Capture  as vt_comm_all_reduce()
// Errors   as vt_comm_all_gatherv()
VT_API vt_status vt_comm_all_to_allv(vt_comm *comm, vt_queue *queue, const void *send, const size_t *send_counts,
                                     const size_t *send_displs, void *recv, const size_t *recv_counts, const size_t *recv_displs,
                                     vt_dtype dtype, const vt_comm_call *opts);

enum {
  VT_COMM_SPLIT_NONE = -1,  // in place of a colour: this rank is in none of the new groups
};

// Divides a group: the ranks that give the same colour make a new group, in the order of their keys, then of their ranks. It has
// the deadline, devices, algorithms and hook of the old one, which goes on. New groups may be divided again.
//
// Order    on the host, at once, like a collective of its own: the ranks' queues should have done what was submitted to them
// Memory   the caller owns one reference to `*out_comm`, see vt_comm_release(); NULL for VT_COMM_SPLIT_NONE
// Units    colours are 0 or more, keys any number
// Threads  all ranks of the group, each on a thread of its own, since it waits for the others; else as vt_comm_all_reduce()
// Capture  refused on a thread that is capturing
// Errors   as vt_comm_barrier(), and VT_ERR_INVALID_ARGUMENT for a negative colour or `out_comm` NULL
//          VT_ERR_OUT_OF_MEMORY        on all ranks of that colour, or, where this rank could not even begin, on it
//          VT_ERR_FAILED_PRECONDITION  inside a capture, or a batch; the peers are not told and wait until their deadline
VT_API vt_status vt_comm_split(vt_comm *comm, int32_t color, int32_t key, const vt_comm_call *opts, vt_comm **out_comm);

// Ends the use of a communicator politely: waits until all ranks have come. What is called afterwards is refused. Releasing needs
// no such thing.
//
// Order    on the host, at once. What is still queued on the communicator runs afterwards, and may meet the others' end as a
//          VT_ERR_MISMATCH: wait for the queues first
// Memory   the reference stays the caller's
// Units    none
// Threads  as vt_comm_split()
// Capture  refused on a thread that is capturing
// Errors   as vt_comm_barrier(), and VT_ERR_FAILED_PRECONDITION inside a capture, or a batch, or the second time
VT_API vt_status vt_comm_finalize(vt_comm *comm, const vt_comm_call *opts);

#ifdef __cplusplus
}
#endif

#endif
