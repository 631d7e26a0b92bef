// memory.h: what the device is asked for, and memory for other parts of the core.
#ifndef VT_CORE_MEMORY_H
#define VT_CORE_MEMORY_H

#include "core/blocks.h"
#include "core/registry.h"
#include "core/site.h"
#include "vllm_vt/memory.h"
#include "vllm_vt/memory_options.h"

// Asks the device's resource table or its backend for `bytes` bytes, at least 1. Fills in block->ptr; its device, kind and
// resources are set.
vt_status vt__device_take(const vt_backend *backend, vt__block *block, size_t bytes);

// Gives such memory back.
vt_status vt__device_give(const vt_backend *backend, const vt__block *block);

// vt_alloc(), vt_pinned_alloc() and vt_alloc_with(). `options` are checked. `site` names the public function.
vt_status vt__allocate(vt_device device, size_t bytes, const vt_alloc_options *options, void **out_ptr, vt__call_site site);

// vt_free() or vt_pinned_free() without the check for captures and callbacks: for the last release of what owns the block.
vt_status vt__give_back(vt_device device, int32_t kind, void *ptr, vt__call_site site);

// Gives back what the validation layer has kept for long enough.
void vt__memory_give_back_expired(void);

#endif
