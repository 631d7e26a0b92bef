// validate_memory.c: the blocks that are allocated, and those that were freed.
//
// A freed block of the CPU stays allocated for some time, so that its address can't come to mean something else: malloc() would
// give it to somebody whom the layer doesn't see. Blocks of other devices, and large ones, are forgotten when they are freed.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/pool.h"
#include "core/validate_state.h"

#define KEPT_BLOCKS 1024
#define KEPT_BYTES ((size_t)32 << 20)

// Sorted by address; live blocks have no byte in common.
static vt__shadow_block **live;
static size_t live_count;
static size_t live_capacity;

static vt__shadow_block *kept[KEPT_BLOCKS];  // freed, oldest first, in a ring
static size_t kept_first;
static size_t kept_count;
static size_t kept_bytes;
static vt__shadow_block *expired;  // to be given back; chained through `arena`'s place, which freed blocks don't use
static uint64_t last_serial;

// A block of no bytes has an address of its own all the same.
static size_t extent_of(const vt__shadow_block *shadow) {
  return shadow->block.bytes == 0 ? 1 : shadow->block.bytes;
}

static bool shares(const vt__shadow_block *shadow, const void *ptr, size_t bytes) {
  return vt__overlaps(shadow->block.ptr, extent_of(shadow), ptr, bytes);
}

// How many live blocks begin at or before an address.
static size_t rank_of(const void *ptr) {
  size_t low = 0;
  size_t high = live_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)live[middle]->block.ptr <= (uintptr_t)ptr) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

vt__shadow_block *vt__shadow_block_find(const void *ptr, size_t bytes) {
  size_t rank = rank_of(ptr);
  if (rank > 0 && shares(live[rank - 1], ptr, bytes)) {
    return live[rank - 1];
  }
  return rank < live_count && shares(live[rank], ptr, bytes) ? live[rank] : NULL;
}

vt__shadow_uses *vt__shadow_uses_of(const void *ptr, size_t bytes) {
  vt__shadow_block *shadow = vt__shadow_block_find(ptr, bytes);
  return shadow == NULL ? &vt__host_uses : &shadow->uses;
}

static void forget(vt__shadow_block *shadow) {
  vt__uses_clear(&shadow->uses);
  vt__shadow_arena_free(shadow->arena);
  vt__free(shadow);
}

static void take_out(size_t place) {
  live_count--;
  memmove(&live[place], &live[place + 1], (live_count - place) * sizeof(*live));
}

static bool reserve(void) {
  if (live_count < live_capacity) {
    return true;
  }
  size_t capacity = live_capacity == 0 ? 256 : live_capacity * 2;
  vt__shadow_block **grown = vt__realloc(live, live_capacity, capacity, sizeof(*grown));
  if (grown != NULL) {
    live = grown;
    live_capacity = capacity;
  }
  return grown != NULL;
}

// False without memory: the block stays unknown, as host memory is.
static bool add(const vt__block *block, vt__site site) {
  vt__shadow_block *stale = vt__shadow_block_find(block->ptr, block->bytes == 0 ? 1 : block->bytes);
  while (stale != NULL) {  // its end was not seen
    take_out(rank_of(stale->block.ptr) - 1);
    forget(stale);
    stale = vt__shadow_block_find(block->ptr, block->bytes == 0 ? 1 : block->bytes);
  }
  vt__shadow_block *shadow = reserve() ? vt__calloc(1, sizeof(*shadow)) : NULL;
  if (shadow == NULL) {
    return false;
  }
  shadow->block = *block;
  shadow->serial = ++last_serial;
  shadow->allocated = site;
  size_t place = rank_of(block->ptr);
  memmove(&live[place + 1], &live[place], (live_count - place) * sizeof(*live));
  live[place] = shadow;
  live_count++;
  return true;
}

void vt__validate_allocated(const vt__block *block, vt__call_site site) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    if (!add(block, vt__site_of(site))) {
      vt__report_limit(&reports, "there is no memory to note one more block");
    }
    vt__validate_end(&reports);
  }
}

