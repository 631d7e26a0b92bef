// loops.h: the kernels of one instruction set, one per type and operation. The including file has defined VT__REDUCE_TABLE, the
// name of the table, and the lanes.
#ifndef VT_COMM_REDUCE_LOOPS_H
#define VT_COMM_REDUCE_LOOPS_H

#include "comm/reduce/kernels.h"
#include "comm/reduce/lanes.h"

// Vectors that are worked on together.
#ifndef VT__TILE
#define VT__TILE 4
#endif

// What is less than a vector: the baseline does it, the others leave it.
#ifdef VT__IS_BASELINE
#include "comm/reduce/part.h"
#define VT__PART(NAME, T, WIDEN, OP, FINISH)                                                            \
  VT__INLINE size_t NAME##_part(const vt__reduce_operands *all, size_t at, size_t bytes) {              \
    T acc = WIDEN(load_part((const char *)all->sources[0] + all->source_at + at, bytes - at));          \
    for (int32_t r = 1; r < all->source_count; r++) {                                                   \
      acc = OP(acc, WIDEN(load_part((const char *)all->sources[r] + all->source_at + at, bytes - at))); \
    }                                                                                                   \
    v_u32 words = FINISH(acc, all->source_count);                                                       \
    for (int32_t r = 0; r < all->out_count; r++) {                                                      \
      store_part((char *)all->outs[r] + all->out_at + at, words, bytes - at);                           \
    }                                                                                                   \
    return bytes;                                                                                       \
  }
#else
#define VT__PART(NAME, T, WIDEN, OP, FINISH)                                               \
  VT__INLINE size_t NAME##_part(const vt__reduce_operands *all, size_t at, size_t bytes) { \
    (void)all;                                                                             \
    (void)bytes;                                                                           \
    return at;                                                                             \
  }
#endif

// NAME     of the functions
// T        accumulator
// WIDEN    memory's words to accumulator
// OP       on accumulators
// FINISH   (accumulator, ranks) to memory's words
//
// The operands of two ranks are constants but for the addresses, and the loops over ranks vanish.
#define VT__LOOP(NAME, T, WIDEN, OP, FINISH)                                                     \
  VT__INLINE void NAME##_tile(const vt__reduce_operands *all, size_t at, size_t vectors) {       \
    T acc[VT__TILE];                                                                             \
    for (size_t v = 0; v < vectors; v++) {                                                       \
      acc[v] = WIDEN(load((const char *)all->sources[0] + all->source_at + at + v * VT__WIDTH)); \
    }                                                                                            \
    for (int32_t r = 1; r < all->source_count; r++) {                                            \
      const char *source = (const char *)all->sources[r] + all->source_at + at;                  \
      for (size_t v = 0; v < vectors; v++) {                                                     \
        acc[v] = OP(acc[v], WIDEN(load(source + v * VT__WIDTH)));                                \
      }                                                                                          \
    }                                                                                            \
    v_u32 words[VT__TILE];                                                                       \
    for (size_t v = 0; v < vectors; v++) {                                                       \
      words[v] = FINISH(acc[v], all->source_count);                                              \
    }                                                                                            \
    for (int32_t r = 0; r < all->out_count; r++) {                                               \
      char *out = (char *)all->outs[r] + all->out_at + at;                                       \
      for (size_t v = 0; v < vectors; v++) {                                                     \
        store(out + v * VT__WIDTH, words[v]);                                                    \
      }                                                                                          \
    }                                                                                            \
  }                                                                                              \
  VT__PART(NAME, T, WIDEN, OP, FINISH)                                                           \
  static size_t NAME##_rest(const vt__reduce_operands *all, size_t at, size_t bytes) {           \
    for (; bytes - at >= VT__WIDTH; at += VT__WIDTH) {                                           \
      NAME##_tile(all, at, 1);                                                                   \
    }                                                                                            \
    return at == bytes ? at : NAME##_part(all, at, bytes);                                       \
  }                                                                                              \
  VT__INLINE size_t NAME##_tiles(const vt__reduce_operands *all, size_t bytes) {                 \
    size_t at = 0;                                                                               \
    for (; bytes - at >= VT__TILE * VT__WIDTH; at += VT__TILE * VT__WIDTH) {                     \
      NAME##_tile(all, at, VT__TILE);                                                            \
    }                                                                                            \
    return at;                                                                                   \
  }                                                                                              \
  VT__INLINE size_t NAME##_of_two(const vt__reduce_operands *all, size_t bytes, int32_t outs) {  \
    const void *const source[2] = {all->sources[0], all->sources[1]};                            \
    void *const out[2] = {all->outs[0], all->outs[outs - 1]};                                    \
    vt__reduce_operands two = {source, out, all->source_at, all->out_at, 2, outs};               \
    return NAME##_tiles(&two, bytes);                                                            \
  }                                                                                              \
  static size_t NAME(const vt__reduce_operands *all, size_t bytes) {                             \
    size_t done = 0;                                                                             \
    if (bytes < VT__TILE * VT__WIDTH) {                                                          \
      return NAME##_rest(all, 0, bytes);                                                         \
    }                                                                                            \
    if (all->source_count == 2 && all->out_count == 2) {                                         \
      done = NAME##_of_two(all, bytes, 2);                                                       \
    } else if (all->source_count == 2 && all->out_count == 1) {                                  \
      done = NAME##_of_two(all, bytes, 1);                                                       \
    } else {                                                                                     \
      done = NAME##_tiles(all, bytes);                                                           \
    }                                                                                            \
    return NAME##_rest(all, done, bytes);                                                        \
  }

