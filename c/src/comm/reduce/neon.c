// neon.c: the kernels that every aarch64 runs.
#include "comm/reduce/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define VT__WIDTH 16
#define VT__IS_BASELINE
#define VT__REDUCE_TABLE vt__reduce_neon

#include "comm/reduce/vectors.h"

// The instructions are IEEE 754-2019 minimum and maximum.
VT__INLINE v_f32 max_v_f32(v_f32 a, v_f32 b) {
  return (v_f32)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
}
VT__INLINE v_f32 min_v_f32(v_f32 a, v_f32 b) {
  return (v_f32)vminq_f32((float32x4_t)a, (float32x4_t)b);
}
VT__INLINE v_f64 max_v_f64(v_f64 a, v_f64 b) {
  return (v_f64)vmaxq_f64((float64x2_t)a, (float64x2_t)b);
}
VT__INLINE v_f64 min_v_f64(v_f64 a, v_f64 b) {
  return (v_f64)vminq_f64((float64x2_t)a, (float64x2_t)b);
}

VT__INLINE v_halves widen_f16(v_u32 words) {
  float16x8_t halves = (float16x8_t)words;
  return (v_halves){(v_f32)vcvt_f32_f16(vget_low_f16(halves)), (v_f32)vcvt_high_f32_f16(halves)};
}
VT__INLINE v_u32 narrow_f16(v_halves value) {
  float16x4_t low = vcvt_f16_f32((float32x4_t)value.x);
  return (v_u32)vcvt_high_f16_f32(low, (float32x4_t)value.y);
}

#include "comm/reduce/plain.h"

#include "comm/reduce/loops.h"
#endif