void vt__validate_freeing(const vt__block *block, vt__call_site site) {
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  vt__shadow_block *shadow = vt__shadow_block_find(block->ptr, 1);
  if (shadow != NULL && shadow->block.ptr == block->ptr) {
    vt__site now = vt__site_of(site);
    vt__use all = {block->ptr, extent_of(shadow), VT_TOUCH_WRITE | VT__TOUCH_FREE};
    vt__use_check_pending(&reports, &all, now, "frees");
    vt__shadow_graph_check_free(&reports, shadow, now);
    shadow->freed = now;
  }
  vt__validate_end(&reports);
}

void vt__validate_pool_allocated(void *ptr, size_t bytes, vt_queue *queue, vt__call_site site) {
  vt__block block = {.ptr = ptr, .bytes = bytes, .device = queue->backend->device, .kind = VT_MEMORY_DEVICE};
  vt__use use = {ptr, bytes, VT_TOUCH_WRITE | VT__TOUCH_ALLOC};
  vt__validate_allocated(&block, site);
  vt__validate_note(queue, &use, 1, site);
}

// A failed queue can't be made to wait any more; the pool sees to it that its blocks rest long enough.
static bool has_failed(vt_queue *queue) {
  vt__error_mark before = vt__error_begin();
  bool failed = queue->synchronous == 0 && queue->backend->ops.queue_query(queue->backend->self, queue->native) < 0;
  vt__error_forget(&before, VT_OK);
  return failed;
}

// On a queue, the free is like a write: it comes after all uses.
void vt__validate_pool_freeing(vt_device device, void *ptr, vt_queue *queue, vt__call_site site) {
  uint64_t sequence = queue == NULL ? 0 : vt__ticket_of(queue);
  bool failed = queue != NULL && has_failed(queue);
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  vt__shadow_block *shadow = vt__shadow_block_find(ptr, 1);
  bool is_same = shadow != NULL && shadow->block.ptr == ptr && !shadow->is_freed && shadow->block.device.type == device.type &&
                 shadow->block.device.index == device.index;
  if (is_same) {
    vt__site now = vt__site_of(site);
    vt__use all = {ptr, extent_of(shadow), VT_TOUCH_WRITE | VT__TOUCH_FREE};
    if (queue == NULL) {
      vt__use_check_pending(&reports, &all, now, "frees");
    } else if (!failed) {
      now.queue_id = queue->handle.id;
      now.sequence = sequence;
      all.mode = VT_TOUCH_WRITE;
      (void)vt__use_check_race(&reports, &all, queue, vt__shadow_queue_get(queue, &reports), 0, now);
    }
    vt__shadow_graph_check_free(&reports, shadow, now);
    shadow->freed = now;
    shadow->is_freed = true;
  }
  vt__validate_end(&reports);
}

void vt__validate_pool_trimmed(const void *ptr) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    vt__shadow_block *shadow = vt__shadow_block_find(ptr, 1);
    if (shadow != NULL && shadow->block.ptr == ptr) {
      take_out(rank_of(ptr) - 1);
      forget(shadow);
    }
    vt__validate_end(&reports);
  }
}

static void expire(vt__shadow_block *shadow) {
  shadow->arena = (vt__shadow_arena *)(void *)expired;
  expired = shadow;
}

static void expire_oldest(void) {
  vt__shadow_block *shadow = kept[kept_first];
  kept_first = (kept_first + 1) % KEPT_BLOCKS;
  kept_count--;
  kept_bytes -= shadow->block.bytes;
  expire(shadow);
}

static void keep(vt__shadow_block *shadow) {
  vt__uses_clear(&shadow->uses);
  vt__shadow_arena_free(shadow->arena);
  shadow->arena = NULL;
  while (kept_count == KEPT_BLOCKS || (kept_count > 0 && kept_bytes + shadow->block.bytes > KEPT_BYTES)) {
    expire_oldest();
  }
  kept[(kept_first + kept_count) % KEPT_BLOCKS] = shadow;
  kept_count++;
  kept_bytes += shadow->block.bytes;
}

