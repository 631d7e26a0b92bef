// backend_table.h: what a backend's table must hold.
#ifndef VT_CORE_BACKEND_TABLE_H
#define VT_CORE_BACKEND_TABLE_H

#include <stdint.h>

#include "vllm_vt/backend.h"

// Fails unless `ops` holds every required method, each group wholly or not at all, and what a device of these VT_CAP_* bits needs.
vt_status vt__backend_check_table(const vt_backend_ops *ops, uint32_t caps);

#endif
