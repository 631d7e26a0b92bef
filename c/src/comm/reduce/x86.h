// x86.h: what vector extensions can't say, for x86. The including file defines VT__X86(name) as the intrinsic of its width, and the
// vector types of that width.
#ifndef VT_COMM_REDUCE_X86_H
#define VT_COMM_REDUCE_X86_H

#include "comm/reduce/vectors.h"

// The instructions answer their second operand where one is NaN or both are zeros. Both orders together settle the zeros: their
// bits and-ed are +0, or-ed -0. All ones is a NaN.
#define VT__MAXIMUM(T, U, M, suffix)                                                     \
  VT__INLINE T max_##T(T a, T b) {                                                       \
    U raw = (U)VT__X86(max_##suffix)((M)a, (M)b) & (U)VT__X86(max_##suffix)((M)b, (M)a); \
    return (T)(raw | (U)(a != a) | (U)(b != b));                                         \
  }                                                                                      \
  VT__INLINE T min_##T(T a, T b) {                                                       \
    U raw = (U)VT__X86(min_##suffix)((M)a, (M)b) | (U)VT__X86(min_##suffix)((M)b, (M)a); \
    return (T)(raw | (U)(a != a) | (U)(b != b));                                         \
  }
VT__MAXIMUM(v_f32, v_u32, VT__X86_F32, ps)
VT__MAXIMUM(v_f64, v_u64, VT__X86_F64, pd)

#endif
