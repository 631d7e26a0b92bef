// schedule.h: from a call to its algorithm, for the transports.
#ifndef VT_COMM_SCHEDULE_H
#define VT_COMM_SCHEDULE_H

#include "comm/algo/algo.h"
#include "comm/comm.h"

// How a transport finds the parts of a rank: `user` is a vt__comm_op.
typedef const vt__algo_part *(*vt__parts_fn)(const void *user, int32_t rank);

// What the schedule of an operation depends on. Its bytes are known.
static inline vt__algo_call vt__algo_call_of(const vt__comm_op *op, vt__parts_fn parts) {
  return (vt__algo_call){
      .op = op->call.op,
      .world = op->call.comm->world,
      .rank = op->call.comm->rank,
      .root = op->call.peer,
      .bytes = op->bytes,
      .element = op->element_bytes,
      .parts = op->call.parts == NULL ? NULL : parts,
      .user = op,
  };
}

// Begins an operation: its bytes and, of a collective, its algorithm. A call that only agrees, or was refused, moves nothing.
void vt__comm_plan(vt__comm_op *op, vt__parts_fn parts);

#endif
