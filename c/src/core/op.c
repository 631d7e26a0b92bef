// op.c: operation names and the providers of each operation.
//
// Per operation and device type there is an immutable list, sorted once when it is made. Registering makes a new list and publishes
// it; the lists before stay, linked from the new one, since a reader may still be looking at them. A look-up is one acquire load.
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/registry.h"
#include "vllm_vt/op.h"

#define NAME_MAX_BYTES 63

typedef struct entry {
  vt_op_provider provider;
  char name[NAME_MAX_BYTES + 1];
} entry;

typedef struct list {
  struct list *before;  // keeps the lists before reachable
  size_t count;
  const entry *entries[];  // best first
} list;

typedef struct op {
  char name[NAME_MAX_BYTES + 1];
  _Atomic(list *) lists[VT_DEVICE_TYPE_COUNT];
} op;

// Ids count from 1. Chunk k holds FIRST << k operations; the first needs no memory and no load.
enum { FIRST = 64, CHUNKS = 24 };
static op first_chunk[FIRST];
static _Atomic(op *) chunks[CHUNKS];  // [0] stays NULL

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards all changes
static _Atomic int32_t op_count;

// Where the operation of an id lives. NULL for an id that can't have been given out.
static op *find_op(vt_op_id id) {
  if (VT_LIKELY(id >= 1 && id <= FIRST)) {
    return &first_chunk[id - 1];
  }
  // acquire: partner is the release store in intern().
  if (id < 1 || id > atomic_load_explicit(&op_count, memory_order_acquire)) {
    return NULL;
  }
  uint32_t above = (uint32_t)(id - 1) / FIRST + 1;
  uint32_t chunk = 31u - (uint32_t)__builtin_clz(above);
  // acquire: partner is the release store in slot_for().
  op *ops = atomic_load_explicit(&chunks[chunk], memory_order_acquire);
  return &ops[(uint32_t)(id - 1) - FIRST * ((1u << chunk) - 1)];
}

// The place of a new operation; makes its chunk if there is none. NULL if there is no memory. The mutex is held.
static op *slot_for(int32_t index) {
  if (index < FIRST) {
    return &first_chunk[index];
  }
  uint32_t chunk = 31u - (uint32_t)__builtin_clz((uint32_t)index / FIRST + 1);
  if (chunk >= CHUNKS) {
    return NULL;
  }
  // relaxed: changed under the mutex only.
  op *ops = atomic_load_explicit(&chunks[chunk], memory_order_relaxed);
  if (ops == NULL) {
    ops = calloc((size_t)FIRST << chunk, sizeof(op));
    // release: partner is the acquire load in find_op().
    atomic_store_explicit(&chunks[chunk], ops, memory_order_release);
  }
  return ops == NULL ? NULL : &ops[(uint32_t)index - FIRST * ((1u << chunk) - 1)];
}

// Finds or adds a name. 0 if there is no memory. The mutex is held.
static vt_op_id intern(const char *name) {
  // relaxed: changed under the mutex only.
  int32_t count = atomic_load_explicit(&op_count, memory_order_relaxed);
  for (vt_op_id id = 1; id <= count; id++) {
    if (strcmp(find_op(id)->name, name) == 0) {
      return id;
    }
  }
  op *slot = count < INT32_MAX ? slot_for(count) : NULL;
  if (slot == NULL) {
    return 0;
  }
  memcpy(slot->name, name, strlen(name) + 1);
  // release: partners are the acquire loads in find_op() and vt_op_get_name().
  atomic_store_explicit(&op_count, count + 1, memory_order_release);
  return count + 1;
}

static vt_status check_name(const char *name, const char *function) {
  if (name == NULL || name[0] == 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "name is %s", name == NULL ? "NULL" : "empty");
  }
  if (strnlen(name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "name \"%.63s...\" is longer than %d bytes", name,
                        NAME_MAX_BYTES);
  }
  return VT_OK;
}

vt_status vt_op_intern(const char *name, vt_op_id *out_id) {
  VT_TRY(check_name(name, __func__));
  VT_CHECK_ARG(out_id != NULL, "out_id is NULL");
  pthread_mutex_lock(&mutex);
  vt_op_id id = intern(name);
  pthread_mutex_unlock(&mutex);
  if (id == 0) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for operation \"%s\"", name);
  }
  *out_id = id;
  return VT_OK;
}

const char *vt_op_get_name(vt_op_id id) {
  // acquire: partner is the release store in intern().
  return id >= 1 && id <= atomic_load_explicit(&op_count, memory_order_acquire) ? find_op(id)->name : NULL;
}

static bool is_type(vt_device_type type) {
  return type >= 0 && type < VT_DEVICE_TYPE_COUNT;
}

// Whether `a` comes before `b`: higher priority, then smaller name by bytes.
static bool before(const entry *a, const entry *b) {
  return a->provider.priority != b->provider.priority ? a->provider.priority > b->provider.priority : strcmp(a->name, b->name) < 0;
}

static bool has_name(const list *providers, const char *name) {
  for (size_t i = 0; providers != NULL && i < providers->count; i++) {
    if (strcmp(providers->entries[i]->name, name) == 0) {
      return true;
    }
  }
  return false;
}

// Publishes a new list with `added` in its place. The mutex is held.
static bool publish(_Atomic(list *) *place, const entry *added) {
  // relaxed: changed under the mutex only.
  list *old = atomic_load_explicit(place, memory_order_relaxed);
  size_t count = old == NULL ? 0 : old->count;
  list *new = malloc(sizeof(list) + (count + 1) * sizeof(entry *));
  if (new == NULL) {
    return false;
  }
  size_t at = 0;
  while (at < count && before(old->entries[at], added)) {
    at++;
  }
  new->before = old;
  new->count = count + 1;
  for (size_t i = 0; i < count; i++) {
    new->entries[i < at ? i : i + 1] = old->entries[i];
  }
  new->entries[at] = added;
  // release: partner is the acquire load in vt_op_get() and vt_op_get_below().
  atomic_store_explicit(place, new, memory_order_release);
  return true;
}

