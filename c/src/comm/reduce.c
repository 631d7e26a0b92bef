// reduce.c: the kernels, one set per type and operation. See reduce.h and reduce_ops.h.
#include "comm/reduce.h"

#include "comm/reduce_ops.h"

// NAME   of the functions
// E      element as stored, at any address
// A      accumulator
// WIDEN  element to accumulator
// OP     two accumulators to one
#define ACCUMULATE(NAME, E, A, WIDEN, OP)                                           \
  static void NAME##_first(void *acc, const void *a, const void *b, size_t count) { \
    A *restrict to = acc;                                                           \
    const E *x = a;                                                                 \
    const E *y = b;                                                                 \
    for (size_t i = 0; i < count; i++) {                                            \
      to[i] = OP(WIDEN(x[i]), WIDEN(y[i]));                                         \
    }                                                                               \
  }                                                                                 \
  static void NAME##_next(void *acc, const void *a, size_t count) {                 \
    A *restrict to = acc;                                                           \
    const E *x = a;                                                                 \
    for (size_t i = 0; i < count; i++) {                                            \
      to[i] = OP(to[i], WIDEN(x[i]));                                               \
    }                                                                               \
  }

// NARROW  accumulator to element
#define FINISH(NAME, E, A, NARROW)                                                     \
  static void NAME##_finish(void *out, const void *acc, size_t count, int32_t world) { \
    (void)world;                                                                       \
    E *restrict to = out;                                                              \
    const A *from = acc;                                                               \
    for (size_t i = 0; i < count; i++) {                                               \
      to[i] = NARROW(from[i]);                                                         \
    }                                                                                  \
  }

// W  type in which the accumulator is divided by the world
#define FINISH_AVG(NAME, E, A, NARROW, W)                                              \
  static void NAME##_finish(void *out, const void *acc, size_t count, int32_t world) { \
    E *restrict to = out;                                                              \
    const A *from = acc;                                                               \
    const W ranks = (W)world;                                                          \
    for (size_t i = 0; i < count; i++) {                                               \
      to[i] = NARROW((A)((W)from[i] / ranks));                                         \
    }                                                                                  \
  }

#define PAIR(NAME, E, WIDEN, OP, NARROW)                                           \
  static void NAME##_pair(void *out, const void *a, const void *b, size_t count) { \
    E *restrict to = out;                                                          \
    const E *x = a;                                                                \
    const E *y = b;                                                                \
    for (size_t i = 0; i < count; i++) {                                           \
      to[i] = NARROW(OP(WIDEN(x[i]), WIDEN(y[i])));                                \
    }                                                                              \
  }

#define PAIR_AVG(NAME, E, A, WIDEN, OP, NARROW, W)                                 \
  static void NAME##_pair(void *out, const void *a, const void *b, size_t count) { \
    E *restrict to = out;                                                          \
    const E *x = a;                                                                \
    const E *y = b;                                                                \
    for (size_t i = 0; i < count; i++) {                                           \
      to[i] = NARROW((A)((W)OP(WIDEN(x[i]), WIDEN(y[i])) / (W)2));                 \
    }                                                                              \
  }

// All kernels of one type: SUM, MAX, MIN and PROD name the operations on accumulators.
#define KERNELS(T, E, A, WIDEN, NARROW, W, SUM, MAX, MIN, PROD) \
  ACCUMULATE(T##_sum, E, A, WIDEN, SUM)                         \
  ACCUMULATE(T##_max, E, A, WIDEN, MAX)                         \
  ACCUMULATE(T##_min, E, A, WIDEN, MIN)                         \
  ACCUMULATE(T##_prod, E, A, WIDEN, PROD)                       \
  FINISH(T, E, A, NARROW)                                       \
  FINISH_AVG(T##_avg, E, A, NARROW, W)                          \
  PAIR(T##_sum, E, WIDEN, SUM, NARROW)                          \
  PAIR(T##_max, E, WIDEN, MAX, NARROW)                          \
  PAIR(T##_min, E, WIDEN, MIN, NARROW)                          \
  PAIR(T##_prod, E, WIDEN, PROD, NARROW)                        \
  PAIR_AVG(T##_avg, E, A, WIDEN, SUM, NARROW, W)

KERNELS(f32, vt__f32u, float, VT__SAME, vt__f32_narrow, float, vt__f32_sum, vt__f32_max, vt__f32_min, vt__f32_prod)
KERNELS(f64, vt__f64u, double, VT__SAME, vt__f64_narrow, double, vt__f64_sum, vt__f64_max, vt__f64_min, vt__f64_prod)
KERNELS(f16, vt__u16u, float, vt__f16_widen, vt__f16_narrow, float, vt__f32_sum, vt__f32_max, vt__f32_min, vt__f32_prod)
KERNELS(bf16, vt__u16u, float, vt__bf16_widen, vt__bf16_narrow, float, vt__f32_sum, vt__f32_max, vt__f32_min, vt__f32_prod)
KERNELS(i8, vt__i8u, int8_t, VT__SAME, VT__SAME, int32_t, vt__sum_int8_t, vt__max_int8_t, vt__min_int8_t, vt__prod_int8_t)
KERNELS(u8, vt__u8u, uint8_t, VT__SAME, VT__SAME, uint32_t, vt__sum_uint8_t, vt__max_uint8_t, vt__min_uint8_t, vt__prod_uint8_t)
KERNELS(i32, vt__i32u, int32_t, VT__SAME, VT__SAME, int32_t, vt__sum_int32_t, vt__max_int32_t, vt__min_int32_t, vt__prod_int32_t)
KERNELS(i64, vt__i64u, int64_t, VT__SAME, VT__SAME, int64_t, vt__sum_int64_t, vt__max_int64_t, vt__min_int64_t, vt__prod_int64_t)

#define ONE(T, OP, BYTES, IS_FLOAT) \
  { T##_##OP##_pair, T##_##OP##_first, T##_##OP##_next, T##_finish, BYTES, IS_FLOAT }
#define AVG(T, BYTES, IS_FLOAT) \
  { T##_avg_pair, T##_sum_first, T##_sum_next, T##_avg_finish, BYTES, IS_FLOAT }
#define ROW(T, BYTES, IS_FLOAT)                                                                       \
  {                                                                                                   \
    [VT_REDUCE_SUM] = ONE(T, sum, BYTES, IS_FLOAT), [VT_REDUCE_MAX] = ONE(T, max, BYTES, IS_FLOAT),   \
    [VT_REDUCE_MIN] = ONE(T, min, BYTES, IS_FLOAT), [VT_REDUCE_PROD] = ONE(T, prod, BYTES, IS_FLOAT), \
    [VT_REDUCE_AVG] = AVG(T, BYTES, IS_FLOAT),                                                        \
  }

const vt__reduce_kernel *vt__reduce_kernel_find(vt_dtype dtype, vt_reduce_op op) {
  static const vt__reduce_kernel table[VT_DTYPE_COUNT][VT_REDUCE_COUNT] = {
      [VT_DTYPE_F32] = ROW(f32, 4, true), [VT_DTYPE_F16] = ROW(f16, 2, true),  [VT_DTYPE_BF16] = ROW(bf16, 2, true),
      [VT_DTYPE_I8] = ROW(i8, 1, false),  [VT_DTYPE_I32] = ROW(i32, 4, false), [VT_DTYPE_I64] = ROW(i64, 8, false),
      [VT_DTYPE_F64] = ROW(f64, 8, true), [VT_DTYPE_U8] = ROW(u8, 1, false),
  };
  return table[dtype][op].pair == NULL ? NULL : &table[dtype][op];
}
