// copy_check.h: which ranges of memory a copy may have. All of these fail with VT_ERR_INVALID_ARGUMENT, and name what is wrong.
#ifndef VT_CORE_COPY_CHECK_H
#define VT_CORE_COPY_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "vllm_vt/memory.h"

// `bytes` is not 0.
vt_status vt__copy_check(const void *dst, const void *src, size_t bytes);

// Also answers whether there is anything to copy.
vt_status vt__copy_batch_check(const vt_copy_op *ops, size_t count, bool *out_empty);

// `width` and `rows` are not 0.
vt_status vt__copy_2d_check(const void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t rows);

#endif
