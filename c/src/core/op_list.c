// op_list.c: the snapshots, and registering.
//
// Every change is made under the mutex: first the snapshots that hold from then on are prepared for all lists concerned, then they
// are published one by one with a release store. What can fail comes before the first store.
#include <string.h>

#include "base/alloc.h"
#include "core/check.h"
#include "core/op.h"
#include "core/registry.h"

bool vt__op_before(const vt__op_entry *a, const vt__op_entry *b) {
  return a->provider.priority != b->provider.priority ? a->provider.priority > b->provider.priority : strcmp(a->name, b->name) < 0;
}

vt__op_entry *vt__op_entry_of(const vt__op_list *list, const char *name) {
  for (size_t i = 0; list != NULL && i < list->total; i++) {
    if (strcmp(list->entries[i]->name, name) == 0) {
      return list->entries[i];
    }
  }
  return NULL;
}

bool vt__op_entry_is_enabled(const vt__op_list *list, const vt__op_entry *entry) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->entries[i] == entry) {
      return true;
    }
  }
  return false;
}

// Puts an entry in its place among the first `count`.
static void insert(vt__op_entry **entries, size_t count, vt__op_entry *added) {
  size_t at = count;
  while (at > 0 && vt__op_before(added, entries[at - 1])) {
    entries[at] = entries[at - 1];
    at--;
  }
  entries[at] = added;
}

static bool is_same(const vt__op_list *a, const vt__op_list *b) {
  return a->count == b->count && a->total == b->total && a->caps == b->caps &&
         memcmp(a->entries, b->entries, a->total * sizeof(a->entries[0])) == 0;
}

// Fills the enabled half of a list, or the other one behind it.
static void fill(vt__op_list *list, const vt__op_list *old, vt__op_entry *added, bool disabled) {
  size_t begin = list->total;
  for (size_t i = 0; old != NULL && i < old->total; i++) {
    if (vt__op_name_is_disabled(old->entries[i]->name) == disabled) {
      insert(list->entries + begin, list->total++ - begin, old->entries[i]);
    }
  }
  if (added != NULL && vt__op_name_is_disabled(added->name) == disabled) {
    insert(list->entries + begin, list->total++ - begin, added);
  }
}

// Prepares the snapshot that holds now, with `added` where that isn't NULL. False if there is no memory. The mutex is held.
static bool prepare(vt__op *op, vt_device_type type, vt__op_entry *added) {
  // relaxed: changed under the mutex only.
  const vt__op_list *old = atomic_load_explicit(&op->lists[type], memory_order_relaxed);
  size_t room = (old == NULL ? 0 : old->total) + (added != NULL);
  vt__op_list *list = vt__malloc(sizeof(*list) + room * sizeof(list->entries[0]));
  if (list == NULL) {
    return false;
  }
  *list = (vt__op_list){.fresh = true, .caps = vt__op_caps_of(type)};
  fill(list, old, added, false);
  list->count = list->total;
  fill(list, old, added, true);
  op->next[type] = list;
  for (vt__op_list *made = op->made[type]; made != NULL; made = made->before) {
    if (is_same(made, list)) {
      vt__free(list);
      op->next[type] = made;
      break;
    }
  }
  return true;
}

static void publish(vt__op *op, vt_device_type type) {
  vt__op_list *list = op->next[type];
  op->next[type] = NULL;
  if (list == NULL) {
    return;
  }
  if (list->fresh) {
    list->fresh = false;
    list->before = op->made[type];
    op->made[type] = list;
    const vt__op_entry *first = list->count == 0 ? NULL : list->entries[0];
    list->plain = first == NULL || first->provider.supports != NULL ? NULL : first;
    list->plain_number = first == NULL ? 0 : first->number;
  }
  // release: partners are the acquire loads of the look-ups.
  atomic_store_explicit(&op->lists[type], list, memory_order_release);
}

