// blocks.c: see blocks.h. Open addressing with linear probing (Knuth, TAOCP 6.4, algorithms L and R).
#include "core/blocks.h"

#include <pthread.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/macros.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vt__block *places;
static size_t capacity;  // a power of two, or 0
static size_t used;      // blocks
static size_t reserved;  // blocks that will come
static vt_memory_stats sums[VT_DEVICE_TYPE_COUNT][VT_MAX_DEVICES_PER_TYPE][2];

static size_t home_of(const void *ptr) {
  uint64_t key = (uint64_t)(uintptr_t)ptr >> 4;
  return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (capacity - 1);
}

static void insert(const vt__block *block) {
  size_t i = home_of(block->ptr);
  while (places[i].ptr != NULL) {
    i = (i + 1) & (capacity - 1);
  }
  places[i] = *block;
  used++;
}

static bool grow(void) {
  size_t old_capacity = capacity;
  vt__block *old = places;
  size_t wanted = old_capacity == 0 ? 256 : old_capacity * 2;
  vt__block *fresh = vt__calloc(wanted, sizeof(*fresh));
  if (fresh == NULL) {
    return false;
  }
  places = fresh;
  capacity = wanted;
  used = 0;
  for (size_t i = 0; i < old_capacity; i++) {
    if (old[i].ptr != NULL) {
      insert(&old[i]);
    }
  }
  vt__free(old);
  return true;
}

bool vt__blocks_reserve(void) {
  pthread_mutex_lock(&mutex);
  bool fits = (used + reserved + 1) * 2 <= capacity || grow();
  reserved += fits;
  pthread_mutex_unlock(&mutex);
  return fits;
}

void vt__blocks_unreserve(void) {
  pthread_mutex_lock(&mutex);
  reserved--;
  pthread_mutex_unlock(&mutex);
}

void vt__blocks_lock(void) {
  pthread_mutex_lock(&mutex);
}

void vt__blocks_unlock(void) {
  pthread_mutex_unlock(&mutex);
}

void vt__blocks_count_locked(vt_device device, int32_t kind, size_t bytes) {
  vt_memory_stats *stats = &sums[device.type][device.index][kind];
  stats->live_bytes += bytes;
  stats->live_count++;
  stats->peak_bytes = vt__max_size(stats->peak_bytes, stats->live_bytes);
}

void vt__blocks_uncount_locked(vt_device device, int32_t kind, size_t bytes) {
  vt_memory_stats *stats = &sums[device.type][device.index][kind];
  stats->live_bytes -= bytes;
  stats->live_count--;
}

void vt__blocks_add_locked(const vt__block *block) {
  reserved--;
  insert(block);
}

void vt__blocks_add(const vt__block *block) {
  pthread_mutex_lock(&mutex);
  vt__blocks_add_locked(block);
  vt__blocks_count_locked(block->device, block->kind, block->bytes);
  pthread_mutex_unlock(&mutex);
}

// Empties place `i` and moves back what probing would no longer reach.
static void erase(size_t i) {
  for (size_t j = (i + 1) & (capacity - 1); places[j].ptr != NULL; j = (j + 1) & (capacity - 1)) {
    size_t home = home_of(places[j].ptr);
    bool reachable = i <= j ? (i < home && home <= j) : (i < home || home <= j);
    if (!reachable) {
      places[i] = places[j];
      i = j;
    }
  }
  places[i] = (vt__block){0};
  used--;
}

// The place of `ptr`; NULL if it isn't there.
static vt__block *place_of(const void *ptr) {
  for (size_t i = capacity == 0 ? 0 : home_of(ptr); capacity != 0 && places[i].ptr != NULL; i = (i + 1) & (capacity - 1)) {
    if (places[i].ptr == ptr) {
      return &places[i];
    }
  }
  return NULL;
}

void vt__blocks_find_locked(const void *ptr, vt__block *out) {
  const vt__block *place = place_of(ptr);
  *out = place == NULL ? (vt__block){0} : *place;
}

void vt__blocks_remove_locked(const void *ptr) {
  erase((size_t)(place_of(ptr) - places));
  reserved++;
}

bool vt__blocks_take(void *ptr, vt_device device, int32_t kind, vt__block *out_found) {
  pthread_mutex_lock(&mutex);
  vt__blocks_find_locked(ptr, out_found);
  bool taken = out_found->ptr != NULL && out_found->pooled == NULL && out_found->kind == kind &&
               out_found->device.type == device.type && out_found->device.index == device.index;
  if (taken) {
    vt__blocks_uncount_locked(device, kind, out_found->bytes);
    vt__blocks_remove_locked(ptr);
  }
  pthread_mutex_unlock(&mutex);
  return taken;
}

bool vt__blocks_each(bool (*fn)(const vt__block *block, void *user), void *user) {
  bool goes_on = true;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < capacity && goes_on; i++) {
    goes_on = places[i].ptr == NULL || fn(&places[i], user);
  }
  pthread_mutex_unlock(&mutex);
  return goes_on;
}

void vt__blocks_get_stats(vt_device device, int32_t kind, vt_memory_stats *out) {
  pthread_mutex_lock(&mutex);
  *out = sums[device.type][device.index][kind];
  pthread_mutex_unlock(&mutex);
}