static entry *copy_provider(const vt_op_provider *provider) {
  entry *copy = calloc(1, sizeof(*copy));
  if (copy == NULL) {
    return NULL;
  }
  memcpy(&copy->provider, provider, vt__min_size(provider->struct_size, sizeof(copy->provider)));
  memcpy(copy->name, provider->name, strlen(provider->name) + 1);
  copy->provider.struct_size = sizeof(copy->provider);
  copy->provider.name = copy->name;
  return copy;
}

// The mutex is held.
static vt_status add(op *slot, vt_device_type type, entry *added) {
  // relaxed: changed under the mutex only.
  if (has_name(atomic_load_explicit(&slot->lists[type], memory_order_relaxed), added->name)) {
    return VT_ERR_ALREADY_EXISTS;
  }
  return publish(&slot->lists[type], added) ? VT_OK : VT_ERR_OUT_OF_MEMORY;
}

vt_status vt_op_provider_register(vt_op_id id, vt_device_type type, const vt_op_provider *provider) {
  // relaxed: set by the fork handler of this very thread.
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return vt__check_usable_slow(__func__);
  }
  const char *op_name = vt_op_get_name(id);
  VT_CHECK_ARG(op_name != NULL, "operation %d is unknown", id);
  VT_CHECK_ARG(is_type(type), "device type %d is unknown", type);
  VT_CHECK_ARG(provider != NULL, "provider is NULL");
  VT_CHECK_ARG(provider->struct_size >= offsetof(vt_op_provider, supports), "provider->struct_size is %zu", provider->struct_size);
  VT_TRY(check_name(provider->name, __func__));
  VT_CHECK_ARG(provider->fn != NULL, "provider \"%s\" of %s has no function", provider->name, op_name);
  entry *added = copy_provider(provider);
  pthread_mutex_lock(&mutex);
  vt_status status = added == NULL ? VT_ERR_OUT_OF_MEMORY : add(find_op(id), type, added);
  pthread_mutex_unlock(&mutex);
  if (status == VT_OK) {
    return VT_OK;
  }
  free(added);
  if (status == VT_ERR_ALREADY_EXISTS) {
    return vt__fail(status, "%s has a provider \"%s\" on %s already", op_name, provider->name, vt_device_type_get_name(type));
  }
  return vt__fail(status, "no memory for provider \"%s\" of %s", provider->name, op_name);
}

static const list *load(vt_op_id id, vt_device_type type) {
  op *slot = find_op(id);
  // acquire: partner is the release store in publish().
  return slot == NULL ? NULL : atomic_load_explicit(&slot->lists[type], memory_order_acquire);
}

// The first provider at or behind `from` that wants the call. NULL if there is none.
static const vt_op_provider *select_from(const list *providers, size_t from, const void *descriptor) {
  for (size_t i = from; providers != NULL && i < providers->count; i++) {
    const vt_op_provider *provider = &providers->entries[i]->provider;
    if (provider->supports == NULL || provider->supports(provider->user, descriptor) != 0) {
      return provider;
    }
  }
  return NULL;
}

static const char *name_for_text(vt_op_id id) {
  const char *name = vt_op_get_name(id);
  return name == NULL ? "an unknown operation" : name;
}

vt_status vt_op_get(vt_op_id id, vt_device_type type, const void *descriptor, const vt_op_provider **out_provider) {
  VT_CHECK_ARG(out_provider != NULL, "out_provider is NULL");
  VT_CHECK_ARG(is_type(type), "device type %d is unknown", type);
  const vt_op_provider *provider = select_from(load(id, type), 0, descriptor);
  if (VT_UNLIKELY(provider == NULL)) {
    // The built-in providers may not be there yet.
    vt__runtime_init();
    provider = select_from(load(id, type), 0, descriptor);
  }
  if (provider == NULL) {
    return vt__fail(VT_ERR_NOT_FOUND, "no provider of %s (id %d) on %s wants the call", name_for_text(id), id,
                    vt_device_type_get_name(type));
  }
  *out_provider = provider;
  return VT_OK;
}

vt_status vt_op_get_below(vt_op_id id, vt_device_type type, const char *name, const void *descriptor,
                          const vt_op_provider **out_provider) {
  VT_CHECK_ARG(out_provider != NULL, "out_provider is NULL");
  VT_CHECK_ARG(is_type(type), "device type %d is unknown", type);
  VT_CHECK_ARG(name != NULL, "name is NULL");
  const list *providers = load(id, type);
  size_t at = 0;
  while (providers != NULL && at < providers->count && strcmp(providers->entries[at]->name, name) != 0) {
    at++;
  }
  if (providers == NULL || at == providers->count) {
    return vt__fail(VT_ERR_NOT_FOUND, "%s (id %d) has no provider \"%s\" on %s", name_for_text(id), id, name,
                    vt_device_type_get_name(type));
  }
  const vt_op_provider *provider = select_from(providers, at + 1, descriptor);
  if (provider == NULL) {
    return vt__fail(VT_ERR_NOT_FOUND, "no provider of %s (id %d) below \"%s\" on %s wants the call", name_for_text(id), id, name,
                    vt_device_type_get_name(type));
  }
  *out_provider = provider;
  return VT_OK;
}
