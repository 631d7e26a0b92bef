// memory.h: giving memory back from places where a capture is no obstacle.
#ifndef VT_CORE_MEMORY_H
#define VT_CORE_MEMORY_H

#include "vllm_vt/memory.h"

// vt_free() or vt_pinned_free() without the check for captures and callbacks: for the last release of what owns the block.
vt_status vt__give_back(vt_device device, int32_t kind, void *ptr, const char *function);

#endif
