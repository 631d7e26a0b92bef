// pool.c: allocation in stream order, see vllm_vt/pool.h and pool.h.
#include "core/pool.h"

#include "base/alloc.h"
#include "core/memory.h"
#include "core/queue.h"
#include "core/validate.h"

#define fail_as(function, status, ...) vt_error_set((status), VT_DOMAIN_VT, 0, (function), __VA_ARGS__)

// The door of both calls.
static vt_status check_queue(vt_queue *queue, vt__call_site site) {
  VT_TRY(vt__queue_check_submit(queue, site.function));
  return VT_LIKELY(vt__capture_depth == 0) ? VT_OK : vt__queue_refused(queue, vt__check_not_capturing(site), site.caller);
}

// Marks a block as in use, and counts it.
static void hand_out(vt__pool *pool, vt__pool_block *block, size_t bytes, bool clean) {
  block->bytes = bytes;
  block->live = true;
  block->clean = clean;
  pool->stats.requested_bytes += bytes;
  pool->stats.used_bytes += block->capacity;
  vt__blocks_count_locked(pool->backend->device, VT_MEMORY_DEVICE, bytes);
}

// Serves a request from what is kept. The lock is held.
static void *take_cached(vt__pool *pool, vt_queue *queue, size_t capacity, size_t bytes) {
  vt__lane *lane = queue->pool.lane;
  vt__pool_block *own = lane == NULL ? NULL : vt__shelf_take(&lane->shelf, capacity);
  vt__pool_block *block = own != NULL ? own : vt__shelf_take(&pool->shared, capacity);
  if (block == NULL) {
    return NULL;
  }
  pool->stats.cached_bytes -= block->capacity;
  pool->stats.hits++;
  hand_out(pool, block, bytes, own == NULL);
  return block->ptr;
}

static vt_status out_of_memory(vt__pool *pool, size_t bytes) {
  vt__blocks_lock();
  vt_pool_stats stats = pool->stats;
  vt__blocks_unlock();
  return fail_as("vt_alloc_async", VT_ERR_OUT_OF_MEMORY,
                 "no room for %zu bytes on %s, whose pool has %llu bytes in use and keeps %llu for pending work: %s", bytes,
                 vt__device_name(pool->backend->device).text, (unsigned long long)stats.used_bytes,
                 (unsigned long long)stats.cached_bytes, vt_last_error()->message);
}

// Asks the device, a second time after all that can be has been given back to it.
static vt_status ask_device(vt__pool *pool, vt__block *entry, size_t capacity) {
  vt_status status = vt__device_take(pool->backend, entry, capacity);
  if (status == VT_ERR_OUT_OF_MEMORY && vt__pool_reclaim(entry->device) != 0) {
    status = vt__device_take(pool->backend, entry, capacity);
  }
  return status == VT_ERR_OUT_OF_MEMORY ? out_of_memory(pool, entry->bytes) : status;
}

// Adds a block of the device to the pool, in use.
static vt_status grow(vt__pool *pool, size_t capacity, size_t bytes, void **out_ptr) {
  vt__pool_block *block = vt__calloc(1, sizeof(*block));
  if (block == NULL || !vt__blocks_reserve()) {
    vt__free(block);
    return fail_as("vt_alloc_async", VT_ERR_OUT_OF_MEMORY, "no memory to note one more block");
  }
  vt_device device = pool->backend->device;
  vt__block entry = {.bytes = bytes, .device = device, .kind = VT_MEMORY_DEVICE, .numa_node = -1, .pooled = block};
  entry.resources = vt__resource_find(device);
  vt_status status = ask_device(pool, &entry, capacity);
  if (status != VT_OK) {
    vt__blocks_unreserve();
    vt__free(block);
    return status;
  }
  *block = (vt__pool_block){.ptr = entry.ptr, .capacity = capacity, .resources = entry.resources};
  vt__blocks_lock();
  vt__blocks_add_locked(&entry);
  hand_out(pool, block, bytes, true);
  pool->stats.misses++;
  pool->stats.peak_bytes = vt__max_size(pool->stats.peak_bytes, pool->stats.used_bytes + pool->stats.cached_bytes);
  vt__blocks_unlock();
  *out_ptr = entry.ptr;
  return VT_OK;
}

