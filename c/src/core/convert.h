// convert.h: half types by integer arithmetic on bit patterns, written without branches where loops are to be vectorised.
#ifndef VT_CORE_CONVERT_H
#define VT_CORE_CONVERT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t vt__f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float vt__f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline uint32_t vt__bf16_to_bits(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  uint32_t is_nan = (bits & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0;
  return bits | is_nan;  // a signalling NaN becomes quiet
}

static inline uint16_t vt__bf16_from_bits(uint32_t bits) {
  // Half of the last kept place, minus one where that place is even: ties go to even. The carry may reach infinity, as it should.
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  uint32_t quiet = bits >> 16 | 0x0040u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline uint32_t vt__f16_to_bits(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t exponent = half >> 10 & 0x1fu;
  uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) {
    return sign | 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x00400000u : 0);
  }
  if (exponent != 0) {
    return sign | (exponent + 112) << 23 | fraction << 13;
  }
  if (fraction == 0) {
    return sign;
  }
  uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21;  // brings the leading one to bit 10
  return sign | (113 - shift) << 23 | (fraction << shift & 0x3ffu) << 13;
}

static inline uint16_t vt__f16_from_bits(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  }
  if (magnitude >= 0x47800000u) {  // 65536 and above, infinity included
    return (uint16_t)(sign | 0x7c00u);
  }
  if (magnitude >= 0x38800000u) {  // normal: re-bias, then round to even; the carry may reach infinity, as it should
    uint32_t rebiased = magnitude - (112u << 23);
    return (uint16_t)(sign | (rebiased + 0xfffu + (rebiased >> 13 & 1)) >> 13);
  }
  if (magnitude < 0x33000000u) {  // below half of the smallest subnormal
    return (uint16_t)sign;
  }
  uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
  uint32_t kept = fraction >> shift;
  uint32_t rest = fraction & ((1u << shift) - 1);
  uint32_t half = 1u << (shift - 1);
  return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1) != 0))));
}

#endif
