// backend_table.h: what a backend's table must hold.
#ifndef VT_CORE_BACKEND_TABLE_H
#define VT_CORE_BACKEND_TABLE_H

#include <stdbool.h>

#include "vllm_vt/backend.h"

// Fails unless `ops` holds every required method, and each group wholly or not at all.
vt_status vt__backend_check_table(const vt_backend_ops *ops, bool has_async_queues);

#endif
