// pool_shelf.c: sizes and shelves, see pool.h.
#include "base/macros.h"
#include "core/pool.h"

#define STEP ((size_t)64)
#define PAGE ((size_t)4096)
#define FIRST_POWER 10                 // up to 1 KiB, sizes are multiples of STEP
#define LARGE_BYTES ((size_t)1 << 20)  // from here on, sizes are whole pages

// The power e with 2^e < bytes <= 2^(e+1), for bytes above 1.
static uint32_t power_below(size_t bytes) {
  return 63 - (uint32_t)__builtin_clzll(bytes - 1);
}

static uint32_t class_of(size_t capacity) {
  if (capacity <= (size_t)1 << FIRST_POWER) {
    return (uint32_t)(capacity / STEP) - 1;
  }
  uint32_t power = power_below(capacity);
  return 16 + 16 * (power - FIRST_POWER) + (uint32_t)((capacity - 1) >> (power - 4)) - 16;
}

bool vt__pool_round(size_t bytes, size_t *out_capacity) {
  if (bytes > VT__POOL_MAX_BYTES) {
    return false;
  }
  size_t step = bytes <= (size_t)1 << FIRST_POWER ? STEP : bytes >= LARGE_BYTES ? PAGE : (size_t)1 << (power_below(bytes) - 4);
  return vt__align_up(bytes == 0 ? 1 : bytes, step, out_capacity);
}

void vt__shelf_put(vt__shelf *shelf, vt__pool_block *block) {
  vt__pool_block **bin = &shelf->bins[class_of(block->capacity)];
  block->above = NULL;
  block->below = *bin;
  if (*bin != NULL) {
    (*bin)->above = block;
  }
  *bin = block;
  block->newer = NULL;
  block->older = shelf->newest;
  *(shelf->newest == NULL ? &shelf->oldest : &shelf->newest->newer) = block;
  shelf->newest = block;
}

void vt__shelf_remove(vt__shelf *shelf, vt__pool_block *block) {
  *(block->above == NULL ? &shelf->bins[class_of(block->capacity)] : &block->above->below) = block->below;
  if (block->below != NULL) {
    block->below->above = block->above;
  }
  *(block->newer == NULL ? &shelf->newest : &block->newer->older) = block->older;
  *(block->older == NULL ? &shelf->oldest : &block->older->newer) = block->newer;
}

vt__pool_block *vt__shelf_take(vt__shelf *shelf, size_t capacity) {
  vt__pool_block *block = shelf->bins[class_of(capacity)];
  // Below LARGE_BYTES the blocks of a bin are of one size.
  while (block != NULL && (block->capacity < capacity || block->capacity - capacity > capacity / 32)) {
    block = block->below;
  }
  if (block != NULL) {
    vt__shelf_remove(shelf, block);
  }
  return block;
}
