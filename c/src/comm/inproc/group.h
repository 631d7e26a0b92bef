// group.h: making the shared state of an in-process group.
#ifndef VT_COMM_INPROC_GROUP_H
#define VT_COMM_INPROC_GROUP_H

#include "comm/algo/algo.h"
#include "comm/comm.h"

extern const struct vt__transport_ops vt__inproc_transport;

// Makes the state of a group, with one reference that `group_gone` gives up. NULL if there is no memory.
void *vt__inproc_create(int32_t world, const vt__algo_wishes *wishes, vt_comm_chunk_fn hook, void *user);

// Makes a communicator, whose rank and world are set, a member. `rank_gone` ends that.
void vt__inproc_join(void *state, vt_comm *comm);

#endif
