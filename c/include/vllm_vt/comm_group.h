// comm_group.h: groups of ranks, and each rank's communicator.
//
// A communicator is one rank's end of a group, bound to a device. The operations are in comm.h.
#ifndef VLLM_VT_COMM_GROUP_H
#define VLLM_VT_COMM_GROUP_H

#include "vllm_vt/device.h"
#include "vllm_vt/event.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vt_comm vt_comm;
typedef struct vt_comm_group vt_comm_group;

// Largest world of an in-process group.
#define VT_COMM_MAX_WORLD 1024

// Deadline of a group that names none: 60 s.
#define VT_COMM_DEFAULT_TIMEOUT_NS UINT64_C(60000000000)

// Called by a rank in its data phase, before each chunk of at most 64 KiB that it reads from or writes to a peer's memory. For
// tests and profilers. It may not call the runtime.
typedef void (*vt_comm_chunk_fn)(void *user, int32_t rank, uint64_t sequence, size_t chunk);

// How to make a group. Start from VT_COMM_GROUP_OPTIONS_INIT.
typedef struct vt_comm_group_options {
  size_t struct_size;
  uint64_t timeout_ns;          // deadline of calls that name none; 0 = VT_COMM_DEFAULT_TIMEOUT_NS; UINT64_MAX is refused
  const vt_device *devices;     // one CPU device per rank, copied; NULL = cpu:0 for all
  vt_comm_chunk_fn chunk_hook;  // NULL = none
  void *chunk_user;
  // Algorithms in place of those that the library would choose, for all ranks: "all_reduce:slices,gather:pull"; NULL = the
  // environment variable VT_COMM_ALGO, else none. See vt_comm_group_describe_algorithms().
  const char *algorithms;
  // How a rank waits for its peers; a call may choose another, and so may each rank: results don't depend on it. The default spins
  // where the awaited ranks run on processors of their own, else yields, and sleeps after 0.1 ms; BLOCK sleeps after a few polls;
  // YIELD and SPIN never sleep.
  vt_wait_mode wait;
} vt_comm_group_options;

#define VT_COMM_GROUP_OPTIONS_INIT \
  { sizeof(vt_comm_group_options), 0, NULL, NULL, NULL, NULL, VT_WAIT_MODE_DEFAULT }

// Creates an in-process group: ranks are driven by threads of this process (or all by one thread, see vt_comm_batch_begin()).
//
// Order    none
// Memory   the caller owns one reference, see vt_comm_group_release(). No later call allocates, except that
//          batches do until as many operations are in flight as ever before
// Units    1 to VT_COMM_MAX_WORLD ranks
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_INVALID_ARGUMENT     world out of range, an infinite deadline, an unknown wait mode, a device that isn't a CPU,
// or `out_group` NULL
//          VT_ERR_NOT_FOUND            a device that isn't registered, or an operation or algorithm that there is not
//          VT_ERR_OUT_OF_MEMORY        no group was made
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_comm_group_create(int32_t world, const vt_comm_group_options *options, vt_comm_group **out_group);

// Takes one more reference to a group.
//
// Order    none
// Memory   to be given back with vt_comm_group_release()
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live group
VT_API vt_status vt_comm_group_retain(vt_comm_group *group);

// Gives up one reference to a group. The last one releases every rank that nobody retained. Never waits.
//
// Order    queued operations still run
// Memory   NULL is fine; a misuse goes to the last error and the log
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned
VT_API void vt_comm_group_release(vt_comm_group *group);

// Reads the number of ranks of a group. 0 for what isn't a live group.
//
// Order    none
// Memory   none
// Units    ranks
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API int32_t vt_comm_group_get_world(vt_comm_group *group);

// Borrows the communicator of one rank.
//
// Order    none
// Memory   valid as long as the group; vt_comm_retain() makes it outlive the group
// Units    ranks count from 0
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live group, rank out of range, or `out_comm` NULL
VT_API vt_status vt_comm_group_get_comm(vt_comm_group *group, int32_t rank, vt_comm **out_comm);

// Writes what every rank is doing as text, for watchdogs: one line per rank.
//
// Order    a snapshot; ranks go on while it is taken
// Memory   writes at most `capacity` bytes, terminating zero included
// Units    returns the length of the whole text, which may exceed `capacity`
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse answers 0 and goes to the last error
VT_API size_t vt_comm_group_describe(vt_comm_group *group, char *buffer, size_t capacity);

// Writes which algorithm serves which operation up to which size as text: one line per operation that has a choice.
//
// Order    none: fixed when the group is created
// Memory   writes at most `capacity` bytes, terminating zero included
// Units    returns the length of the whole text, which may exceed `capacity`
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse answers 0 and goes to the last error
VT_API size_t vt_comm_group_describe_algorithms(vt_comm_group *group, char *buffer, size_t capacity);

// Takes one more reference to a rank's communicator.
//
// Order    none
// Memory   to be given back with vt_comm_release()
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live communicator
VT_API vt_status vt_comm_retain(vt_comm *comm);

// Gives up one reference. With the last one, and when its queued operations have run, the rank is gone: operations in which its
// peers need it answer VT_ERR_PEER_LOST. Local, never waits.
//
// Order    none
// Memory   NULL is fine; a misuse goes to the last error and the log
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned
VT_API void vt_comm_release(vt_comm *comm);

// Reads the rank. -1 for what isn't a live communicator.
//
// Order    none
// Memory   none
// Units    ranks count from 0
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API int32_t vt_comm_get_rank(vt_comm *comm);

// Reads the number of ranks. 0 for what isn't a live communicator.
//
// Order    none
// Memory   none
// Units    ranks
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API int32_t vt_comm_get_world(vt_comm *comm);

// Reads the device a communicator is bound to.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live communicator, or `out_device` NULL
VT_API vt_status vt_comm_get_device(vt_comm *comm, vt_device *out_device);

// Names the transport: "inproc". NULL for what isn't a live communicator.
//
// Order    none
// Memory   a string constant
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API const char *vt_comm_get_transport(vt_comm *comm);

// Asks whether the group still works, without blocking.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live communicator
//          or what poisoned the group
VT_API vt_status vt_comm_query(vt_comm *comm);

// Aborts the group: every call in progress on any rank ends with VT_ERR_ABORTED within 100 ms, except that a call whose buffer a
// peer is still writing ends when that peer has left.
//
// Order    none: it overtakes all queues
// Memory   `reason` is copied; NULL is fine
// Units    none
// Threads  any, also while another thread is inside a call on `comm`
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     not a live communicator
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_comm_abort(vt_comm *comm, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
