// parts.h: the counts of the operations with a count for every rank, copied at the call.
#ifndef VT_COMM_PARTS_H
#define VT_COMM_PARTS_H

#include "comm/algo/algo.h"
#include "comm/comm.h"

// Recycled memory. Everything that is made of a call holds a reference; immutable once made.
struct vt__comm_parts {
  _Atomic uint32_t refs;
  struct vt__comm_parts *outer;  // held by an outer call of this thread
  vt__algo_part of[];            // one per rank
};

// The arrays of a call as they were given. What isn't given for one side is what this rank gives, or gets, in the other one's
// array: the same for all peers.
typedef struct vt__comm_arrays {
  const size_t *send_counts;
  const size_t *send_displs;
  const size_t *recv_counts;
  const size_t *recv_displs;
} vt__comm_arrays;

// Gives `call` its parts, held by this thread, and their sum as its count. Refuses what is not in whole blocks, overflows, or
// overlaps in the receive buffer.
vt_status vt__comm_parts_make(vt__comm_call_data *call, const vt__comm_arrays *arrays);

// The call that made them is over; NULL is fine.
void vt__comm_parts_give_up(vt__comm_parts *parts);

// The thread ends inside calls: gives up all that it holds.
void vt__comm_parts_abandon(void);

#endif
