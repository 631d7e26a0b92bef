// handle.h: what all handles have in common.
//
// Queues, events, graphs, arenas, communicators and groups are reference-counted handles. They hold what they depend on, so they
// may be released in any order, also while work is in flight. The memory of a handle is used again for handles of the same kind
// only and is never unmapped: a dead handle, or one of another kind, is answered with VT_ERR_INVALID_ARGUMENT as far as that can be
// seen. That is a best effort: a handle that was used again for a new object can't be told from it.
#ifndef VLLM_VT_HANDLE_H
#define VLLM_VT_HANDLE_H

#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_handle_kind;

enum {
  VT_HANDLE_QUEUE = 0,
  VT_HANDLE_EVENT = 1,
  VT_HANDLE_GRAPH = 2,
  VT_HANDLE_ARENA = 3,
  VT_HANDLE_COMM = 4,
  VT_HANDLE_COMM_GROUP = 5,
  VT_HANDLE_KIND_COUNT = 6,
};

// Counts the objects of a kind that are alive: those with a reference, and queues that still run their last work.
//
// Order    the last work of a queue that is no longer counted happens-before the return
// Memory   none
// Units    objects; 0 for an unknown kind
// Threads  any; the number is of one instant
// Capture  allowed
// Errors   none
VT_API size_t vt_handle_get_live_count(vt_handle_kind kind);

#ifdef __cplusplus
}
#endif

#endif
