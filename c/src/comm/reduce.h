// reduce.h: reducing blocks of elements, in rank order.
//
// Half types accumulate in f32 and are rounded once; NaN results are the canonical quiet NaN; min and max are IEEE 754-2019 minimum
// and maximum; integers wrap. Any byte address. The caller sets the floating-point environment, see base/fpenv.h.
#ifndef VT_COMM_REDUCE_H
#define VT_COMM_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vllm_vt/comm.h"

// A block's elements fit here, and so do its accumulators: at most 4 KiB of elements, twice that for half types.
#define VT__REDUCE_BLOCK_BYTES 4096
#define VT__REDUCE_ACC_BYTES 8192

typedef struct vt__reduce_kernel {
  // The whole reduction for two ranks. `out` overlaps neither input.
  void (*pair)(void *out, const void *a, const void *b, size_t count);
  // The same in parts for more ranks: accumulators of the first two, one more rank, rounding to the result.
  void (*first)(void *acc, const void *a, const void *b, size_t count);
  void (*next)(void *acc, const void *a, size_t count);
  void (*finish)(void *out, const void *acc, size_t count, int32_t world);
  uint32_t element_bytes;
  bool is_float;
} vt__reduce_kernel;

// The kernel of a type and an operation that were checked.
const vt__reduce_kernel *vt__reduce_kernel_find(vt_dtype dtype, vt_reduce_op op);

#endif
