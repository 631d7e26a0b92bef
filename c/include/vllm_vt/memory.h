// memory.h: device memory, pinned host memory, copies.
#ifndef VLLM_VT_MEMORY_H
#define VLLM_VT_MEMORY_H

#include "vllm_vt/device.h"
#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Allocates device memory.
//
// Order    none: usable by any queue at once
// Memory   aligned to at least 64 bytes, contents undefined; to be given back with vt_free() on the same device
// Units    bytes; 0 gives a valid block
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_OUT_OF_MEMORY        does not fit
//          VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type or index, or `out_ptr` NULL
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_alloc(vt_device device, size_t bytes, void **out_ptr);

// Gives back what vt_alloc() or vt_alloc_async() gave; the latter goes to the device's pool.
//
// Order    none: the work that uses the block must have completed
// Memory   NULL is fine
// Units    none
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_INVALID_ARGUMENT     not a live block of this device (as far as that can be seen)
//          VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_free(vt_device device, void *ptr);

// Allocates host memory that the device copies from and to without staging.
//
// Order    none
// Memory   aligned to at least 64 bytes, contents undefined; to be given back with vt_pinned_free() on the same device
// Units    bytes; 0 gives a valid block
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_OUT_OF_MEMORY        does not fit, or can't be locked
//          VT_ERR_UNSUPPORTED          the backend has no pinned memory
//          VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type or index, or `out_ptr` NULL
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_pinned_alloc(vt_device device, size_t bytes, void **out_ptr);

// Gives back what vt_pinned_alloc() gave.
//
// Order    none: the work that uses the block must have completed
// Memory   NULL is fine
// Units    none
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   as vt_free()
VT_API vt_status vt_pinned_free(vt_device device, void *ptr);

// Queues a copy. The direction follows from the pointers.
//
// Order    in stream order; a host pointer that isn't pinned may block the host
// Memory   `src` must stay unchanged, and both ranges alive, until the copy has run; they must not overlap
// Units    bytes; 0 is fine with any pointers
// Threads  any
// Capture  recorded: the addresses are baked in, the bytes are read at each launch
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue, a NULL pointer, or an overlap
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_copy(vt_queue *queue, void *dst, const void *src, size_t bytes);

// One copy of a batch.
typedef struct vt_copy_op {
  void *dst;
  const void *src;
  size_t bytes;
} vt_copy_op;

// Queues many copies as one operation, such as the pages of a cache on their way to the host: one ticket, one trace event, and
// either all of them are queued or none is. Directions follow from the pointers and may differ.
//
// A backend without that method makes one copy after the other: as many operations, and where one can't be queued, those before it
// were.
//
// Order    in stream order; none among the copies of the batch; a host pointer that isn't pinned may block the host
// Memory   `ops` is copied, and free again on return; sources must stay unchanged, and all ranges alive, until the batch has run.
//          No destination may share a byte with another destination or with any source of the batch; sources may overlap each other
// Units    `count` entries, bytes each; 0 is fine for both, an entry of 0 bytes with any pointers; no `ops` is needed for 0 entries
// Threads  any
// Capture  recorded, as one node: the entries are baked in, the bytes are read at each launch
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue, a NULL pointer, or an overlap: the message names the entries
//          VT_ERR_OUT_OF_MEMORY        no memory to keep or to check the entries
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_copy_batch(vt_queue *queue, const vt_copy_op *ops, size_t count);

// Queues a copy of a block of `rows` rows of `width` bytes, whose beginnings lie `dst_pitch` and `src_pitch` bytes apart, as one
// operation. What lies between the rows is left alone. A backend without that method makes one copy for each row, as in
// vt_copy_batch().
//
// Order    in stream order; a host pointer that isn't pinned may block the host
// Memory   the source must stay unchanged, and both blocks alive, until the copy has run; no row of the one may share a byte with a
//          row of the other, but rows may lie between each other's
// Units    bytes; a width of 0, or no rows, is fine with any pointers and pitches
// Threads  any
// Capture  recorded, as one node: addresses and shape are baked in, the bytes are read at each launch
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue, a NULL pointer, a pitch below the width, a block that goes past the end of
//                                      all memory, or an overlap
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_copy_2d(vt_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                            size_t rows);

// Queues a fill with one byte value.
//
// Order    in stream order
// Memory   the range must stay alive until the fill has run
// Units    bytes; 0 is fine with any pointer; `value` is 0..255
// Threads  any
// Capture  recorded
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue, a NULL pointer, or `value` isn't a byte
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_memset(vt_queue *queue, void *ptr, int32_t value, size_t bytes);

// What is allocated on one device: of device memory through vt_alloc() and vt_alloc_async(), what the pool keeps not counted; of
// pinned memory through vt_pinned_alloc().
typedef struct vt_memory_stats {
  size_t struct_size;
  uint64_t live_bytes;  // as requested
  uint64_t peak_bytes;  // highest live_bytes so far
  uint64_t live_count;  // blocks
} vt_memory_stats;

#define VT_MEMORY_STATS_INIT \
  { sizeof(vt_memory_stats), 0, 0, 0 }

enum {
  VT_MEMORY_DEVICE = 0,
  VT_MEMORY_PINNED = 1,
};

// Reads what is allocated on a device. `kind` is VT_MEMORY_DEVICE or VT_MEMORY_PINNED.
//
// Order    none
// Memory   fills at most out_stats->struct_size bytes
// Units    bytes and blocks
// Threads  any; the numbers are of one instant
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  unknown type, index or kind, `out_stats` NULL or its struct_size too small
//          VT_ERR_NOT_FOUND         nothing is registered for `device`
VT_API vt_status vt_memory_get_stats(vt_device device, int32_t kind, vt_memory_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
