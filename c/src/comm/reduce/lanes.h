// lanes.h: from memory's elements to accumulators, operations on accumulators, and back. Free of branches and of calls.
//
// The including file has defined choose(), mix(), max and min of v_f32 and v_f64, and widen_f16() and narrow_f16().
#ifndef VT_COMM_REDUCE_LANES_H
#define VT_COMM_REDUCE_LANES_H

#include "comm/reduce/vectors.h"

#define VT__FLOAT_OPS(T)            \
  VT__INLINE T sum_##T(T a, T b) {  \
    return a + b;                   \
  }                                 \
  VT__INLINE T prod_##T(T a, T b) { \
    return a * b;                   \
  }
VT__FLOAT_OPS(v_f32)
VT__FLOAT_OPS(v_f64)

#define VT__HALVES_OP(name)                                            \
  VT__INLINE v_halves name##_v_halves(v_halves a, v_halves b) {        \
    return (v_halves){name##_v_f32(a.x, b.x), name##_v_f32(a.y, b.y)}; \
  }
VT__HALVES_OP(sum)
VT__HALVES_OP(prod)

// Integers wrap: sums and products are unsigned.
#define VT__INT_OPS(T, U)                                 \
  VT__INLINE T sum_##T(T a, T b) {                        \
    return (T)((U)a + (U)b);                              \
  }                                                       \
  VT__INLINE T max_##T(T a, T b) {                        \
    return (T)choose((v_u32)(a > b), (v_u32)a, (v_u32)b); \
  }                                                       \
  VT__INLINE T min_##T(T a, T b) {                        \
    return (T)choose((v_u32)(a < b), (v_u32)a, (v_u32)b); \
  }
VT__INT_OPS(v_i8, v_u8)
VT__INT_OPS(v_u8, v_u8)
VT__INT_OPS(v_i16, v_u16)
VT__INT_OPS(v_i32, v_u32)
VT__INT_OPS(v_i64, v_u64)

VT__INLINE v_i32 prod_v_i32(v_i32 a, v_i32 b) {
  return (v_i32)((v_u32)a * (v_u32)b);
}
VT__INLINE v_i64 prod_v_i64(v_i64 a, v_i64 b) {
  return (v_i64)((v_u64)a * (v_u64)b);
}
// No instruction multiplies bytes: the even and the odd ones as 16 bits each.
VT__INLINE v_u8 prod_v_u8(v_u8 a, v_u8 b) {
  v_u16 even = ((v_u16)a * (v_u16)b) & 0xffu;
  v_u16 odd = ((v_u16)a >> 8) * ((v_u16)b >> 8) << 8;
  return (v_u8)(even | odd);
}
VT__INLINE v_i8 prod_v_i8(v_i8 a, v_i8 b) {
  return (v_i8)prod_v_u8((v_u8)a, (v_u8)b);
}

// Words of memory are a vector of 32-bit lanes, whatever the elements are.
#define VT__SAME_BITS(name, T)             \
  VT__INLINE T widen_##name(v_u32 words) { \
    return (T)words;                       \
  }
VT__SAME_BITS(f32, v_f32)
VT__SAME_BITS(f64, v_f64)
VT__SAME_BITS(i8, v_i8)
VT__SAME_BITS(u8, v_u8)
VT__SAME_BITS(i32, v_i32)
VT__SAME_BITS(i64, v_i64)

VT__INLINE v_halves widen_bf16(v_u32 words) {
  return (v_halves){(v_f32)(words << 16), (v_f32)(words & 0xffff0000u)};
}

// The canonical NaN is quiet, positive and without payload.
VT__INLINE v_f32 canonical(v_f32 value) {
  return (v_f32)choose((v_u32)(value != value), every_u32(0x7fc00000u), (v_u32)value);
}
VT__INLINE v_u32 finish_f32(v_f32 value) {
  return (v_u32)canonical(value);
}
VT__INLINE v_u32 finish_f64(v_f64 value) {
  return choose((v_u32)(value != value), (v_u32)every_u64(UINT64_C(0x7ff8000000000000)), (v_u32)value);
}
// A vector of halves, NaNs of which are those above INFINITE in magnitude.
VT__INLINE v_u32 canonical_halves(v_i16 half, int16_t infinite, int16_t quiet) {
  return choose((v_u32)((half & 0x7fff) > infinite), (v_u32)every_i16(quiet), (v_u32)half);
}

