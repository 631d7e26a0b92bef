// f16.h: f16 by integer arithmetic, where there are no instructions for it. A word holds two halves: the low ones go to `x`.
#ifndef VT_COMM_REDUCE_F16_H
#define VT_COMM_REDUCE_F16_H

#include "comm/reduce/plain.h"

// Lanes below 0x10000.
VT__INLINE v_f32 f16_to_f32(v_u32 half) {
  v_u32 magnitude = (half & 0x7fffu) << 13;
  v_u32 scaled = (v_u32)((v_f32)magnitude * 0x1p112f);                        // exact, subnormals too
  v_u32 special = (v_u32)((v_i32)magnitude >= (0x7c00 << 13)) & 0x7f800000u;  // infinity and NaN
  return (v_f32)(scaled | special | (half & 0x8000u) << 16);
}

// A NaN is the canonical one.
VT__INLINE v_u32 f32_to_f16(v_f32 value) {
  v_u32 bits = (v_u32)value;
  v_u32 magnitude = bits & 0x7fffffffu;
  // Normal halves: re-bias the exponent and round; a carry out of the mantissa does the right thing up to infinity.
  v_u32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal halves: adding 0.5 aligns the mantissa, and the addition rounds.
  v_u32 is_small = (v_u32)((v_i32)magnitude < 0x38800000);
  v_u32 small = (v_u32)((v_f32)(magnitude & is_small) + 0.5f) - 0x3f000000u;
  v_u32 half = choose(is_small, small, normal);
  v_u32 is_large = (v_u32)((v_i32)magnitude >= 0x47800000);
  half = choose(is_large, every_u32(0x7c00u), half);
  half |= (v_u32)((v_i32)magnitude > 0x7f800000) & 0x0200u;
  return half | ((bits >> 16) & 0x8000u);
}

VT__INLINE v_halves widen_f16(v_u32 words) {
  return (v_halves){f16_to_f32(words & 0xffffu), f16_to_f32(words >> 16)};
}

VT__INLINE v_u32 narrow_f16(v_halves value) {
  return f32_to_f16(value.x) | f32_to_f16(value.y) << 16;
}

#endif
