// arena.c: see vllm_vt/arena.h.
#include "vllm_vt/arena.h"

#include <string.h>

#include "core/check.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/validate.h"

#define ARENA_ALIGN 64

struct vt_arena {
  vt__handle handle;
  vt_device device;
  char *base;
  size_t capacity;
  size_t used;  // a multiple of ARENA_ALIGN, never above the capacity
  size_t high_water;
  uint64_t resets;
};

// Who called vt_arena_release() on this thread, while that runs.
static _Thread_local const void *releaser;

static void finalize(vt__handle *handle) {
  vt_arena *arena = (vt_arena *)handle;
  // The slab was allocated by this object, so a failure here is a defect of the backend: it can only be reported.
  if (vt__give_back(arena->device, VT_MEMORY_DEVICE, arena->base, (vt__call_site){"vt_arena_release", releaser}) != VT_OK) {
    vt__log(VT_LOG_ERROR, "vt_arena_release: %s", vt_last_error()->message);
  }
  vt__handle_recycle(handle);
}

vt__handle_pool vt__arena_pool = {
    .tag = 0x41524e41, .object_size = 128, .slab_objects = 16, .finalize = finalize, .mutex = PTHREAD_MUTEX_INITIALIZER};

static vt_status check(const vt_arena *arena, const char *function) {
  return vt__check_live(arena, &vt__arena_pool, "arena", function);
}

vt_status vt_arena_create(vt_device device, size_t capacity, vt_arena **out_arena) {
  VT_TRY(vt__check_not_capturing(VT__HERE));
  VT_CHECK_ARG(out_arena != NULL, "out_arena is NULL");
  void *slab;
  const vt_alloc_options plain = VT_ALLOC_OPTIONS_INIT;
  VT_TRY(vt__allocate(device, capacity, &plain, &slab, VT__HERE));
  vt_arena *arena = vt__handle_new(&vt__arena_pool);
  if (arena == NULL) {
    (void)vt__give_back(device, VT_MEMORY_DEVICE, slab, VT__HERE);  // the error to report is the lack of memory
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for an arena");
  }
  arena->device = device;
  arena->base = slab;
  arena->capacity = capacity;
  if (vt__validate_is_on()) {
    vt__validate_arena_created(slab, VT__HERE);
  }
  *out_arena = arena;
  return VT_OK;
}

vt_status vt_arena_retain(vt_arena *arena) {
  return vt__retain(arena, &vt__arena_pool, "arena", __func__);
}

void vt_arena_release(vt_arena *arena) {
  releaser = VT__CALLER;
  vt__release(arena, &vt__arena_pool, "arena", __func__);
}

static vt_status take(vt_arena *arena, size_t bytes, void **out_ptr, vt__call_site site) {
  VT_CHECK_ARG(out_ptr != NULL, "out_ptr is NULL");
  size_t padded;
  size_t room = arena->capacity - arena->used;
  if (!vt__align_up(bytes, ARENA_ALIGN, &padded) || padded > room) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "arena of %zu bytes has %zu left, asked for %zu", arena->capacity, room, bytes);
  }
  if (vt__validate_is_on()) {
    vt__validate_arena_allocated(arena->base, arena->used, bytes, site);
  }
  *out_ptr = arena->base + arena->used;
  arena->used += padded;
  arena->high_water = vt__max_size(arena->high_water, arena->used);
  return VT_OK;
}

vt_status vt_arena_alloc(vt_arena *arena, size_t bytes, void **out_ptr) {
  VT_TRY(check(arena, __func__));
  return take(arena, bytes, out_ptr, VT__HERE);
}

vt_status vt_arena_alloc_elements(vt_arena *arena, size_t count, vt_dtype dtype, void **out_ptr) {
  VT_TRY(check(arena, __func__));
  size_t elements;
  size_t block_bytes;
  VT_TRY(vt_dtype_get_block(dtype, &elements, &block_bytes));
  VT_CHECK_ARG(count % elements == 0, "%zu elements of %s are not in whole blocks of %zu", count, vt_dtype_get_name(dtype),
               elements);
  size_t bytes;
  if (vt__mul_overflows(count / elements, block_bytes, &bytes)) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "arena of %zu bytes has %zu left, asked for %zu elements of %s", arena->capacity,
                    arena->capacity - arena->used, count, vt_dtype_get_name(dtype));
  }
  return take(arena, bytes, out_ptr, VT__HERE);
}

vt_status vt_arena_reset(vt_arena *arena) {
  VT_TRY(check(arena, __func__));
  if (vt__validate_is_on()) {
    vt__validate_arena_cut(arena->base, 0, VT__HERE);
  }
  arena->used = 0;
  arena->resets++;
  return VT_OK;
}

vt_status vt_arena_get_mark(vt_arena *arena, vt_arena_mark *out_mark) {
  VT_TRY(check(arena, __func__));
  VT_CHECK_ARG(out_mark != NULL, "out_mark is NULL");
  *out_mark = (vt_arena_mark){.arena_id = arena->handle.id, .resets = arena->resets, .used = arena->used};
  return VT_OK;
}

vt_status vt_arena_rewind(vt_arena *arena, vt_arena_mark mark) {
  VT_TRY(check(arena, __func__));
  VT_CHECK_ARG(mark.arena_id == arena->handle.id, "the mark is of another arena");
  VT_CHECK_ARG(mark.resets == arena->resets, "the mark is from before a reset");
  VT_CHECK_ARG(mark.used <= arena->used, "the mark at %zu bytes is above the present fill of %zu: an outer rewind has passed it",
               mark.used, arena->used);
  if (vt__validate_is_on()) {
    vt__validate_arena_cut(arena->base, mark.used, VT__HERE);
  }
  arena->used = mark.used;
  return VT_OK;
}

vt_status vt_arena_get_stats(vt_arena *arena, vt_arena_stats *out_stats) {
  VT_TRY(check(arena, __func__));
  VT_CHECK_ARG(out_stats != NULL, "out_stats is NULL");
  VT_CHECK_ARG(out_stats->struct_size >= 2 * sizeof(size_t), "struct_size %zu of the arena stats is too small",
               out_stats->struct_size);
  vt_arena_stats stats = {.struct_size = out_stats->struct_size,
                          .capacity = arena->capacity,
                          .used = arena->used,
                          .high_water = arena->high_water,
                          .resets = arena->resets};
  memcpy(out_stats, &stats, vt__min_size(out_stats->struct_size, sizeof(stats)));
  return VT_OK;
}

vt_status vt_arena_get_device(vt_arena *arena, vt_device *out_device) {
  VT_TRY(check(arena, __func__));
  VT_CHECK_ARG(out_device != NULL, "out_device is NULL");
  *out_device = arena->device;
  return VT_OK;
}
