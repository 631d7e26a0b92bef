// reduce_ops.h: what the kernels of reduce.c do to one element. Everything is free of branches, so that compilers vectorise the
// loops.
#ifndef VT_COMM_REDUCE_OPS_H
#define VT_COMM_REDUCE_OPS_H

#include <stdint.h>
#include <string.h>

#include "core/convert.h"

// Elements at any byte address.
#define VT__ANYWHERE __attribute__((aligned(1), may_alias))
typedef float vt__f32u VT__ANYWHERE;
typedef double vt__f64u VT__ANYWHERE;
typedef uint16_t vt__u16u VT__ANYWHERE;
typedef int8_t vt__i8u VT__ANYWHERE;
typedef uint8_t vt__u8u VT__ANYWHERE;
typedef int32_t vt__i32u VT__ANYWHERE;
typedef int64_t vt__i64u VT__ANYWHERE;

static inline uint64_t vt__f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
static inline double vt__f64_from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline float vt__f32_sum(float a, float b) {
  return a + b;
}
static inline float vt__f32_prod(float a, float b) {
  return a * b;
}
static inline double vt__f64_sum(double a, double b) {
  return a + b;
}
static inline double vt__f64_prod(double a, double b) {
  return a * b;
}

// Bits of a float as an integer of the same order, -0 below +0.
static inline int32_t vt__f32_key(uint32_t bits) {
  return (int32_t)(bits ^ ((0u - (bits >> 31)) & 0x7fffffffu));
}
static inline int64_t vt__f64_key(uint64_t bits) {
  return (int64_t)(bits ^ ((UINT64_C(0) - (bits >> 63)) & UINT64_C(0x7fffffffffffffff)));
}

// A NaN of either side is the result; which of two does not matter, since results are made canonical.
static inline float vt__f32_pick(float a, float b, int a_wins) {
  uint32_t x = vt__f32_bits(a);
  uint32_t y = vt__f32_bits(b);
  uint32_t r = a_wins ? x : y;
  r = (y & 0x7fffffffu) > 0x7f800000u ? y : r;
  r = (x & 0x7fffffffu) > 0x7f800000u ? x : r;
  return vt__f32_from_bits(r);
}
static inline double vt__f64_pick(double a, double b, int a_wins) {
  uint64_t x = vt__f64_bits(a);
  uint64_t y = vt__f64_bits(b);
  uint64_t r = a_wins ? x : y;
  r = (y & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000) ? y : r;
  r = (x & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000) ? x : r;
  return vt__f64_from_bits(r);
}
static inline float vt__f32_max(float a, float b) {
  return vt__f32_pick(a, b, vt__f32_key(vt__f32_bits(a)) > vt__f32_key(vt__f32_bits(b)));
}
static inline float vt__f32_min(float a, float b) {
  return vt__f32_pick(a, b, vt__f32_key(vt__f32_bits(a)) < vt__f32_key(vt__f32_bits(b)));
}
static inline double vt__f64_max(double a, double b) {
  return vt__f64_pick(a, b, vt__f64_key(vt__f64_bits(a)) > vt__f64_key(vt__f64_bits(b)));
}
static inline double vt__f64_min(double a, double b) {
  return vt__f64_pick(a, b, vt__f64_key(vt__f64_bits(a)) < vt__f64_key(vt__f64_bits(b)));
}

// From the accumulator to the element: canonical NaN, one rounding to nearest even.
static inline float vt__f32_narrow(float value) {
  uint32_t bits = vt__f32_bits(value);
  return vt__f32_from_bits((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits);
}
static inline double vt__f64_narrow(double value) {
  uint64_t bits = vt__f64_bits(value);
  uint64_t magnitude = bits & UINT64_C(0x7fffffffffffffff);
  return vt__f64_from_bits(magnitude > UINT64_C(0x7ff0000000000000) ? UINT64_C(0x7ff8000000000000) : bits);
}
static inline float vt__bf16_widen(uint16_t half) {
  return vt__f32_from_bits((uint32_t)half << 16);
}
static inline uint16_t vt__bf16_narrow(float value) {
  uint32_t bits = vt__f32_bits(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}
static inline float vt__f16_widen(uint16_t half) {
  uint32_t shifted = ((uint32_t)half & 0x7fffu) << 13;
  uint32_t scaled = vt__f32_bits(vt__f32_from_bits(shifted) * 0x1p112f);  // exact, subnormals too
  uint32_t special = 0u - (uint32_t)(shifted >= (0x7c00u << 13));         // infinity and NaN
  uint32_t magnitude = (special & (shifted | 0x7f800000u)) | (~special & scaled);
  return vt__f32_from_bits(magnitude | ((uint32_t)half & 0x8000u) << 16);
}
static inline uint16_t vt__f16_narrow(float value) {
  uint32_t bits = vt__f32_bits(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t sign = (bits >> 16) & 0x8000u;
  // Normal halves: re-bias the exponent and round; a carry out of the mantissa does the right thing up to infinity.
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal halves: adding 0.5 aligns the mantissa, and the addition rounds.
  uint32_t is_small = 0u - (uint32_t)(magnitude < 0x38800000u);
  uint32_t small = vt__f32_bits(vt__f32_from_bits(magnitude & is_small) + 0.5f) - 0x3f000000u;
  uint32_t half = (is_small & small) | (~is_small & normal);
  half = magnitude >= 0x47800000u ? 0x7c00u : half;
  return (uint16_t)(magnitude > 0x7f800000u ? 0x7e00u : half | sign);
}

#define VT__SAME(x) (x)

// Integers wrap: the arithmetic is unsigned and at least as wide as int.
#define VT__INT_SUM(T, U)                 \
  static inline T vt__sum_##T(T a, T b) { \
    return (T)((U)a + (U)b);              \
  }
#define VT__INT_PROD(T, U)                 \
  static inline T vt__prod_##T(T a, T b) { \
    return (T)((U)a * (U)b);               \
  }
#define VT__INT_MAX(T)                    \
  static inline T vt__max_##T(T a, T b) { \
    return a > b ? a : b;                 \
  }
#define VT__INT_MIN(T)                    \
  static inline T vt__min_##T(T a, T b) { \
    return a < b ? a : b;                 \
  }
#define VT__INT_OPS(T, U) VT__INT_SUM(T, U) VT__INT_PROD(T, U) VT__INT_MAX(T) VT__INT_MIN(T)
VT__INT_OPS(int8_t, uint32_t)
VT__INT_OPS(uint8_t, uint32_t)
VT__INT_OPS(int32_t, uint32_t)
VT__INT_OPS(int64_t, uint64_t)

#endif
