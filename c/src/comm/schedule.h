// schedule.h: from a call to its algorithm, for the transports.
#ifndef VT_COMM_SCHEDULE_H
#define VT_COMM_SCHEDULE_H

#include "comm/comm.h"

// How a transport finds the parts of a rank: `user` is a vt__comm_op.
typedef const vt__algo_part *(*vt__parts_fn)(const void *user, int32_t rank);

// Begins an operation: its bytes and, of a collective, its algorithm. A call that only agrees, or was refused, moves nothing.
void vt__comm_plan(vt__comm_op *op, vt__parts_fn parts);

#endif
