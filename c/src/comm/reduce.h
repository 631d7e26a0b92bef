// reduce.h: reducing elements of several ranks, in rank order.
//
// Half types accumulate in f32 and are rounded once; NaN results are the canonical quiet NaN; min and max are IEEE 754-2019 minimum
// and maximum; integers wrap. Every instruction set gives the same bits, whatever the caller's floating-point environment.
#ifndef VT_COMM_REDUCE_H
#define VT_COMM_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "vllm_vt/comm.h"

// Where the elements are, at any byte addresses, and where the results go: all to every output. An output may be a source at the
// same address, since a position is read in all sources before it is written in any output; they may not overlap otherwise.
typedef struct vt__reduce_operands {
  const void *const *sources;
  void *const *outs;
  size_t source_at;  // bytes from the beginning of each source
  size_t out_at;
  int32_t source_count;  // at least 1
  int32_t out_count;
} vt__reduce_operands;

// Reduces `bytes` bytes, whole elements of a type that can be reduced, in the instruction set of vt__isa_get().
void vt__reduce(vt_dtype dtype, vt_reduce_op op, const vt__reduce_operands *operands, size_t bytes);

#endif