// Nothing suitable is at hand: looks how far the queues have come, then asks the device.
static vt_status alloc_slow(vt_queue *queue, size_t capacity, size_t bytes, void **out_ptr) {
  vt__error_mark before = vt__error_begin();
  vt__pool *pool = vt__pool_find_or_make(queue->backend);
  if (pool == NULL) {
    return fail_as("vt_alloc_async", VT_ERR_OUT_OF_MEMORY, "no memory for the pool of %s",
                   vt__device_name(queue->backend->device).text);
  }
  vt__pool_settle(pool);
  vt__blocks_lock();
  void *ptr = take_cached(pool, queue, capacity, bytes);
  vt__blocks_unlock();
  vt_status status = VT_OK;
  if (ptr != NULL) {
    *out_ptr = ptr;
  } else {
    status = grow(pool, capacity, bytes, out_ptr);
  }
  vt__error_forget(&before, status);
  return status;
}

static vt_status take(vt_queue *queue, size_t bytes, void **out_ptr) {
  size_t capacity;
  if (VT_UNLIKELY(!vt__pool_round(bytes, &capacity))) {
    return fail_as("vt_alloc_async", VT_ERR_OUT_OF_MEMORY, "no device has room for %zu bytes", bytes);
  }
  vt__blocks_lock();
  vt__pool *pool = vt__pool_find(queue->backend->device);
  void *ptr = pool == NULL ? NULL : take_cached(pool, queue, capacity, bytes);
  vt__blocks_unlock();
  if (VT_UNLIKELY(ptr == NULL)) {
    return alloc_slow(queue, capacity, bytes, out_ptr);
  }
  *out_ptr = ptr;
  return VT_OK;
}

vt_status vt_alloc_async(vt_queue *queue, size_t bytes, void **out_ptr) {
  VT_TRY(check_queue(queue, VT__HERE));
  VT_CHECK_ARG(out_ptr != NULL, "out_ptr is NULL");
  VT_TRY(take(queue, bytes, out_ptr));
  if (vt__validate_is_on()) {
    vt__validate_pool_allocated(*out_ptr, bytes, queue, VT__HERE);
  }
  return VT_OK;
}

// Says why `ptr` isn't a block to give back: `found` is what the table holds at that address.
static vt_status refuse_free(vt_device device, void *ptr, const vt__block *found, const char *function) {
  if (found->ptr == NULL) {
    return fail_as(function, VT_ERR_INVALID_ARGUMENT,
                   "%p is no live block of vt_alloc_async() (freed before, or not allocated here)", ptr);
  }
  if (found->pooled == NULL) {
    return fail_as(function, VT_ERR_INVALID_ARGUMENT, "%p is of vt_alloc() or vt_pinned_alloc(): it goes back with their free",
                   ptr);
  }
  if (found->device.type != device.type || found->device.index != device.index) {
    return fail_as(function, VT_ERR_INVALID_ARGUMENT, "%p is memory of %s, not of %s", ptr, vt__device_name(found->device).text,
                   vt__device_name(device).text);
  }
  return fail_as(function, VT_ERR_INVALID_ARGUMENT, "%p was freed before", ptr);
}

