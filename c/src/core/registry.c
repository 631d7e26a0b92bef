// registry.c: see registry.h.
#include "core/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "core/backend_table.h"
#include "core/check.h"
#include "core/text.h"

typedef struct slot {
  _Atomic(vt_backend *) backend;
  _Atomic(vt_device_resource_ops *) resources;
  const vt_device_resource_ops *resources_source;
} slot;

static slot slots[VT_DEVICE_TYPE_COUNT][VT_MAX_DEVICES_PER_TYPE];
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *const type_names[VT_DEVICE_TYPE_COUNT] = {"cpu", "cuda", "metal", "vulkan", "xpu"};

const char *vt_device_type_get_name(vt_device_type type) {
  return type >= 0 && type < VT_DEVICE_TYPE_COUNT ? type_names[type] : NULL;
}

vt__device_text vt__device_name(vt_device device) {
  vt__device_text out;
  const char *type = vt_device_type_get_name(device.type);
  if (type != NULL) {
    (void)snprintf(out.text, sizeof(out.text), "%s:%d", type, device.index);
  } else {
    (void)snprintf(out.text, sizeof(out.text), "?%d:%d", device.type, device.index);
  }
  return out;
}

vt_status vt__check_device(vt_device device, const char *function) {
  if (device.type < 0 || device.type >= VT_DEVICE_TYPE_COUNT) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "device type %d is unknown", device.type);
  }
  if (device.index < 0 || device.index >= VT_MAX_DEVICES_PER_TYPE) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "device index %d is outside 0..%d", device.index,
                        VT_MAX_DEVICES_PER_TYPE - 1);
  }
  return VT_OK;
}

static bool could_exist(vt_device device) {
  return device.type >= 0 && device.type < VT_DEVICE_TYPE_COUNT && device.index >= 0 && device.index < VT_MAX_DEVICES_PER_TYPE;
}

static vt_backend *load(vt_device device) {
  if (!could_exist(device)) {
    return NULL;
  }
  // acquire: partner is the release store in vt_backend_register().
  return atomic_load_explicit(&slots[device.type][device.index].backend, memory_order_acquire);
}

// Names what is registered. With many devices the list is cut.
static vt_status fail_not_found(vt_device device, const char *function) {
  char list[320];
  vt__text text = vt__text_begin(list, sizeof(list));
  for (vt_device d = {0, 0}; d.type < VT_DEVICE_TYPE_COUNT; d.type++) {
    for (d.index = 0; d.index < VT_MAX_DEVICES_PER_TYPE; d.index++) {
      const vt_backend *backend = load(d);
      if (backend != NULL) {
        vt__text_add(&text, "%s%s '%s'", text.length == 0 ? "" : ", ", vt__device_name(d).text, backend->name);
      }
    }
  }
  return vt_error_set(VT_ERR_NOT_FOUND, VT_DOMAIN_VT, 0, function, "no backend is registered for %s; there are %s",
                      vt__device_name(device).text, list);
}

vt_status vt__backend_lookup(vt_device device, const char *function, const vt_backend **out) {
  VT_TRY(vt__check_device(device, function));
  VT_TRY(vt__runtime_init(function));
  const vt_backend *backend = load(device);
  if (backend == NULL) {
    return fail_not_found(device, function);
  }
  *out = backend;
  return VT_OK;
}

vt_status vt_backend_get(vt_device device, const vt_backend **out_backend) {
  VT_CHECK_ARG(out_backend != NULL, "out_backend is NULL");
  return vt__backend_lookup(device, __func__, out_backend);
}

static const vt_backend *find(vt_device device, const char *function) {
  return vt__runtime_init(function) == VT_OK ? load(device) : NULL;
}

const vt_backend *vt_backend_find(vt_device device) {
  return find(device, __func__);
}

vt_status vt_backend_get_default(vt_device_type type, const vt_backend **out_backend) {
  VT_CHECK_ARG(out_backend != NULL, "out_backend is NULL");
  return vt__backend_lookup((vt_device){type, 0}, __func__, out_backend);
}

const vt_backend *vt_backend_find_default(vt_device_type type) {
  return find((vt_device){type, 0}, __func__);
}

const char *vt_backend_get_name(const vt_backend *backend) {
  return backend == NULL ? NULL : backend->name;
}

vt_status vt_device_get_count(vt_device_type type, int32_t *out_count) {
  VT_TRY(vt__check_device((vt_device){type, 0}, __func__));
  VT_CHECK_ARG(out_count != NULL, "out_count is NULL");
  VT_TRY(vt__runtime_init(__func__));
  int32_t count = 0;
  for (int32_t index = 0; index < VT_MAX_DEVICES_PER_TYPE; index++) {
    count += load((vt_device){type, index}) != NULL;
  }
  *out_count = count;
  return VT_OK;
}

// One slot is published once; who loses the race, or comes later, learns whether it is the same table.
static vt_status publish(vt_device device, vt_backend *backend) {
  slot *place = &slots[device.type][device.index];
  vt_status status = VT_OK;
  pthread_mutex_lock(&registry_mutex);
  // relaxed: slots are written under this mutex.
  const vt_backend *present = atomic_load_explicit(&place->backend, memory_order_relaxed);
  if (present == NULL) {
    // release: partner is the acquire load in load().
    atomic_store_explicit(&place->backend, backend, memory_order_release);
    backend = NULL;
  } else if (present->source != backend->source || present->self != backend->self || strcmp(present->name, backend->name) != 0) {
    status = vt_error_set(VT_ERR_ALREADY_EXISTS, VT_DOMAIN_VT, 0, "vt_backend_register", "%s is taken by backend '%s'",
                          vt__device_name(device).text, present->name);
  }
  pthread_mutex_unlock(&registry_mutex);
  vt__free(backend);
  return status;
}

