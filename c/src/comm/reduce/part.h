// part.h: less than a vector of 16 bytes, without touching a byte of memory more. By way of registers: a vector that is read from
// memory which was just written in pieces waits for all of them.
#ifndef VT_COMM_REDUCE_PART_H
#define VT_COMM_REDUCE_PART_H

#include "comm/reduce/vectors.h"

VT__INLINE uint64_t load_word(const char *from, size_t bytes) {
  uint64_t word = 0;
  if (bytes >= 8) {
    memcpy(&word, from, 8);
    return word;
  }
  uint32_t four = 0;
  uint16_t two = 0;
  if ((bytes & 1) != 0) {
    word = (unsigned char)from[bytes - 1];
  }
  if ((bytes & 2) != 0) {
    memcpy(&two, from + (bytes & 4), 2);
    word = word << 16 | two;
  }
  if ((bytes & 4) != 0) {
    memcpy(&four, from, 4);
    word = word << 32 | four;
  }
  return word;
}

VT__INLINE void store_word(char *to, uint64_t word, size_t bytes) {
  if (bytes >= 8) {
    memcpy(to, &word, 8);
    return;
  }
  if ((bytes & 4) != 0) {
    memcpy(to, &word, 4);
    word >>= 32;
  }
  if ((bytes & 2) != 0) {
    memcpy(to + (bytes & 4), &word, 2);
    word >>= 16;
  }
  if ((bytes & 1) != 0) {
    to[bytes - 1] = (char)word;
  }
}

static __attribute__((noinline)) v_u32 load_part(const char *from, size_t bytes) {
  uint64_t low = load_word(from, bytes);
  uint64_t high = bytes > 8 ? load_word(from + 8, bytes - 8) : 0;
  return (v_u32)(v_u64){low, high};
}

static __attribute__((noinline)) void store_part(char *to, v_u32 vector, size_t bytes) {
  store_word(to, ((v_u64)vector)[0], bytes);
  if (bytes > 8) {
    store_word(to + 8, ((v_u64)vector)[1], bytes - 8);
  }
}

#endif