static void forget(vt__op *op, vt_device_type type) {
  if (op->next[type] != NULL && op->next[type]->fresh) {
    vt__free(op->next[type]);
  }
  op->next[type] = NULL;
}

static void for_all(void (*fn)(vt__op *op, vt_device_type type)) {
  for (vt_op_id id = 1; id <= vt__op_get_count(); id++) {
    for (vt_device_type type = 0; type < VT_DEVICE_TYPE_COUNT; type++) {
      fn(vt__op_find(id), type);
    }
  }
}

bool vt__op_rebuild(void) {
  bool enough = true;
  for (vt_op_id id = 1; id <= vt__op_get_count(); id++) {
    for (vt_device_type type = 0; enough && type < VT_DEVICE_TYPE_COUNT; type++) {
      vt__op *op = vt__op_find(id);
      // relaxed: changed under the mutex only.
      enough = atomic_load_explicit(&op->lists[type], memory_order_relaxed) == NULL || prepare(op, type, NULL);
    }
  }
  for_all(enough ? publish : forget);
  return enough;
}

static vt__op_entry *copy_provider(const vt_op_provider *provider) {
  vt__op_entry *copy = vt__calloc(1, sizeof(*copy));
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
static vt_status add(vt__op *op, vt_device_type type, vt__op_entry *added) {
  // relaxed: changed under the mutex only.
  if (vt__op_entry_of(atomic_load_explicit(&op->lists[type], memory_order_relaxed), added->name) != NULL) {
    return VT_ERR_ALREADY_EXISTS;
  }
  if (!prepare(op, type, added)) {
    return VT_ERR_OUT_OF_MEMORY;
  }
  if (!vt__op_counters_allot(1, &added->number)) {
    forget(op, type);
    return VT_ERR_OUT_OF_MEMORY;
  }
  publish(op, type);
  vt__op_changed();
  return VT_OK;
}

static vt_status check_provider(vt_op_id id, vt_device_type type, const vt_op_provider *provider, const char *function) {
#define CHECK(condition, ...)                                                               \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, __VA_ARGS__); \
    }                                                                                       \
  } while (0)
  const char *op_name = vt_op_get_name(id);
  CHECK(op_name != NULL, "operation %d is unknown", id);
  CHECK(vt__op_is_type(type), "device type %d is unknown", type);
  CHECK(provider != NULL, "provider is NULL");
  CHECK(provider->struct_size >= offsetof(vt_op_provider, supports), "provider->struct_size is %zu", provider->struct_size);
  CHECK(provider->struct_size % sizeof(void *) == 0, "provider->struct_size %zu ends inside a member", provider->struct_size);
  VT_TRY(vt__op_check_name(provider->name, function));
  CHECK(strcmp(provider->name, VT_OP_REFERENCE_NAME) != 0, "the name \"%s\" is kept for the reference tier", provider->name);
  CHECK(provider->fn != NULL, "provider \"%s\" of %s has no function", provider->name, op_name);
#undef CHECK
  return VT_OK;
}

vt_status vt_op_provider_register(vt_op_id id, vt_device_type type, const vt_op_provider *provider) {
  VT_TRY(vt__check_not_forked(__func__));
  VT_TRY(vt__runtime_init(__func__));  // what the environment disables is known from then on
  VT_TRY(check_provider(id, type, provider, __func__));
  vt__op_entry *added = copy_provider(provider);
  pthread_mutex_lock(&vt__op_mutex);
  vt_status status = added == NULL ? VT_ERR_OUT_OF_MEMORY : add(vt__op_find(id), type, added);
  pthread_mutex_unlock(&vt__op_mutex);
  if (status == VT_OK) {
    return VT_OK;
  }
  vt__free(added);
  if (status == VT_ERR_ALREADY_EXISTS) {
    return vt__fail(status, "%s has a provider \"%s\" on %s already", vt_op_get_name(id), provider->name,
                    vt_device_type_get_name(type));
  }
  return vt__fail(status, "no memory for provider \"%s\" of %s", provider->name, vt_op_get_name(id));
}
