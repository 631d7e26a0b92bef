// vectors.h: vectors of VT__WIDTH bytes, which the including file defines, and how they come from memory and go there.
//
// Vector extensions of gcc and clang, so that one text serves all instruction sets. A comparison answers all ones or all zeros.
#ifndef VT_COMM_REDUCE_VECTORS_H
#define VT_COMM_REDUCE_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VT__INLINE static inline __attribute__((always_inline))
#define VT__VECTOR __attribute__((vector_size(VT__WIDTH)))
typedef float v_f32 VT__VECTOR;
typedef double v_f64 VT__VECTOR;
typedef int8_t v_i8 VT__VECTOR;
typedef uint8_t v_u8 VT__VECTOR;
typedef int16_t v_i16 VT__VECTOR;
typedef uint16_t v_u16 VT__VECTOR;
typedef int32_t v_i32 VT__VECTOR;
typedef uint32_t v_u32 VT__VECTOR;
typedef int64_t v_i64 VT__VECTOR;
typedef uint64_t v_u64 VT__VECTOR;
typedef uint32_t v_memory __attribute__((vector_size(VT__WIDTH), aligned(1), may_alias));  // at any address

// The values of one vector of halves. Which of them `x` holds and which `y` is up to the instruction set.
typedef struct v_halves {
  v_f32 x;
  v_f32 y;
} v_halves;

// The same value in every lane.
VT__INLINE v_u32 every_u32(uint32_t value) {
  return (v_u32){0} + value;
}
VT__INLINE v_u64 every_u64(uint64_t value) {
  return (v_u64){0} + value;
}
VT__INLINE v_i16 every_i16(int16_t value) {
  return (v_i16){0} + value;
}

VT__INLINE v_u32 load(const char *from) {
  return *(const v_memory *)from;
}
VT__INLINE void store(char *to, v_u32 vector) {
  *(v_memory *)to = vector;
}

#endif
