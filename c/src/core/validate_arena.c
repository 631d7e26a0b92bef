// validate_arena.c: which parts of a slab are given out.
#include <stdio.h>

#include "base/alloc.h"
#include "core/validate_state.h"

#define MAX_PARTS 65536

typedef struct part {
  size_t offset;
  size_t bytes;
  vt__site site;
} part;

struct vt__shadow_arena {
  part *parts;  // by offset
  size_t count;
  size_t capacity;
  size_t high;      // end of the highest part so far
  vt__site cut;     // the last reset or rewind; its function is NULL before the first
  bool is_unknown;  // parts are missing: nothing is checked until the next reset
};

vt__shadow_arena *vt__shadow_arena_new(void) {
  return vt__calloc(1, sizeof(vt__shadow_arena));
}

void vt__shadow_arena_free(vt__shadow_arena *arena) {
  if (arena != NULL) {
    vt__free(arena->parts);
    vt__free(arena);
  }
}

// The last part that begins at or before an offset.
static const part *part_at(const vt__shadow_arena *arena, size_t offset) {
  size_t low = 0;
  size_t high = arena->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (arena->parts[middle].offset <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? NULL : &arena->parts[low - 1];
}

static void report_reset(vt__reports *reports, const vt__shadow_arena *arena, const vt__use *use, vt__site now) {
  vt__found *found = vt__report(reports, VT_VALIDATE_USE_AFTER_RESET, use, now, arena->cut);
  (void)snprintf(found->action, sizeof(found->action), "%s %zu bytes at %p, which the arena took back in", vt__use_verb(use->mode),
                 use->bytes, use->ptr);
}

void vt__shadow_arena_check(vt__reports *reports, const vt__shadow_block *slab, const vt__use *use, vt__site now) {
  const vt__shadow_arena *arena = slab->arena;
  size_t offset = (size_t)((const char *)use->ptr - (const char *)slab->block.ptr);
  const part *own = part_at(arena, offset);
  if (arena->is_unknown ||
      (own != NULL && offset - own->offset <= own->bytes && use->bytes <= own->bytes - (offset - own->offset))) {
    return;
  }
  bool starts_inside = own != NULL && offset - own->offset < own->bytes;
  if (!starts_inside && arena->cut.function != NULL && offset < arena->high) {
    report_reset(reports, arena, use, now);
    return;
  }
  vt__found *found = vt__report(reports, VT_VALIDATE_OUT_OF_BOUNDS, use, now, own == NULL ? slab->allocated : own->site);
  (void)snprintf(found->action, sizeof(found->action), "%s %zu bytes at %p, which leaves what the arena gave out, from",
                 vt__use_verb(use->mode), use->bytes, use->ptr);
}

static vt__shadow_block *find_slab(const void *slab) {
  vt__shadow_block *block = vt__shadow_block_find(slab, 1);
  return block != NULL && block->block.ptr == slab ? block : NULL;
}

void vt__validate_arena_created(const void *slab, vt__call_site site) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    vt__shadow_block *block = find_slab(slab);
    if (block != NULL) {
      block->allocated = vt__site_of(site);
      block->arena = vt__shadow_arena_new();  // without memory it is a plain block
    }
    vt__validate_end(&reports);
  }
}

static bool grow(vt__shadow_arena *arena) {
  if (arena->count < arena->capacity) {
    return true;
  }
  size_t capacity = arena->capacity == 0 ? 64 : arena->capacity * 2;
  part *parts = capacity <= MAX_PARTS ? vt__realloc(arena->parts, arena->capacity, capacity, sizeof(*parts)) : NULL;
  if (parts != NULL) {
    arena->parts = parts;
    arena->capacity = capacity;
  }
  return parts != NULL;
}

void vt__validate_arena_allocated(const void *slab, size_t offset, size_t bytes, vt__call_site site) {
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  vt__shadow_block *block = find_slab(slab);
  vt__shadow_arena *arena = block == NULL ? NULL : block->arena;
  if (arena != NULL && grow(arena)) {
    arena->parts[arena->count++] = (part){.offset = offset, .bytes = bytes, .site = vt__site_of(site)};
    arena->high = vt__max_size(arena->high, offset + bytes);
  } else if (arena != NULL) {
    arena->is_unknown = true;
    vt__report_limit(&reports, "an arena gives out more parts than validation keeps");
  }
  vt__validate_end(&reports);
}

void vt__validate_arena_cut(const void *slab, size_t used, vt__call_site site) {
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  vt__shadow_block *block = find_slab(slab);
  if (block != NULL && block->arena != NULL) {
    vt__shadow_arena *arena = block->arena;
    while (arena->count > 0 && arena->parts[arena->count - 1].offset >= used) {
      arena->count--;
    }
    arena->cut = vt__site_of(site);
    arena->is_unknown = arena->is_unknown && used > 0;
  }
  vt__validate_end(&reports);
}
