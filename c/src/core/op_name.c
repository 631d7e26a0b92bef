// op_name.c: operation names and where operations live.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "core/check.h"
#include "core/op.h"

// Chunk k holds VT__OP_FIRST << k operations; the first one is static.
enum { CHUNKS = 24 };
vt__op vt__op_first[VT__OP_FIRST];
static _Atomic(vt__op *) chunks[CHUNKS];  // [0] stays NULL

pthread_mutex_t vt__op_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int32_t op_count;

int32_t vt__op_get_count(void) {
  // acquire: partner is the release store in intern().
  return atomic_load_explicit(&op_count, memory_order_acquire);
}

vt__op *vt__op_find_far(vt_op_id id) {
  if (id < 1 || id > vt__op_get_count()) {
    return NULL;
  }
  uint32_t above = (uint32_t)(id - 1) / VT__OP_FIRST + 1;
  uint32_t chunk = 31u - (uint32_t)__builtin_clz(above);
  // acquire: partner is the release store in slot_for().
  vt__op *ops = atomic_load_explicit(&chunks[chunk], memory_order_acquire);
  return &ops[(uint32_t)(id - 1) - VT__OP_FIRST * ((1u << chunk) - 1)];
}

static vt__op *new_chunk(uint32_t chunk) {
  size_t bytes = ((size_t)VT__OP_FIRST << chunk) * sizeof(vt__op);
  vt__op *ops = vt__malloc_aligned(VT_CACHE_LINE, bytes);
  if (ops != NULL) {
    memset(ops, 0, bytes);
  }
  return ops;
}

// The place of a new operation; makes its chunk if there is none. NULL if there is no memory. The mutex is held.
static vt__op *slot_for(int32_t index) {
  if (index < VT__OP_FIRST) {
    return &vt__op_first[index];
  }
  uint32_t chunk = 31u - (uint32_t)__builtin_clz((uint32_t)index / VT__OP_FIRST + 1);
  if (chunk >= CHUNKS) {
    return NULL;
  }
  // relaxed: changed under the mutex only.
  vt__op *ops = atomic_load_explicit(&chunks[chunk], memory_order_relaxed);
  if (ops == NULL) {
    ops = new_chunk(chunk);
    // release: partner is the acquire load in vt__op_find_far().
    atomic_store_explicit(&chunks[chunk], ops, memory_order_release);
  }
  return ops == NULL ? NULL : &ops[(uint32_t)index - VT__OP_FIRST * ((1u << chunk) - 1)];
}

// Finds or adds a name. 0 if there is no memory. The mutex is held.
static vt_op_id intern(const char *name) {
  // relaxed: changed under the mutex only.
  int32_t count = atomic_load_explicit(&op_count, memory_order_relaxed);
  for (vt_op_id id = 1; id <= count; id++) {
    if (strcmp(vt__op_find(id)->name, name) == 0) {
      return id;
    }
  }
  vt__op *slot = count < INT32_MAX ? slot_for(count) : NULL;
  if (slot == NULL) {
    return 0;
  }
  memcpy(slot->name, name, strlen(name) + 1);
  // release: partner is the acquire load in vt__op_get_count().
  atomic_store_explicit(&op_count, count + 1, memory_order_release);
  return count + 1;
}

vt_status vt__op_check_name(const char *name, const char *function) {
  if (name == NULL || name[0] == 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "name is %s", name == NULL ? "NULL" : "empty");
  }
  if (strnlen(name, VT__OP_NAME_MAX + 1) > VT__OP_NAME_MAX) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "name \"%.63s...\" is longer than %d bytes", name,
                        VT__OP_NAME_MAX);
  }
  return VT_OK;
}

vt_status vt_op_intern(const char *name, vt_op_id *out_id) {
  VT_TRY(vt__check_not_forked(__func__));
  VT_TRY(vt__op_check_name(name, __func__));
  VT_CHECK_ARG(out_id != NULL, "out_id is NULL");
  pthread_mutex_lock(&vt__op_mutex);
  vt_op_id id = intern(name);
  pthread_mutex_unlock(&vt__op_mutex);
  if (id == 0) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for operation \"%s\"", name);
  }
  *out_id = id;
  return VT_OK;
}

const char *vt_op_get_name(vt_op_id id) {
  return id >= 1 && id <= vt__op_get_count() ? vt__op_find(id)->name : NULL;
}

const char *vt__op_name_for_text(vt_op_id id) {
  const char *name = vt_op_get_name(id);
  return name == NULL ? "an unknown operation" : name;
}
