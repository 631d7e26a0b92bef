// pool.h: allocation in stream order, served by a caching pool.
//
// A device's own allocation and release are slow, and on most devices wait for all of its work. Memory of vt_alloc_async() is kept
// when it is given back, and handed out again: on the queue where it was given back at once, since later work of that queue comes
// after the work before; elsewhere once that work has completed. Nobody waits for that: where nothing suitable is at hand, the
// device is asked. Every backend has a pool per device.
#ifndef VLLM_VT_POOL_H
#define VLLM_VT_POOL_H

#include "vllm_vt/device.h"
#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Allocates device memory for work of a queue.
//
// Order    usable by work submitted to `queue` from now on; by other queues and the host after an event that is recorded on it
// Memory   aligned to at least 64 bytes, contents undefined; goes back with vt_free_async() or vt_free(), and outlives the queue
// Units    bytes; 0 gives a valid block. Held are a multiple of 64 or at most 6.25 % more, from 1 MiB on whole pages of 4 KiB
// Threads  any
// Capture  refused on a thread that is capturing; on a queue of its capture that fails the capture
// Errors   VT_ERR_OUT_OF_MEMORY        does not fit, also with all given back to the device that is kept and not in use by work
//          VT_ERR_INVALID_ARGUMENT     not a live queue, or `out_ptr` NULL
//          VT_ERR_FAILED_PRECONDITION  inside a capture, the queue was destroyed, in a forked child, or from a callback
//          A failure that stuck to the queue is answered by the work that follows, not here
VT_API vt_status vt_alloc_async(vt_queue *queue, size_t bytes, void **out_ptr);

// Gives back what vt_alloc_async() gave, in stream order. A queue that has failed takes memory back all the same.
//
// Order    what was submitted to `queue` so far may still use the block. Its allocation, and the work of other queues on it, come
//          before, by events that `queue` waits for. Where a queue failed first, the block goes back there, or by vt_free()
// Memory   NULL is fine. Blocks of vt_alloc() are refused: they go back with vt_free()
// Units    none
// Threads  any
// Capture  refused on a thread that is capturing; on a queue of its capture that fails the capture
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue, or not a live block of vt_alloc_async() on the queue's device
//          VT_ERR_FAILED_PRECONDITION  inside a capture, the queue was destroyed, in a forked child, or from a callback
VT_API vt_status vt_free_async(vt_queue *queue, void *ptr);

// What a pool keeps by default, see vt_pool_set_limit().
#define VT_POOL_DEFAULT_LIMIT ((size_t)256 << 20)

// What a device's pool holds.
typedef struct vt_pool_stats {
  size_t struct_size;
  uint64_t requested_bytes;  // in use, as asked for
  uint64_t used_bytes;       // in use, rounding included
  uint64_t cached_bytes;     // given back and kept; held of the device are used_bytes + cached_bytes
  uint64_t peak_bytes;       // highest number of bytes held so far
  uint64_t limit_bytes;      // see vt_pool_set_limit()
  uint64_t hits;             // allocations that were served from what was kept
  uint64_t misses;           // allocations for which the device was asked
} vt_pool_stats;

#define VT_POOL_STATS_INIT \
  { sizeof(vt_pool_stats), 0, 0, 0, 0, 0, 0, 0 }

// Reads what a device's pool holds.
//
// Order    none
// Memory   fills at most out_stats->struct_size bytes
// Units    bytes and allocations
// Threads  any; the numbers are of one instant
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type or index, `out_stats` NULL or its struct_size too small
//          VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_pool_get_stats(vt_device device, vt_pool_stats *out_stats);

// Sets how much a device's pool may keep, and gives back to the device what is above.
//
// Order    none
// Memory   what pending work may still use can't be given back: it may be above the limit until a call of the pool finds it through
// Units    bytes; 0 keeps nothing, SIZE_MAX everything
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   as vt_pool_trim()
VT_API vt_status vt_pool_set_limit(vt_device device, size_t bytes);

// Gives memory that is kept back to the device, until at most `keep_bytes` are left.
//
// Order    none: never waits for work
// Memory   what pending work may still use stays
// Units    bytes
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type or index
//          VT_ERR_OUT_OF_MEMORY        no memory for the pool itself
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
//          or the device's failure to take memory back
VT_API vt_status vt_pool_trim(vt_device device, size_t keep_bytes);

#ifdef __cplusplus
}
#endif

#endif
