// macros.h: small helpers without state.
#ifndef VT_BASE_MACROS_H
#define VT_BASE_MACROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VT_LIKELY(x) __builtin_expect(!!(x), 1)
#define VT_UNLIKELY(x) __builtin_expect(!!(x), 0)

// Room between two objects that different threads write: two lines, since processors fetch lines in pairs.
#define VT_CACHE_LINE 64
#define VT_NO_SHARING 128

_Static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8, "libvllm_vt needs a 64-bit platform");

static inline size_t vt__max_size(size_t a, size_t b) {
  return a > b ? a : b;
}
static inline size_t vt__min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

// Rounds `bytes` up to a multiple of `align`, a power of two. False if that overflows.
static inline bool vt__align_up(size_t bytes, size_t align, size_t *out) {
  if (bytes > SIZE_MAX - (align - 1)) {
    return false;
  }
  *out = (bytes + align - 1) & ~(align - 1);
  return true;
}

static inline bool vt__mul_overflows(size_t a, size_t b, size_t *out) {
  return __builtin_mul_overflow(a, b, out);
}

// Whether two ranges of `a_bytes` and `b_bytes` share a byte.
static inline bool vt__ranges_overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
  return a_bytes != 0 && b_bytes != 0 && (a < b ? b - a < a_bytes : a - b < b_bytes);
}
static inline bool vt__overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  return vt__ranges_overlap((uintptr_t)a, a_bytes, (uintptr_t)b, b_bytes);
}

#endif