bool vt__validate_keeps(const vt__block *block, bool is_from_cpu) {
  bool keeps = false;
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    vt__shadow_block *shadow = vt__shadow_block_find(block->ptr, 1);
    if (shadow != NULL && shadow->block.ptr == block->ptr) {
      take_out(rank_of(block->ptr) - 1);
      keeps = is_from_cpu && block->flags == 0 && block->bytes <= KEPT_BYTES;
      if (keeps) {
        shadow->block = *block;
        keep(shadow);
      } else {
        forget(shadow);
      }
    }
    vt__validate_end(&reports);
  }
  return keeps;
}

bool vt__validate_take_expired(vt__block *out_block) {
  vt__shadow_lock();
  vt__shadow_block *shadow = expired;
  if (shadow != NULL) {
    expired = (vt__shadow_block *)(void *)shadow->arena;
    *out_block = shadow->block;
  }
  vt__shadow_unlock();
  vt__free(shadow);
  return shadow != NULL;
}

static const vt__shadow_block *find_freed(const void *ptr, size_t bytes) {
  for (size_t i = kept_count; i-- > 0;) {
    const vt__shadow_block *shadow = kept[(kept_first + i) % KEPT_BLOCKS];
    if (shares(shadow, ptr, bytes)) {
      return shadow;
    }
  }
  return NULL;
}

const vt__shadow_block *vt__shadow_find_freed(uint64_t serial) {
  for (size_t i = kept_count; i-- > 0;) {
    const vt__shadow_block *shadow = kept[(kept_first + i) % KEPT_BLOCKS];
    if (shadow->serial == serial) {
      return shadow;
    }
  }
  return NULL;
}

static void report_bounds(vt__reports *reports, const vt__shadow_block *shadow, const vt__use *use, vt__site now) {
  vt__found *found = vt__report(reports, VT_VALIDATE_OUT_OF_BOUNDS, use, now, shadow->allocated);
  (void)snprintf(found->action, sizeof(found->action), "%s %zu bytes at %p, which leaves a block of %zu bytes at %p%s",
                 vt__use_verb(use->mode), use->bytes, use->ptr, shadow->block.bytes, shadow->block.ptr,
                 shadow->allocated.function == NULL ? "" : ", from");
}

bool vt__shadow_check_place(vt__reports *reports, const vt__use *use, vt__site now) {
  const vt__shadow_block *shadow = vt__shadow_block_find(use->ptr, use->bytes);
  if (shadow == NULL || shadow->is_freed) {
    shadow = shadow != NULL ? shadow : find_freed(use->ptr, use->bytes);
    if (shadow != NULL) {
      vt__found *found = vt__report(reports, VT_VALIDATE_USE_AFTER_FREE, use, now, shadow->freed);
      (void)snprintf(found->action, sizeof(found->action),
                     "%s %zu bytes at %p, of a block of %zu bytes at %p that was given back in", vt__use_verb(use->mode),
                     use->bytes, use->ptr, shadow->block.bytes, shadow->block.ptr);
    }
    return shadow == NULL;
  }
  uintptr_t begin = (uintptr_t)use->ptr;
  uintptr_t first = (uintptr_t)shadow->block.ptr;
  if (begin < first || use->bytes > shadow->block.bytes || begin - first > shadow->block.bytes - use->bytes) {
    report_bounds(reports, shadow, use, now);
  } else if (shadow->arena != NULL) {
    vt__shadow_arena_check(reports, shadow, use, now);
  }
  return true;
}

// Blocks of the pool that are not in use come into sight when they are.
static bool note_live(const vt__block *block, void *unused) {
  (void)unused;
  vt__block noted = *block;
  if (block->pooled != NULL) {
    noted.bytes = block->pooled->bytes;
  }
  return (block->pooled != NULL && !block->pooled->live) || add(&noted, (vt__site){0});
}

bool vt__shadow_memory_open(void) {
  return vt__blocks_each(note_live, NULL);
}

void vt__shadow_memory_close(void) {
  for (size_t i = 0; i < live_count; i++) {
    forget(live[i]);
  }
  vt__free(live);
  live = NULL;
  live_count = 0;
  live_capacity = 0;
  while (kept_count > 0) {
    expire_oldest();
  }
}
