// host_allocator.h: a program's own allocator in place of malloc().
//
// It serves whatever the library allocates in this process: handles, rings, timelines, graphs, provider tables, communicator
// groups, trace buffers, and the CPU's device and pinned memory, unless a resource table (device.h) serves that. What isn't served:
// the memory that the ranks of a group share, one anonymous mapping whose untouched pages cost nothing, and what libc and the
// threads' stacks take.
//
// Some blocks are kept for reuse and never given back: the slabs of handles, interned operations with their tables, registered
// backends, the hooks that were set, recycled blocks of batches, and one trace buffer for each thread that was traced at once.
#ifndef VLLM_VT_HOST_ALLOCATOR_H
#define VLLM_VT_HOST_ALLOCATOR_H

#include "vllm_vt/export.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Both functions are called on any thread, also by several at once, and may not call the runtime.
typedef struct vt_host_allocator {
  size_t struct_size;

  // Gives `bytes` bytes, aligned to `align`, a power of two; NULL where there is no memory, which the call that needed it reports
  // as VT_ERR_OUT_OF_MEMORY.
  void *(*alloc)(void *user, size_t bytes, size_t align);

  // Takes back what `alloc` gave. `ptr` is never NULL.
  void (*free)(void *user, void *ptr);

  void *user;  // handed to both
} vt_host_allocator;

#define VT_HOST_ALLOCATOR_INIT \
  { sizeof(vt_host_allocator), NULL, NULL, NULL }

// Sets the allocator, once, before the library is used: blocks must go back where they came from.
//
// Order    before any call that allocates: what makes, registers or looks up anything; also one on another thread
// Memory   copies the table; the functions and `user` must live as long as the process
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     `allocator` or one of its functions is NULL, or struct_size is too small
//          VT_ERR_FAILED_PRECONDITION  the library has allocated something already, or an allocator was set; in a forked child, or
//                                      from a callback
VT_API vt_status vt_host_allocator_set(const vt_host_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
