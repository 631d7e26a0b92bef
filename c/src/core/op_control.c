// op_control.c: what is disabled, published and strict.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "core/check.h"
#include "core/log.h"
#include "core/op.h"
#include "core/registry.h"

typedef struct disabled_name {
  struct disabled_name *next;
  bool active;  // false: was enabled again
  bool by_env;
  char name[VT__OP_NAME_MAX + 1];
} disabled_name;

// The mutex guards these.
static disabled_name *disabled_names;
static vt__op_caps *caps_now[VT_DEVICE_TYPE_COUNT];
static vt__op_caps *caps_made[VT_DEVICE_TYPE_COUNT];

static _Atomic uint32_t tier_disabled;
static _Atomic uint32_t strict_mode;
static _Atomic uint64_t generation;

uint64_t vt_op_get_generation(void) {
  // acquire: partner is the release in vt__op_changed().
  return atomic_load_explicit(&generation, memory_order_acquire);
}

void vt__op_changed(void) {
  // release: partner is the acquire load in vt_op_get_generation().
  atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

void vt_op_set_strict(int32_t strict) {
  // release: partner is the acquire load in vt__op_is_strict().
  atomic_store_explicit(&strict_mode, strict != 0, memory_order_release);
  vt__op_changed();
}

bool vt__op_is_strict(void) {
  // acquire: partner is the release store in vt_op_set_strict().
  return atomic_load_explicit(&strict_mode, memory_order_acquire) != 0;
}

bool vt__op_tier_is_disabled(void) {
  // acquire: partner is the release store in set_active().
  return atomic_load_explicit(&tier_disabled, memory_order_acquire) != 0;
}

static disabled_name *find_name(const char *name) {
  disabled_name *at = disabled_names;
  while (at != NULL && strcmp(at->name, name) != 0) {
    at = at->next;
  }
  return at;
}

bool vt__op_name_is_disabled(const char *name) {
  const disabled_name *found = find_name(name);
  return found != NULL && found->active;
}

const vt__op_caps *vt__op_caps_of(vt_device_type type) {
  return caps_now[type];
}

// Whether anybody has this name. The mutex is held.
static bool is_known(const char *name) {
  if (strcmp(name, VT_OP_REFERENCE_NAME) == 0) {
    return true;
  }
  for (vt_op_id id = 1; id <= vt__op_get_count(); id++) {
    for (vt_device_type type = 0; type < VT_DEVICE_TYPE_COUNT; type++) {
      // relaxed: changed under the mutex only.
      if (vt__op_entry_of(atomic_load_explicit(&vt__op_find(id)->lists[type], memory_order_relaxed), name) != NULL) {
        return true;
      }
    }
  }
  return false;
}

// The record of a name; a new one is inactive. NULL if there is no memory. The mutex is held.
static disabled_name *find_or_add_name(const char *name, size_t length) {
  char whole[VT__OP_NAME_MAX + 1] = {0};
  memcpy(whole, name, length);
  disabled_name *found = find_name(whole);
  if (found == NULL && (found = vt__calloc(1, sizeof(*found))) != NULL) {
    memcpy(found->name, whole, sizeof(whole));
    found->next = disabled_names;
    disabled_names = found;
  }
  return found;
}

// Changes whether a name is disabled, on every list or on none. The mutex is held.
static bool set_active(disabled_name *record, bool active) {
  bool was = record->active;
  record->active = active;
  if (!vt__op_rebuild()) {
    record->active = was;
    return false;
  }
  if (strcmp(record->name, VT_OP_REFERENCE_NAME) == 0) {
    // release: partner is the acquire load in vt__op_tier_is_disabled().
    atomic_store_explicit(&tier_disabled, active, memory_order_release);
  }
  vt__op_changed();
  return true;
}

vt_status vt_op_provider_disable(const char *name) {
  VT_TRY(vt__check_not_forked(__func__));
  VT_TRY(vt__runtime_init(__func__));
  VT_TRY(vt__op_check_name(name, __func__));
  pthread_mutex_lock(&vt__op_mutex);
  bool is_new = find_name(name) == NULL;
  disabled_name *record = find_or_add_name(name, strlen(name));
  bool done = record != NULL && (record->active || set_active(record, true));
  if (record != NULL && is_new && !done) {
    disabled_names = record->next;  // it was put in front just now
    vt__free(record);
  }
  bool known = is_known(name);
  pthread_mutex_unlock(&vt__op_mutex);
  if (!done) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory to disable provider \"%s\"", name);
  }
  if (is_new && !known) {
    vt__log(VT_LOG_WARN, "provider \"%s\" was disabled, and nobody has that name so far", name);
  }
  return VT_OK;
}

