// memory.c: allocation and fills: checks, then one method of the backend.
#include "vllm_vt/memory.h"

#include <string.h>

#include "core/blocks.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/queue.h"
#include "core/validate.h"

static const char *kind_name(int32_t kind) {
  return kind == VT_MEMORY_PINNED ? "pinned memory" : "device memory";
}

// With a method of the backend for the options. A resource table has none.
static vt_status ask_with_options(const vt_backend *backend, vt__block *block, size_t bytes) {
  uint64_t serial = vt__error_serial();
  vt_alloc_options options = VT_ALLOC_OPTIONS_INIT;
  options.kind = block->kind;
  options.flags = block->flags;
  options.numa_node = block->numa_node;
  vt_status status = backend->ops.alloc_with(backend->self, bytes, &options, &block->ptr);
  block->flags &= options.flags | VT_ALLOC_SHAREABLE;  // no hint: it is so where the method succeeds
  block->numa_node = options.numa_node;
  return vt__backend_failed(backend, "alloc_with", status, serial);
}

static vt_status ask_without(const vt_backend *backend, vt__block *block, size_t bytes) {
  uint64_t serial = vt__error_serial();
  block->flags = 0;
  block->numa_node = -1;
  if (block->kind == VT_MEMORY_PINNED) {
    return vt__backend_failed(backend, "pinned_alloc", backend->ops.pinned_alloc(backend->self, bytes, &block->ptr), serial);
  }
  if (block->resources != NULL) {
    return vt__backend_failed(backend, "alloc", block->resources->alloc(block->device, bytes, &block->ptr), serial);
  }
  return vt__backend_failed(backend, "alloc", backend->ops.alloc(backend->self, bytes, &block->ptr), serial);
}

static vt_status ask_device(const vt_backend *backend, vt__block *block, size_t bytes) {
  bool has_options = backend->ops.alloc_with != NULL && block->resources == NULL;
  if (has_options && (block->flags != 0 || block->numa_node != -1)) {
    return ask_with_options(backend, block, bytes);
  }
  if ((block->flags & VT_ALLOC_SHAREABLE) != 0) {
    return vt_error_set(VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, "vt_alloc_with", "%s of %s can't be shared with other processes",
                        kind_name(block->kind), vt__device_name(block->device).text);
  }
  return ask_without(backend, block, bytes);
}

vt_status vt__device_take(const vt_backend *backend, vt__block *block, size_t bytes) {
  block->ptr = NULL;
  vt_status status = ask_device(backend, block, bytes);
  if (status == VT_OK && block->ptr == NULL) {
    return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "vt_alloc", "backend '%s' answered OK and gave no memory", backend->name);
  }
  return status;
}

vt_status vt__device_give(const vt_backend *backend, const vt__block *block) {
  uint64_t serial = vt__error_serial();
  if (block->kind == VT_MEMORY_PINNED) {
    return vt__backend_failed(backend, "pinned_free", backend->ops.pinned_free(backend->self, block->ptr), serial);
  }
  if (block->resources != NULL) {
    return vt__backend_failed(backend, "free", block->resources->free(block->device, block->ptr), serial);
  }
  return vt__backend_failed(backend, "free", backend->ops.free(backend->self, block->ptr), serial);
}

// What the pool keeps is given back to the device before a request fails.
static vt_status take_or_trim(const vt_backend *backend, vt__block *block, size_t bytes) {
  vt__block wished = *block;
  vt__error_mark before = vt__error_begin();
  vt_status status = vt__device_take(backend, block, bytes);
  if (status == VT_ERR_OUT_OF_MEMORY && block->kind == VT_MEMORY_DEVICE && vt__pool_reclaim(block->device) != 0) {
    *block = wished;
    status = vt__device_take(backend, block, bytes);
    vt__error_forget(&before, status);
  }
  return status;
}

vt_status vt__allocate(vt_device device, size_t bytes, const vt_alloc_options *options, void **out_ptr, vt__call_site site) {
  const char *function = site.function;
  const vt_backend *backend;
  int32_t kind = options->kind;
  VT_TRY(vt__check_not_capturing(site));
  VT_TRY(vt__backend_lookup(device, function, &backend));
  if (out_ptr == NULL) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "out_ptr is NULL");
  }
  if (kind == VT_MEMORY_PINNED && backend->ops.pinned_alloc == NULL) {
    return vt_error_set(VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, function, "backend '%s' has no pinned memory", backend->name);
  }
  if (!vt__blocks_reserve()) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, function, "no memory to note one more block");
  }
  vt__block block = {.bytes = bytes, .device = device, .kind = kind, .flags = options->flags, .numa_node = options->numa_node};
  block.resources = kind == VT_MEMORY_DEVICE ? vt__resource_find(device) : NULL;
  vt_status status = take_or_trim(backend, &block, bytes == 0 ? 1 : bytes);
  if (status != VT_OK) {
    vt__blocks_unreserve();
    return vt__error_rename(status, "vt_alloc", function);
  }
  vt__blocks_add(&block);
  if (vt__validate_is_on()) {
    vt__validate_allocated(&block, site);
  }
  *out_ptr = block.ptr;
  return VT_OK;
}

