// blocks.h: which blocks of memory are allocated, of which device and kind.
//
// A table from address to block, so that a foreign or double free is found, and sums per device and kind.
#ifndef VT_CORE_BLOCKS_H
#define VT_CORE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "vllm_vt/backend.h"
#include "vllm_vt/memory.h"

typedef struct vt__block {
  void *ptr;  // NULL: an empty place
  size_t bytes;
  vt_device device;
  int32_t kind;                             // VT_MEMORY_*
  const vt_device_resource_ops *resources;  // that gave it; NULL if the backend did
} vt__block;

// Makes room for one more block, so that the next vt__blocks_add() can't fail. False if there is no memory.
bool vt__blocks_reserve(void);

// Adds a block, using up a reservation.
void vt__blocks_add(const vt__block *block);

// Gives back a reservation that isn't used.
void vt__blocks_unreserve(void);

// Takes out the block at `ptr` if it is of this device and kind, and makes a reservation, so that it can be put back. Otherwise
// leaves everything and answers what is there in *out_found, whose ptr is NULL for nothing.
bool vt__blocks_take(void *ptr, vt_device device, int32_t kind, vt__block *out_found);

// Reads the sums of a device and kind.
void vt__blocks_get_stats(vt_device device, int32_t kind, vt_memory_stats *out);

#endif
