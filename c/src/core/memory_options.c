// memory_options.c: memory with options, and what is known of a block. See vllm_vt/memory_options.h.
#include "vllm_vt/memory_options.h"

#include <string.h>

#include "core/check.h"
#include "core/memory.h"
#include "core/pool.h"

vt_status vt_alloc_with(vt_device device, size_t bytes, const vt_alloc_options *options, void **out_ptr) {
  vt_alloc_options wanted = VT_ALLOC_OPTIONS_INIT;
  if (options != NULL) {
    VT_CHECK_ARG(options->struct_size >= offsetof(vt_alloc_options, numa_node), "struct_size %zu of the options is too small",
                 options->struct_size);
    memcpy(&wanted, options, vt__min_size(options->struct_size, sizeof(wanted)));
    wanted.struct_size = sizeof(wanted);
  }
  VT_CHECK_ARG(wanted.kind == VT_MEMORY_DEVICE || wanted.kind == VT_MEMORY_PINNED,
               "memory kind %d is neither device (0) nor pinned (1)", wanted.kind);
  VT_CHECK_ARG((wanted.flags & ~(uint32_t)(VT_ALLOC_SHAREABLE | VT_ALLOC_HUGE_PAGES)) == 0, "flags 0x%x hold an unknown bit",
               wanted.flags);
  VT_CHECK_ARG(wanted.numa_node >= -1, "numa_node %d is below -1", wanted.numa_node);
  return vt__allocate(device, bytes, &wanted, out_ptr, VT__HERE);
}

// Finds a live block of the device.
static vt_status find_block(vt_device device, const void *ptr, vt__block *out, const char *function) {
  vt__blocks_lock();
  vt__blocks_find_locked(ptr, out);
  if (out->pooled != NULL) {
    out->bytes = out->pooled->bytes;
    out->ptr = out->pooled->live ? out->ptr : NULL;
  }
  vt__blocks_unlock();
  if (ptr == NULL || out->ptr == NULL || out->device.type != device.type || out->device.index != device.index) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "%p is not the begin of a live block of %s", ptr,
                        vt__device_name(device).text);
  }
  return VT_OK;
}

vt_status vt_memory_get_info(vt_device device, const void *ptr, vt_memory_info *out_info) {
  const vt_backend *backend;
  vt__block block;
  VT_TRY(vt__check_usable(__func__));
  VT_CHECK_ARG(out_info != NULL, "out_info is NULL");
  VT_CHECK_ARG(out_info->struct_size >= 2 * sizeof(size_t), "struct_size %zu of the memory info is too small",
               out_info->struct_size);
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  VT_TRY(find_block(device, ptr, &block, __func__));
  vt_memory_info info = {.struct_size = out_info->struct_size,
                         .bytes = block.bytes,
                         .kind = block.kind,
                         .flags = block.flags,
                         .numa_node = block.numa_node};
  memcpy(out_info, &info, vt__min_size(out_info->struct_size, sizeof(info)));
  return VT_OK;
}

vt_status vt_memory_export_fd(vt_device device, const void *ptr, int32_t *out_fd, size_t *out_offset, size_t *out_bytes) {
  const vt_backend *backend;
  vt__block block;
  VT_TRY(vt__check_usable(__func__));
  VT_CHECK_ARG(out_fd != NULL && out_offset != NULL && out_bytes != NULL, "%s is NULL",
               out_fd == NULL       ? "out_fd"
               : out_offset == NULL ? "out_offset"
                                    : "out_bytes");
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  VT_TRY(find_block(device, ptr, &block, __func__));
  VT_CHECK_ARG((block.flags & VT_ALLOC_SHAREABLE) != 0, "%p was not allocated with VT_ALLOC_SHAREABLE", ptr);
  uint64_t serial = vt__error_serial();
  return vt__backend_failed(backend, "export_fd", backend->ops.export_fd(backend->self, ptr, out_fd, out_offset, out_bytes),
                            serial);
}
