// pool_trim.c: the pools of the devices, and how much they keep. See vllm_vt/pool.h and pool.h.
#include <string.h>

#include "base/alloc.h"
#include "core/check.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/validate.h"

static vt__pool *pools[VT_DEVICE_TYPE_COUNT][VT_MAX_DEVICES_PER_TYPE];  // never freed

vt__pool *vt__pool_find(vt_device device) {
  return pools[device.type][device.index];
}

static vt__pool *find(vt_device device) {
  vt__blocks_lock();
  vt__pool *pool = vt__pool_find(device);
  vt__blocks_unlock();
  return pool;
}

vt__pool *vt__pool_find_or_make(const vt_backend *backend) {
  vt_device device = backend->device;
  vt__pool *pool = find(device);
  vt__pool *fresh = pool == NULL ? vt__calloc(1, sizeof(*fresh)) : NULL;
  if (fresh == NULL) {
    return pool;
  }
  fresh->backend = backend;
  fresh->stats.limit_bytes = VT_POOL_DEFAULT_LIMIT;
  vt__blocks_lock();
  pool = vt__pool_find(device);
  if (pool == NULL) {
    pools[device.type][device.index] = pool = fresh;
    fresh = NULL;
  }
  vt__blocks_unlock();
  vt__free(fresh);
  return pool;
}

// Takes the oldest shared block out of the pool if more than `keep_bytes` are cached.
static vt__pool_block *take_oldest(vt__pool *pool, uint64_t keep_bytes) {
  vt__blocks_lock();
  vt__pool_block *block = pool->stats.cached_bytes > keep_bytes ? pool->shared.oldest : NULL;
  if (block != NULL) {
    vt__shelf_remove(&pool->shared, block);
    pool->stats.cached_bytes -= block->capacity;
    vt__blocks_remove_locked(block->ptr);
  }
  vt__blocks_unlock();
  return block;
}

static void put_back(vt__pool *pool, vt__pool_block *block, const vt__block *entry) {
  vt__blocks_lock();
  vt__blocks_add_locked(entry);
  vt__shelf_put(&pool->shared, block);
  pool->stats.cached_bytes += block->capacity;
  vt__blocks_unlock();
}

// Gives what is shared back to the device until at most `keep_bytes` are cached. Adds the bytes to *given.
static vt_status trim_shared(vt__pool *pool, uint64_t keep_bytes, size_t *given) {
  vt__pool_block *block;
  while ((block = take_oldest(pool, keep_bytes)) != NULL) {
    vt__block entry = {
        .ptr = block->ptr, .device = pool->backend->device, .kind = VT_MEMORY_DEVICE, .numa_node = -1, .pooled = block};
    entry.resources = block->resources;
    if (vt__validate_is_on()) {
      vt__validate_pool_trimmed(block->ptr);
    }
    vt_status status = vt__device_give(pool->backend, &entry);
    if (status != VT_OK) {
      put_back(pool, block, &entry);
      return status;
    }
    vt__blocks_unreserve();
    *given += block->capacity;
    vt__free(block);
  }
  return VT_OK;
}

static vt_status trim(vt__pool *pool, uint64_t keep_bytes, size_t *given) {
  VT_TRY(trim_shared(pool, keep_bytes, given));
  vt__pool_settle(pool);
  return trim_shared(pool, keep_bytes, given);
}

size_t vt__pool_reclaim(vt_device device) {
  size_t given = 0;
  vt__pool *pool = find(device);
  if (pool != NULL) {
    vt__error_mark before = vt__error_begin();
    (void)trim(pool, 0, &given);  // what doesn't go back can't help
    vt__error_forget(&before, VT_OK);
  }
  return given;
}

void vt__pool_keep_limit(vt__pool *pool) {
  vt__error_mark before = vt__error_begin();
  vt__blocks_lock();
  uint64_t limit = pool->stats.limit_bytes;
  vt__blocks_unlock();
  size_t given = 0;
  (void)trim(pool, limit, &given);  // a block that the device doesn't take stays; the next call tries again
  vt__error_forget(&before, VT_OK);
}

static vt_status open_pool(vt_device device, vt__call_site site, vt__pool **out) {
  const vt_backend *backend;
  VT_TRY(vt__check_not_capturing(site));
  VT_TRY(vt__backend_lookup(device, site.function, &backend));
  *out = vt__pool_find_or_make(backend);
  return *out != NULL ? VT_OK
                      : vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, site.function, "no memory for the pool of %s",
                                     vt__device_name(device).text);
}

vt_status vt_pool_trim(vt_device device, size_t keep_bytes) {
  vt__pool *pool;
  VT_TRY(open_pool(device, VT__HERE, &pool));
  vt__error_mark before = vt__error_begin();
  size_t given = 0;
  vt_status status = trim(pool, keep_bytes, &given);
  vt__error_forget(&before, status);  // of a queue that was found to have failed
  return status;
}

vt_status vt_pool_set_limit(vt_device device, size_t bytes) {
  vt__pool *pool;
  VT_TRY(open_pool(device, VT__HERE, &pool));
  vt__blocks_lock();
  pool->stats.limit_bytes = bytes;
  vt__blocks_unlock();
  return vt_pool_trim(device, bytes);
}

vt_status vt_pool_get_stats(vt_device device, vt_pool_stats *out_stats) {
  const vt_backend *backend;
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  VT_CHECK_ARG(out_stats != NULL, "out_stats is NULL");
  VT_CHECK_ARG(out_stats->struct_size >= sizeof(size_t) + sizeof(uint64_t), "struct_size %zu of the pool stats is too small",
               out_stats->struct_size);
  vt_pool_stats stats = {.limit_bytes = VT_POOL_DEFAULT_LIMIT};
  vt__blocks_lock();
  const vt__pool *pool = vt__pool_find(device);
  if (pool != NULL) {
    stats = pool->stats;
  }
  vt__blocks_unlock();
  stats.struct_size = out_stats->struct_size;
  memcpy(out_stats, &stats, vt__min_size(out_stats->struct_size, sizeof(stats)));
  return VT_OK;
}