#define VT__ARITHMETIC(TYPE, T)                                  \
  VT__INLINE v_u32 total_##TYPE(T acc, int32_t ranks) {          \
    (void)ranks;                                                 \
    return finish_##TYPE(acc);                                   \
  }                                                              \
  VT__INLINE v_u32 mean_##TYPE(T acc, int32_t ranks) {           \
    return finish_##TYPE(average_##TYPE(acc, ranks));            \
  }                                                              \
  VT__LOOP(TYPE##_sum, T, widen_##TYPE, sum_##T, total_##TYPE)   \
  VT__LOOP(TYPE##_prod, T, widen_##TYPE, prod_##T, total_##TYPE) \
  VT__LOOP(TYPE##_avg, T, widen_##TYPE, sum_##T, mean_##TYPE)
#define VT__EXTREMES(TYPE, T)                                  \
  VT__LOOP(TYPE##_max, T, widen_##TYPE, max_##T, total_##TYPE) \
  VT__LOOP(TYPE##_min, T, widen_##TYPE, min_##T, total_##TYPE)
#define VT__HALF_EXTREMES(TYPE)                                                     \
  VT__LOOP(TYPE##_max, v_i16, widen_##TYPE##_max, max_v_i16, finish_##TYPE##_order) \
  VT__LOOP(TYPE##_min, v_i16, widen_##TYPE##_min, min_v_i16, finish_##TYPE##_order)

VT__ARITHMETIC(f32, v_f32)
VT__EXTREMES(f32, v_f32)
VT__ARITHMETIC(f64, v_f64)
VT__EXTREMES(f64, v_f64)
VT__ARITHMETIC(f16, v_halves)
VT__HALF_EXTREMES(f16)
VT__ARITHMETIC(bf16, v_halves)
VT__HALF_EXTREMES(bf16)
VT__ARITHMETIC(i8, v_i8)
VT__EXTREMES(i8, v_i8)
VT__ARITHMETIC(u8, v_u8)
VT__EXTREMES(u8, v_u8)
VT__ARITHMETIC(i32, v_i32)
VT__EXTREMES(i32, v_i32)
VT__ARITHMETIC(i64, v_i64)
VT__EXTREMES(i64, v_i64)

#define VT__ROW(TYPE)                                                                                                         \
  {                                                                                                                           \
    [VT_REDUCE_SUM] = TYPE##_sum, [VT_REDUCE_MAX] = TYPE##_max, [VT_REDUCE_MIN] = TYPE##_min, [VT_REDUCE_PROD] = TYPE##_prod, \
    [VT_REDUCE_AVG] = TYPE##_avg,                                                                                             \
  }

const vt__reduce_table VT__REDUCE_TABLE = {
    [VT_DTYPE_F32] = VT__ROW(f32), [VT_DTYPE_F64] = VT__ROW(f64), [VT_DTYPE_F16] = VT__ROW(f16), [VT_DTYPE_BF16] = VT__ROW(bf16),
    [VT_DTYPE_I8] = VT__ROW(i8),   [VT_DTYPE_U8] = VT__ROW(u8),   [VT_DTYPE_I32] = VT__ROW(i32), [VT_DTYPE_I64] = VT__ROW(i64),
};

#endif