// Takes a live block of the device out of use. NULL, and what is there, if `ptr` isn't one. The lock is held.
static vt__pool_block *take_back(vt_device device, void *ptr, vt__block *out_found) {
  vt__blocks_find_locked(ptr, out_found);
  vt__pool_block *block = out_found->pooled;
  if (block == NULL || !block->live || out_found->device.type != device.type || out_found->device.index != device.index) {
    return NULL;
  }
  vt_pool_stats *stats = &vt__pool_find(device)->stats;
  block->live = false;
  stats->requested_bytes -= block->bytes;
  stats->used_bytes -= block->capacity;
  stats->cached_bytes += block->capacity;
  vt__blocks_uncount_locked(device, VT_MEMORY_DEVICE, block->bytes);
  return block;
}

// Makes the queue's lane if it has none. NULL if there is no memory. The lock is held.
static vt__lane *lane_of(vt__pool *pool, vt_queue *queue) {
  vt__lane *lane = queue->pool.lane;
  if (VT_UNLIKELY(lane == NULL) && (lane = vt__calloc(1, sizeof(*lane))) != NULL) {
    lane->queue = queue;
    lane->next = pool->lanes;
    if (lane->next != NULL) {
      lane->next->previous = lane;
    }
    pool->lanes = lane;
    queue->pool.lane = lane;
  }
  return lane;
}

// Puts a block where it may wait for the work submitted to the queue up to `ticket`. The lock is held.
static void put_away(vt__pool *pool, vt_queue *queue, uint64_t ticket, vt__pool_block *block) {
  if (queue->synchronous) {
    vt__shelf_put(&pool->shared, block);
    return;
  }
  vt__lane *lane = lane_of(pool, queue);
  if (VT_UNLIKELY(lane == NULL)) {
    vt__pool_to_limbo(pool, block);
    return;
  }
  block->since = ticket;
  vt__shelf_put(&lane->shelf, block);
}

vt_status vt_free_async(vt_queue *queue, void *ptr) {
  VT_TRY(check_queue(queue, VT__HERE));
  if (ptr == NULL) {
    return VT_OK;
  }
  const vt_backend *backend = queue->backend;
  if (vt__validate_is_on()) {
    vt__validate_pool_freeing(backend->device, ptr, queue, VT__HERE);
  }
  uint64_t ticket = 0;
  if (!queue->synchronous) {
    uint64_t serial = vt__error_serial();
    vt_status status = backend->ops.queue_get_ticket(backend->self, queue->native, &ticket);
    VT_TRY(vt__backend_failed(backend, "queue_get_ticket", status, serial));
  }
  vt__block found;
  vt__blocks_lock();
  vt__pool *pool = vt__pool_find(backend->device);
  vt__pool_block *block = take_back(backend->device, ptr, &found);
  bool above = false;
  if (VT_LIKELY(block != NULL)) {
    put_away(pool, queue, ticket, block);
    above = pool->stats.cached_bytes > pool->stats.limit_bytes;
  }
  vt__blocks_unlock();
  if (VT_UNLIKELY(block == NULL)) {
    return refuse_free(backend->device, ptr, &found, __func__);
  }
  if (VT_UNLIKELY(above)) {
    vt__pool_keep_limit(pool);
  }
  return VT_OK;
}

// The work of the block's owner has completed. Where it was handed out before the work of earlier owners had, that may not.
vt_status vt__pool_give_back(vt_device device, void *ptr, vt__call_site site) {
  if (vt__validate_is_on()) {
    vt__validate_pool_freeing(device, ptr, NULL, site);
  }
  vt__block found;
  vt__blocks_lock();
  vt__pool *pool = vt__pool_find(device);
  vt__pool_block *block = take_back(device, ptr, &found);
  bool above = false;
  if (block != NULL) {
    if (block->clean) {
      vt__shelf_put(&pool->shared, block);
    } else {
      vt__pool_to_limbo(pool, block);
    }
    above = pool->stats.cached_bytes > pool->stats.limit_bytes;
  }
  vt__blocks_unlock();
  if (block == NULL) {
    return refuse_free(device, ptr, &found, site.function);
  }
  if (above) {
    vt__pool_keep_limit(pool);
  }
  return VT_OK;
}
