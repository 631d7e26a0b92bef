// arena.h: a bump allocator for one step's activations.
//
// An arena owns one slab of device memory. Allocating moves an offset, resetting moves it back; nothing is freed one by one. Use it
// for memory that dies with the step; weights and caches come from vt_alloc().
#ifndef VLLM_VT_ARENA_H
#define VLLM_VT_ARENA_H

#include "vllm_vt/device.h"
#include "vllm_vt/dtype.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vt_arena vt_arena;

// A place to go back to, see vt_arena_rewind().
typedef struct vt_arena_mark {
  uint64_t arena_id;
  uint64_t resets;  // of the arena when the mark was made
  size_t used;
} vt_arena_mark;

// Creates an arena of `capacity` bytes on `device`.
//
// Order    none
// Memory   the slab is aligned to 64 bytes; the caller owns one reference, see vt_arena_release()
// Units    bytes; 0 is legal and gives an arena that only serves empty requests
// Threads  any
// Capture  refused (it allocates device memory)
// Errors   VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type or index, or `out_arena` NULL
//          VT_ERR_OUT_OF_MEMORY        the slab does not fit
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_arena_create(vt_device device, size_t capacity, vt_arena **out_arena);

// Takes one more reference.
//
// Order    none
// Memory   to be given back with vt_arena_release()
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live arena
VT_API vt_status vt_arena_retain(vt_arena *arena);

// Gives up one reference; the last one frees the slab, so the work that uses it must have completed.
//
// Order    none
// Memory   NULL is fine; a misuse goes to the last error and the log
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned
VT_API void vt_arena_release(vt_arena *arena);

// Takes the next `bytes` bytes of the slab.
//
// Order    host only: says nothing about work in flight on earlier contents
// Memory   aligned to 64 bytes, valid until the arena is reset, rewound past it, or released
// Units    bytes; every request is rounded up to a multiple of 64
// Threads  one at a time per arena
// Capture  allowed: the address is baked in
// Errors   VT_ERR_OUT_OF_MEMORY     does not fit, or rounding would overflow; the arena is unchanged
//          VT_ERR_INVALID_ARGUMENT  not a live arena, or `out_ptr` NULL
VT_API vt_status vt_arena_alloc(vt_arena *arena, size_t bytes, void **out_ptr);

// Takes room for `count` elements of `dtype`.
//
// Order    as vt_arena_alloc()
// Memory   as vt_arena_alloc()
// Units    elements; a block type needs whole blocks
// Threads  one at a time per arena
// Capture  allowed: the address is baked in
// Errors   VT_ERR_INVALID_ARGUMENT  unknown dtype, or part of a block
//          VT_ERR_OUT_OF_MEMORY     does not fit, or the bytes overflow; the arena is unchanged
VT_API vt_status vt_arena_alloc_elements(vt_arena *arena, size_t count, vt_dtype dtype, void **out_ptr);

// Gives back everything at once; the high-water mark stays.
//
// Order    host only: the work that uses the slab must have completed, or come earlier on the queue that reuses it
// Memory   pointers given out before are dead
// Units    none
// Threads  one at a time per arena
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live arena
VT_API vt_status vt_arena_reset(vt_arena *arena);

// Notes the present fill, for a nested scope.
//
// Order    none
// Memory   the mark is a plain value
// Units    none
// Threads  one at a time per arena
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live arena, or `out_mark` NULL
VT_API vt_status vt_arena_get_mark(vt_arena *arena, vt_arena_mark *out_mark);

// Gives back everything taken since the mark.
//
// Order    as vt_arena_reset()
// Memory   pointers given out since the mark are dead
// Units    none
// Threads  one at a time per arena
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live arena, a mark of another arena, one from before a reset, or one above the present
//                                   fill (an outer rewind has passed it)
VT_API vt_status vt_arena_rewind(vt_arena *arena, vt_arena_mark mark);

// How full an arena is.
typedef struct vt_arena_stats {
  size_t struct_size;
  size_t capacity;    // bytes
  size_t used;        // bytes, rounding included
  size_t high_water;  // highest `used` so far
  uint64_t resets;    // vt_arena_reset() calls so far
} vt_arena_stats;

#define VT_ARENA_STATS_INIT \
  { sizeof(vt_arena_stats), 0, 0, 0, 0 }

// Reads how full the arena is.
//
// Order    none
// Memory   fills at most out_stats->struct_size bytes
// Units    bytes
// Threads  one at a time per arena
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live arena, `out_stats` NULL or its struct_size too small
VT_API vt_status vt_arena_get_stats(vt_arena *arena, vt_arena_stats *out_stats);

// Reads the device of an arena.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live arena, or `out_device` NULL
VT_API vt_status vt_arena_get_device(vt_arena *arena, vt_device *out_device);

#ifdef __cplusplus
}
#endif

#endif
