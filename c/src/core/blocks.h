// blocks.h: which blocks of memory are allocated, of which device and kind.
//
// A table from address to block, so that a foreign or double free is found, and sums per device and kind.
#ifndef VT_CORE_BLOCKS_H
#define VT_CORE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "vllm_vt/backend.h"
#include "vllm_vt/memory.h"

struct vt__pool_block;

typedef struct vt__block {
  void *ptr;  // NULL: an empty place
  size_t bytes;
  vt_device device;
  int32_t kind;                             // VT_MEMORY_*
  uint32_t flags;                           // VT_ALLOC_* bits that hold
  int32_t numa_node;                        // hint that was followed; -1: none
  const vt_device_resource_ops *resources;  // that gave it; NULL if the backend did
  struct vt__pool_block *pooled;            // of the pool, which counts what is in use of it; NULL: a block by itself
} vt__block;

// Makes room for one more block, so that the next vt__blocks_add() can't fail. False if there is no memory.
bool vt__blocks_reserve(void);

// Adds a block, using up a reservation.
void vt__blocks_add(const vt__block *block);

// Gives back a reservation that isn't used.
void vt__blocks_unreserve(void);

// Takes out the block at `ptr` if it is of this device and kind and not the pool's, and makes a reservation, so that it can be put
// back. Otherwise leaves everything and answers what is there in *out_found, whose ptr is NULL for nothing.
bool vt__blocks_take(void *ptr, vt_device device, int32_t kind, vt__block *out_found);

// Calls fn(block, user) for each block, until it answers false. It may not come back here. Answers what the last call answered, or
// true.
bool vt__blocks_each(bool (*fn)(const vt__block *block, void *user), void *user);

// Reads the sums of a device and kind.
void vt__blocks_get_stats(vt_device device, int32_t kind, vt_memory_stats *out);

// The lock of the table, for the pool, and what may be done with it held.
void vt__blocks_lock(void);
void vt__blocks_unlock(void);
// What is at `ptr`: out->ptr is NULL for nothing.
void vt__blocks_find_locked(const void *ptr, vt__block *out);
// Adds a block that isn't counted, using up a reservation; takes it out again, which leaves one.
void vt__blocks_add_locked(const vt__block *block);
void vt__blocks_remove_locked(const void *ptr);
// Counts a block as in use, or not any more.
void vt__blocks_count_locked(vt_device device, int32_t kind, size_t bytes);
void vt__blocks_uncount_locked(vt_device device, int32_t kind, size_t bytes);

#endif