// Says why `ptr` can't be given back: `found` is what the table holds at that address.
static vt_status refuse_free(void *ptr, vt_device device, int32_t kind, const vt__block *found, const char *function) {
  if (found->ptr == NULL) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function,
                        "%p is no live block of %s (freed before, or not allocated here)", ptr, kind_name(kind));
  }
  return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "%p is %s of %s, not %s of %s", ptr,
                      kind_name(found->kind), vt__device_name(found->device).text, kind_name(kind), vt__device_name(device).text);
}

void vt__memory_give_back_expired(void) {
  vt__block block;
  while (vt__validate_take_expired(&block)) {
    const vt_backend *backend = vt_backend_find(block.device);
    if (vt__device_give(backend, &block) != VT_OK) {
      vt__log(VT_LOG_ERROR, "a block of %zu bytes, freed before, can't be given back: %s", block.bytes, vt_last_error()->message);
    }
  }
}

// Gives a block to the device, or where validation is on perhaps to that.
static vt_status part_with(const vt_backend *backend, const vt__block *block) {
  if (vt__validate_is_on() && vt__validate_keeps(block, block->resources == NULL && backend->device.type == VT_DEVICE_CPU)) {
    vt__memory_give_back_expired();
    return VT_OK;
  }
  return vt__device_give(backend, block);
}

vt_status vt__give_back(vt_device device, int32_t kind, void *ptr, vt__call_site site) {
  const vt_backend *backend;
  VT_TRY(vt__backend_lookup(device, site.function, &backend));
  if (ptr == NULL) {
    return VT_OK;
  }
  vt__block block;
  if (!vt__blocks_take(ptr, device, kind, &block)) {
    return block.pooled != NULL && kind == VT_MEMORY_DEVICE ? vt__pool_give_back(device, ptr, site)
                                                            : refuse_free(ptr, device, kind, &block, site.function);
  }
  if (vt__validate_is_on()) {
    vt__validate_freeing(&block, site);
  }
  vt_status status = part_with(backend, &block);
  if (status != VT_OK) {
    vt__blocks_add(&block);
    return status;
  }
  vt__blocks_unreserve();
  return VT_OK;
}

vt_status vt_alloc(vt_device device, size_t bytes, void **out_ptr) {
  const vt_alloc_options plain = VT_ALLOC_OPTIONS_INIT;
  return vt__allocate(device, bytes, &plain, out_ptr, VT__HERE);
}

vt_status vt_free(vt_device device, void *ptr) {
  VT_TRY(vt__check_not_capturing(VT__HERE));
  return vt__give_back(device, VT_MEMORY_DEVICE, ptr, VT__HERE);
}

vt_status vt_pinned_alloc(vt_device device, size_t bytes, void **out_ptr) {
  vt_alloc_options pinned = VT_ALLOC_OPTIONS_INIT;
  pinned.kind = VT_MEMORY_PINNED;
  return vt__allocate(device, bytes, &pinned, out_ptr, VT__HERE);
}

vt_status vt_pinned_free(vt_device device, void *ptr) {
  VT_TRY(vt__check_not_capturing(VT__HERE));
  return vt__give_back(device, VT_MEMORY_PINNED, ptr, VT__HERE);
}

vt_status vt_memory_get_stats(vt_device device, int32_t kind, vt_memory_stats *out_stats) {
  const vt_backend *backend;
  VT_TRY(vt__check_not_forked(__func__));
  VT_TRY(vt__backend_lookup(device, __func__, &backend));
  VT_CHECK_ARG(kind == VT_MEMORY_DEVICE || kind == VT_MEMORY_PINNED, "memory kind %d is neither device (0) nor pinned (1)", kind);
  VT_CHECK_ARG(out_stats != NULL, "out_stats is NULL");
  VT_CHECK_ARG(out_stats->struct_size >= sizeof(size_t) + sizeof(uint64_t), "struct_size %zu of the memory stats is too small",
               out_stats->struct_size);
  vt_memory_stats stats;
  vt__blocks_get_stats(device, kind, &stats);
  stats.struct_size = out_stats->struct_size;
  memcpy(out_stats, &stats, vt__min_size(out_stats->struct_size, sizeof(stats)));
  return VT_OK;
}

static vt_status check_memset(const void *ptr, int32_t value, size_t bytes) {
  if (value < 0 || value > 255) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_memset", "value %d is not a byte (0..255)", value);
  }
  if (ptr == NULL && bytes != 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_memset", "ptr is NULL");
  }
  return VT_OK;
}

vt_status vt_memset(vt_queue *queue, void *ptr, int32_t value, size_t bytes) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  vt_status status = check_memset(ptr, value, bytes);
  if (status == VT_OK) {
    if (bytes == 0) {
      return vt__queue_submit_nothing(queue);
    }
    vt__use use = {ptr, bytes, VT_TOUCH_WRITE};
    bool validates = vt__validate_is_on();
    if (validates) {
      vt__validate_check(queue, &use, 1, VT__HERE);
    }
    const vt_backend *backend = queue->backend;
    uint64_t serial = vt__error_serial();
    status = vt__backend_failed(backend, "memset", backend->ops.memset(backend->self, queue->native, ptr, (uint8_t)value, bytes),
                                serial);
    status = vt__queue_submitted(queue, status, VT__CALLER);
    if (validates && status == VT_OK) {
      vt__validate_note(queue, &use, 1, VT__HERE);
    }
    return status;
  }
  return vt__queue_refused(queue, status, VT__CALLER);
}
