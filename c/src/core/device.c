// device.c: facts of a device, and flushing it.
#include "vllm_vt/device.h"

#include <string.h>

#include "core/check.h"
#include "core/registry.h"

vt_status vt_device_get_info(vt_device device, vt_device_info *out_info) {
  VT_CHECK_ARG(out_info != NULL, "out_info is NULL");
  VT_CHECK_ARG(out_info->struct_size >= offsetof(vt_device_info, unified_memory) + sizeof(int32_t),
               "struct_size %zu of the device info is too small", out_info->struct_size);
  const vt_backend *backend;
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  vt_device_info info = VT_DEVICE_INFO_INIT;
  uint64_t serial = vt__error_serial();
  VT_TRY(vt__backend_failed(backend, "get_info", backend->ops.get_info(backend->self, &info), serial));
  info.caps |= VT_CAP_STREAM_ALLOC;  // the runtime's pool serves every device
  size_t bytes = vt__min_size(out_info->struct_size, sizeof(info));
  info.struct_size = out_info->struct_size;
  memcpy(out_info, &info, bytes);
  return VT_OK;
}

vt_status vt_device_flush(vt_device device) {
  VT_TRY(vt__check_not_capturing(VT__HERE));
  const vt_backend *backend;
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  if (backend->ops.flush == NULL) {
    return VT_OK;
  }
  uint64_t serial = vt__error_serial();
  return vt__backend_failed(backend, "flush", backend->ops.flush(backend->self), serial);
}
