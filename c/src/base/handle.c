// handle.c: see handle.h.
#include "base/handle.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

uint64_t vt__next_id(void) {
  static _Atomic uint64_t last;
  // relaxed: only uniqueness is promised.
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static vt__handle *object_at(const vt__handle_pool *pool, void *slab, size_t index) {
  return (vt__handle *)(void *)((char *)slab + VT_NO_SHARING + index * pool->object_size);
}

// Adds a slab to the free list. The first line of a slab links it to the others. The caller holds the mutex.
static bool grow(vt__handle_pool *pool) {
  size_t bytes = VT_NO_SHARING + pool->slab_objects * pool->object_size;
  void *slab = vt__malloc_aligned(VT_NO_SHARING, bytes);
  if (slab == NULL) {
    return false;
  }
  memset(slab, 0, bytes);
  memcpy(slab, &pool->slabs, sizeof(void *));
  pool->slabs = slab;
  for (size_t i = pool->slab_objects; i-- > 0;) {
    vt__handle *handle = object_at(pool, slab, i);
    handle->next_free = pool->free_list;
    pool->free_list = handle;
  }
  return true;
}

void *vt__handle_new(vt__handle_pool *pool) {
  pthread_mutex_lock(&pool->mutex);
  vt__handle *handle = NULL;
  if (pool->free_list != NULL || grow(pool)) {
    handle = pool->free_list;
    pool->free_list = handle->next_free;
  }
  pthread_mutex_unlock(&pool->mutex);
  if (handle == NULL) {
    return NULL;
  }
  memset((char *)handle + sizeof(*handle), 0, pool->object_size - sizeof(*handle));
  handle->pool = pool;
  handle->next_free = NULL;
  handle->id = vt__next_id();
  // relaxed: the release store of the tag below publishes it.
  atomic_store_explicit(&handle->refs, 1, memory_order_relaxed);
  // release: partner is the load in vt__handle_is_live().
  atomic_store_explicit(&handle->tag, pool->tag, memory_order_release);
  // relaxed: a statistic.
  atomic_fetch_add_explicit(&pool->live, 1, memory_order_relaxed);
  return handle;
}

void vt__handle_ref(void *object) {
  // relaxed: who takes a reference holds one already, so the object was published to it.
  atomic_fetch_add_explicit(&((vt__handle *)object)->refs, 1, memory_order_relaxed);
}

bool vt__handle_try_ref(void *object) {
  vt__handle *handle = object;
  // relaxed: the exchange below decides.
  uint32_t refs = atomic_load_explicit(&handle->refs, memory_order_relaxed);
  while (refs != 0) {
    // acquire: partner is the release decrement in vt__handle_unref().
    if (atomic_compare_exchange_weak_explicit(&handle->refs, &refs, refs + 1, memory_order_acquire, memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void vt__handle_unref(void *object) {
  vt__handle *handle = object;
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) == 1) {
    // relaxed: a stale look at the tag is a misuse that is found as a best effort.
    atomic_store_explicit(&handle->tag, 0, memory_order_relaxed);
    handle->pool->finalize(handle);
  }
}

void vt__handle_recycle(void *object) {
  vt__handle *handle = object;
  vt__handle_pool *pool = handle->pool;
  // release: partner is the acquire load in vt_handle_get_live_count(): who sees the object gone sees its last work.
  atomic_fetch_sub_explicit(&pool->live, 1, memory_order_release);
  pthread_mutex_lock(&pool->mutex);
  handle->next_free = pool->free_list;
  pool->free_list = handle;
  pthread_mutex_unlock(&pool->mutex);
}

void vt__handle_discard(void *object) {
  vt__handle *handle = object;
  // relaxed: nobody else has the object.
  atomic_store_explicit(&handle->tag, 0, memory_order_relaxed);
  vt__handle_recycle(handle);
}
