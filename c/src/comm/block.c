// block.c: recycled blocks of operations, for batches and for the texts of refusals. Blocks are never given back to the allocator,
// so a program that repeats its steps stops allocating.
#include <stdio.h>

#include "base/alloc.h"
#include "comm/comm.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vt__comm_block *free_blocks;

static bool resize(vt__comm_block *block, size_t capacity) {
  vt__comm_op *ops = vt__realloc(block->ops, block->count, capacity, sizeof(*ops));
  if (ops == NULL) {
    return false;
  }
  block->ops = ops;
  block->capacity = capacity;
  return true;
}

static void recycle(vt__comm_block *block) {
  pthread_mutex_lock(&mutex);
  block->next_free = free_blocks;
  free_blocks = block;
  pthread_mutex_unlock(&mutex);
}

vt__comm_block *vt__comm_block_get(size_t capacity) {
  pthread_mutex_lock(&mutex);
  // The first that is large enough, else the last of the list, which is made larger.
  vt__comm_block **link = &free_blocks;
  while (*link != NULL && (*link)->capacity < capacity && (*link)->next_free != NULL) {
    link = &(*link)->next_free;
  }
  vt__comm_block *block = *link;
  if (block != NULL) {
    *link = block->next_free;
  }
  pthread_mutex_unlock(&mutex);
  if (block == NULL) {
    block = vt__calloc(1, sizeof(*block));
  }
  if (block != NULL && block->capacity < capacity && !resize(block, capacity < 16 ? 16 : capacity)) {
    recycle(block);
    return NULL;
  }
  if (block != NULL) {
    // relaxed: nobody else has the block.
    atomic_store_explicit(&block->refs, 1, memory_order_relaxed);
    block->count = 0;
    block->refused = false;
    block->next_free = NULL;
  }
  return block;
}

bool vt__comm_blocks_reserve(size_t count) {
  vt__comm_block *taken = NULL;
  bool fits = true;
  for (size_t i = 0; i < count && fits; i++) {
    vt__comm_block *block = vt__comm_block_get(16);
    fits = block != NULL;
    if (fits) {
      block->next_free = taken;
      taken = block;
    }
  }
  while (taken != NULL) {
    vt__comm_block *block = taken;
    taken = block->next_free;
    recycle(block);
  }
  return fits;
}

bool vt__comm_block_grow(vt__comm_block **block) {
  if (*block == NULL) {
    *block = vt__comm_block_get(16);
    return *block != NULL;
  }
  return (*block)->count < (*block)->capacity || resize(*block, (*block)->capacity * 2);
}

void vt__comm_block_ref(vt__comm_block *block) {
  // relaxed: the caller holds a reference already.
  atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
}

void vt__comm_block_put(vt__comm_block *block) {
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) != 1) {
    return;
  }
  for (size_t i = 0; i < block->count; i++) {
    if (block->ops[i].queue != NULL) {
      vt__handle_unref(block->ops[i].queue);
    }
    vt__comm_call_unref(&block->ops[i].call);
  }
  recycle(block);
}

void vt__comm_block_refuse(vt__comm_block *block, const char *text) {
  block->refused = true;
  if (text != block->text) {
    (void)snprintf(block->text, sizeof(block->text), "%s", text);
  }
}

void vt__comm_block_rewind(vt__comm_block *block) {
  for (size_t i = 0; i < block->count; i++) {
    vt__comm_op *op = &block->ops[i];
    op->refusal = block->refused ? block->text : NULL;
    op->call.timeout_ns = block->refused ? 0 : op->call.timeout_ns;  // what was given may be what was refused
    op->deadline_ns = 0;
    op->entry = NULL;
    op->stage = VT__STAGE_TOKEN;
    op->inside = false;
    op->status = VT_OK;
  }
}