static vt_status copy_table(const vt_backend_ops *ops, vt_backend_ops *out) {
  VT_CHECK_ARG(ops->struct_size >= offsetof(vt_backend_ops, alloc), "struct_size %zu of the backend table is too small",
               ops->struct_size);
  VT_CHECK_ARG(ops->struct_size % sizeof(void *) == 0, "struct_size %zu of the backend table ends inside a method",
               ops->struct_size);
  VT_CHECK_ARG(ops->abi_major == VT_BACKEND_ABI_MAJOR, "backend ABI %u.%u, this library speaks %d.%d", ops->abi_major,
               ops->abi_minor, VT_BACKEND_ABI_MAJOR, VT_BACKEND_ABI_MINOR);
  *out = (vt_backend_ops){0};
  memcpy(out, ops, vt__min_size(ops->struct_size, sizeof(*out)));
  return VT_OK;
}

// Asks a backend that has no place yet. A failure gets the record that the method may have forgotten to write.
static vt_status ask_info(const vt_backend_ops *ops, void *self, const char *name, vt_device_info *out_info) {
  uint64_t serial = vt__error_serial();
  vt_status status = ops->get_info(self, out_info);
  if (status < 0 && (vt__error_serial() == serial || vt_last_error()->status != status)) {
    return vt_error_set(status, VT_DOMAIN_VT, 0, "vt_backend_register", "backend '%s' failed in get_info with %s", name,
                        vt_status_get_name(status));
  }
  return status;
}

vt_status vt_backend_register(vt_device device, const char *name, const vt_backend_ops *ops, void *self) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(vt__runtime_init(__func__));  // first come, first served: the built-in backends are first
  VT_TRY(vt__check_device(device, __func__));
  VT_CHECK_ARG(name != NULL && name[0] != 0, "a backend needs a name");
  VT_CHECK_ARG(strlen(name) < sizeof(((vt_backend *)0)->name), "backend name of %zu bytes is longer than 63", strlen(name));
  VT_CHECK_ARG(ops != NULL, "ops is NULL");
  vt_backend_ops copy;
  VT_TRY(copy_table(ops, &copy));
  VT_CHECK_ARG(copy.get_info != NULL, "backend '%s' lacks the required method get_info", name);
  vt_device_info info = VT_DEVICE_INFO_INIT;
  VT_TRY(ask_info(&copy, self, name, &info));
  VT_TRY(vt__backend_check_table(&copy, info.caps));

  vt_backend *backend = vt__calloc(1, sizeof(*backend));
  if (backend == NULL) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for backend '%s'", name);
  }
  *backend = (vt_backend){.ops = copy, .self = self, .device = device, .source = ops};
  memcpy(backend->name, name, strlen(name) + 1);
  return publish(device, backend);
}

void vt__backend_failed_slow(const vt_backend *backend, const char *method, vt_status status, uint64_t serial) {
  if (vt__error_serial() == serial || vt_last_error()->status != status) {
    (void)vt_error_set(status, VT_DOMAIN_VT, 0, method, "backend '%s' of %s failed in %s with %s", backend->name,
                       vt__device_name(backend->device).text, method, vt_status_get_name(status));
  }
}

vt_status vt_device_resource_register(vt_device device, const vt_device_resource_ops *ops) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(vt__runtime_init(__func__));
  VT_TRY(vt__check_device(device, __func__));
  VT_CHECK_ARG(ops != NULL, "ops is NULL");
  VT_CHECK_ARG(ops->struct_size >= sizeof(*ops), "struct_size %zu of the resource table is too small", ops->struct_size);
  VT_CHECK_ARG(ops->alloc != NULL && ops->free != NULL && ops->create_queue != NULL && ops->destroy_queue != NULL,
               "a resource table needs all four of alloc, free, create_queue and destroy_queue");
  vt_device_resource_ops *copy = vt__malloc(sizeof(*copy));
  if (copy == NULL) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for the resource table of %s", vt__device_name(device).text);
  }
  *copy = *ops;
  slot *place = &slots[device.type][device.index];
  vt_status status = VT_OK;
  pthread_mutex_lock(&registry_mutex);
  if (place->resources_source == NULL) {
    place->resources_source = ops;
    // release: partner is the acquire load in vt__resource_find().
    atomic_store_explicit(&place->resources, copy, memory_order_release);
    copy = NULL;
  } else if (place->resources_source != ops) {
    status = vt__fail(VT_ERR_ALREADY_EXISTS, "%s has another resource table", vt__device_name(device).text);
  }
  pthread_mutex_unlock(&registry_mutex);
  vt__free(copy);
  return status;
}

const vt_device_resource_ops *vt__resource_find(vt_device device) {
  // acquire: partner is the release store in vt_device_resource_register().
  return atomic_load_explicit(&slots[device.type][device.index].resources, memory_order_acquire);
}