vt_status vt_op_provider_enable(const char *name) {
  VT_TRY(vt__check_not_forked(__func__));
  VT_TRY(vt__runtime_init(__func__));
  VT_TRY(vt__op_check_name(name, __func__));
  pthread_mutex_lock(&vt__op_mutex);
  disabled_name *record = find_name(name);
  bool there = record != NULL && record->active;
  bool done = there && set_active(record, false);
  pthread_mutex_unlock(&vt__op_mutex);
  if (!there) {
    return vt__fail(VT_ERR_NOT_FOUND, "provider \"%s\" isn't disabled", name);
  }
  return done ? VT_OK : vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory to enable provider \"%s\"", name);
}

// Disables one name of the environment. Called before any provider is registered. False if there is no memory.
static bool disable_from_env(const char *name, size_t length) {
  if (length == 0) {
    return true;
  }
  if (length > VT__OP_NAME_MAX) {
    vt__log(VT_LOG_WARN, "VT_OP_PROVIDER_DISABLE: \"%.63s...\" is longer than the name of any provider", name);
    return true;
  }
  pthread_mutex_lock(&vt__op_mutex);
  disabled_name *record = find_or_add_name(name, length);
  bool done = record != NULL && (record->active || set_active(record, true));
  if (record != NULL) {
    record->by_env = true;
  }
  pthread_mutex_unlock(&vt__op_mutex);
  return done;
}

bool vt__op_env_read(void) {
  const char *at = getenv("VT_OP_PROVIDER_DISABLE");
  bool enough = true;
  while (at != NULL && enough) {
    at += strspn(at, " \t");
    const char *comma = strchr(at, ',');
    size_t length = comma == NULL ? strlen(at) : (size_t)(comma - at);
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t')) {
      length--;
    }
    enough = disable_from_env(at, length);
    at = comma == NULL ? NULL : comma + 1;
  }
  return enough;
}

bool vt__op_env_note(void) {
  // Records are only added in front, and nobody else adds any before the library is initialised.
  pthread_mutex_lock(&vt__op_mutex);
  const disabled_name *at = disabled_names;
  pthread_mutex_unlock(&vt__op_mutex);
  for (; at != NULL; at = at->next) {
    pthread_mutex_lock(&vt__op_mutex);
    bool note = at->by_env && !is_known(at->name);
    pthread_mutex_unlock(&vt__op_mutex);
    if (note) {
      vt__log(VT_LOG_WARN, "VT_OP_PROVIDER_DISABLE names \"%s\", and nobody has that name so far", at->name);
    }
  }
  return true;
}

// The copy of these bytes among those published for the type, or a new one. NULL if there is no memory. The mutex is held.
static vt__op_caps *find_or_add_caps(vt_device_type type, const void *data, size_t bytes) {
  for (vt__op_caps *made = caps_made[type]; made != NULL; made = made->before) {
    if (made->bytes == bytes && memcmp(made->data, data, bytes) == 0) {
      return made;
    }
  }
  vt__op_caps *caps = bytes <= PTRDIFF_MAX - sizeof(*caps) ? vt__malloc(sizeof(*caps) + bytes) : NULL;
  if (caps != NULL) {
    *caps = (vt__op_caps){.before = caps_made[type], .bytes = bytes};
    memcpy(caps->data, data, bytes);
    caps_made[type] = caps;
  }
  return caps;
}

vt_status vt_op_caps_publish(vt_device_type type, const void *caps, size_t bytes) {
  VT_TRY(vt__check_not_forked(__func__));
  VT_TRY(vt__runtime_init(__func__));
  VT_CHECK_ARG(vt__op_is_type(type), "device type %d is unknown", type);
  VT_CHECK_ARG(caps != NULL, "caps is NULL");
  VT_CHECK_ARG(bytes != 0, "bytes is 0");
  pthread_mutex_lock(&vt__op_mutex);
  vt__op_caps *was = caps_now[type];
  vt__op_caps *now = find_or_add_caps(type, caps, bytes);
  caps_now[type] = now == NULL ? was : now;
  bool done = now != NULL && vt__op_rebuild();
  caps_now[type] = done ? now : was;
  if (done) {
    vt__op_changed();
  }
  pthread_mutex_unlock(&vt__op_mutex);
  return done ? VT_OK : vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for the caps of %s", vt_device_type_get_name(type));
}
