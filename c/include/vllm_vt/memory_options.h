// memory_options.h: memory that other processes may map, and hints where it should lie.
#ifndef VLLM_VT_MEMORY_OPTIONS_H
#define VLLM_VT_MEMORY_OPTIONS_H

#include "vllm_vt/device.h"
#include "vllm_vt/memory.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  VT_ALLOC_SHAREABLE = 1 << 0,   // other processes may map it, see vt_memory_export_fd()
  VT_ALLOC_HUGE_PAGES = 1 << 1,  // a hint: on large pages
};

// How to allocate. Start from VT_ALLOC_OPTIONS_INIT. Hints are best effort: one that can't be followed is a line of the log at
// level info, the first time, and vt_memory_get_info() tells.
typedef struct vt_alloc_options {
  size_t struct_size;
  int32_t kind;       // VT_MEMORY_DEVICE or VT_MEMORY_PINNED
  uint32_t flags;     // VT_ALLOC_* bits
  int32_t numa_node;  // a hint: the node of the host on which the memory should lie; -1 = any
} vt_alloc_options;

#define VT_ALLOC_OPTIONS_INIT \
  { sizeof(vt_alloc_options), VT_MEMORY_DEVICE, 0, -1 }

// Allocates memory with options. Without options it is what vt_alloc() gives.
//
// Order    none: usable by any queue at once
// Memory   as of vt_alloc() or vt_pinned_alloc(), by kind, and goes back with their free. With options it comes from the system, in
//          whole pages, not from the host allocator. Shareable memory of a CPU holds zero bytes and is reserved: no use of it fails
// Units    bytes; 0 gives a valid block; `options` may be NULL
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_UNSUPPORTED          shareable memory, or pinned memory, that the device doesn't have
//          VT_ERR_INVALID_ARGUMENT     an unknown flag or kind, a node below -1, struct_size too small, and as vt_alloc()
//          VT_ERR_OUT_OF_MEMORY        does not fit
//          VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_alloc_with(vt_device device, size_t bytes, const vt_alloc_options *options, void **out_ptr);

// What is known of a block.
typedef struct vt_memory_info {
  size_t struct_size;
  size_t bytes;       // as asked for
  int32_t kind;       // VT_MEMORY_DEVICE or VT_MEMORY_PINNED
  uint32_t flags;     // VT_ALLOC_* bits that hold; of hints those that were followed
  int32_t numa_node;  // the hint that was followed; -1: none was
} vt_memory_info;

#define VT_MEMORY_INFO_INIT \
  { sizeof(vt_memory_info), 0, 0, 0, -1 }

// Reads what is known of a live block of any of the allocating calls.
//
// Order    none
// Memory   fills at most out_info->struct_size bytes
// Units    bytes
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     `ptr` isn't the begin of a live block of `device`, unknown type or index, `out_info` NULL or
//                                      its struct_size too small
//          VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_memory_get_info(vt_device device, const void *ptr, vt_memory_info *out_info);

// Gives a file descriptor through which another process can map a block of VT_ALLOC_SHAREABLE: send it over a socket, and mmap()
// `out_bytes` bytes at `out_offset` with MAP_SHARED.
//
// Order    none: processes agree by their own means who writes when
// Memory   the descriptor is the caller's to close and closed by exec(); the memory lives while a descriptor or a mapping does
// Units    bytes; *out_bytes is the size of the block in whole pages, *out_offset a multiple of the page size
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     not the begin of a live block of `device`, one that isn't shareable, or a NULL pointer
//          VT_ERR_OUT_OF_MEMORY        the process has no free descriptor
//          VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_memory_export_fd(vt_device device, const void *ptr, int32_t *out_fd, size_t *out_offset, size_t *out_bytes);

#ifdef __cplusplus
}
#endif

#endif