// What is cut off rounds up above one half of the last kept place, and at one half where that place is odd. The carry may reach
// infinity, as it should. The NaNs of an accumulator come from halves or are the processor's own: there is nothing to cut off.
VT__INLINE v_u32 finish_bf16(v_halves value) {
  v_u32 kept = mix((v_u32)value.x >> 16, (v_u32)value.y);
  v_u32 cut = mix((v_u32)value.x, (v_u32)value.y << 16);
  v_i16 above = (v_i16)((cut | (kept & 0x00010001u)) ^ 0x80008000u) > 0;  // -1 where true
  return canonical_halves((v_i16)((v_u16)kept - (v_u16)above), 0x7f80, 0x7fc0);
}
VT__INLINE v_u32 finish_f16(v_halves value) {
  return narrow_f16((v_halves){canonical(value.x), canonical(value.y)});
}

// Halves in the order of minimum and maximum, -0 below +0, are integers: negative ones count downwards. A NaN is what wins.
VT__INLINE v_i16 order_of(v_u32 words) {
  v_i16 half = (v_i16)words;
  return half ^ ((half >> 15) & 0x7fff);  // is its own inverse
}
#define VT__ORDERED(name, INFINITE, QUIET)                                             \
  VT__INLINE v_i16 widen_##name##_max(v_u32 words) {                                   \
    v_u32 is_nan = (v_u32)(((v_i16)words & 0x7fff) > INFINITE);                        \
    return (v_i16)choose(is_nan, (v_u32)every_i16(INT16_MAX), (v_u32)order_of(words)); \
  }                                                                                    \
  VT__INLINE v_i16 widen_##name##_min(v_u32 words) {                                   \
    v_u32 is_nan = (v_u32)(((v_i16)words & 0x7fff) > INFINITE);                        \
    return (v_i16)choose(is_nan, (v_u32)every_i16(INT16_MIN), (v_u32)order_of(words)); \
  }                                                                                    \
  VT__INLINE v_u32 finish_##name##_order(v_i16 order, int32_t ranks) {                 \
    (void)ranks;                                                                       \
    return canonical_halves(order_of((v_u32)order), INFINITE, QUIET);                  \
  }
VT__ORDERED(f16, 0x7c00, 0x7e00)
VT__ORDERED(bf16, 0x7f80, 0x7fc0)

#define VT__FINISH_INT(name, T)             \
  VT__INLINE v_u32 finish_##name(T value) { \
    return (v_u32)value;                    \
  }
VT__FINISH_INT(i8, v_i8)
VT__FINISH_INT(u8, v_u8)
VT__FINISH_INT(i32, v_i32)
VT__FINISH_INT(i64, v_i64)

// Averages: the accumulator divided by the number of ranks.
VT__INLINE v_f32 average_f32(v_f32 sum, int32_t ranks) {
  return sum / (float)ranks;
}
VT__INLINE v_f64 average_f64(v_f64 sum, int32_t ranks) {
  return sum / (double)ranks;
}
VT__INLINE v_halves average_halves(v_halves sum, int32_t ranks) {
  return (v_halves){average_f32(sum.x, ranks), average_f32(sum.y, ranks)};
}
#define average_f16 average_halves
#define average_bf16 average_halves

// A quotient that is no integer is further from one than rounding reaches: there are at most VT_COMM_MAX_WORLD ranks, and f32 has
// three times the 8 bits of a byte, f64 nearly twice the 32 bits of a word.
VT__INLINE v_u32 average_byte(v_i32 byte, int32_t ranks) {
  v_f32 quotient = __builtin_convertvector(byte, v_f32) / (float)ranks;
  return (v_u32) __builtin_convertvector(quotient, v_i32) & 0xffu;
}
VT__INLINE v_i8 average_i8(v_i8 sum, int32_t ranks) {
  v_i32 words = (v_i32)sum;
  return (v_i8)(average_byte(words << 24 >> 24, ranks) | average_byte(words << 16 >> 24, ranks) << 8 |
                average_byte(words << 8 >> 24, ranks) << 16 | average_byte(words >> 24, ranks) << 24);
}
VT__INLINE v_u8 average_u8(v_u8 sum, int32_t ranks) {
  v_u32 words = (v_u32)sum;
  return (v_u8)(average_byte((v_i32)(words & 0xffu), ranks) | average_byte((v_i32)(words >> 8 & 0xffu), ranks) << 8 |
                average_byte((v_i32)(words >> 16 & 0xffu), ranks) << 16 | average_byte((v_i32)(words >> 24), ranks) << 24);
}
VT__INLINE v_i32 average_i32(v_i32 sum, int32_t ranks) {
  typedef int32_t v_half_i32 __attribute__((vector_size(VT__WIDTH / 2)));
  v_half_i32 part[2];
  memcpy(part, &sum, VT__WIDTH);
  for (int32_t i = 0; i < 2; i++) {
    part[i] = __builtin_convertvector(__builtin_convertvector(part[i], v_f64) / (double)ranks, v_half_i32);
  }
  memcpy(&sum, part, VT__WIDTH);
  return sum;
}
VT__INLINE v_i64 average_i64(v_i64 sum, int32_t ranks) {
  return sum / (int64_t)ranks;
}

#endif
