// registry.h: one slot per device, and the built-in backends that fill them on first use.
#ifndef VT_CORE_REGISTRY_H
#define VT_CORE_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/error.h"
#include "vllm_vt/backend.h"

struct vt_backend {
  vt_backend_ops ops;  // ours, with NULL where an optional method is missing
  void *self;
  vt_device device;
  const vt_backend_ops *source;  // the table it was registered from, to know it again
  char name[64];
};

// Initialises the library on first use: environment, fork handler, built-in backends and providers. Where there is no memory for
// that, it fails, and the next call tries again.
vt_status vt__runtime_init(const char *function);

// Fails unless `device` is a type and an index that could exist.
vt_status vt__check_device(vt_device device, const char *function);

// Checks `device` and finds its backend.
vt_status vt__backend_lookup(vt_device device, const char *function, const vt_backend **out);

// The device's resource table, or NULL.
const vt_device_resource_ops *vt__resource_find(vt_device device);

// "cpu:0" for messages. The text lives in `buffer`.
typedef struct vt__device_text {
  char text[24];
} vt__device_text;
vt__device_text vt__device_name(vt_device device);

// Gives a failure that a backend's method answered the record it may have forgotten to write. `serial` was read before the call.
void vt__backend_failed_slow(const vt_backend *backend, const char *method, vt_status status, uint64_t serial);
static inline vt_status vt__backend_failed(const vt_backend *backend, const char *method, vt_status status, uint64_t serial) {
  if (VT_UNLIKELY(status < 0)) {
    vt__backend_failed_slow(backend, method, status, serial);
  }
  return status;
}

// Built-in backends and providers: each registers what is present on this machine. Called by vt__runtime_init(). False
// if there was no memory: it will be called again.
bool vt__cpu_register(void);
bool vt__comm_providers_register(void);

#endif
