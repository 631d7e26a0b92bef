// convert.c: f32, f16 and bf16, one element and in bulk.
//
// Formats: IEEE 754-2019 binary16 and binary32; bfloat16 is the upper half of binary32. Integer arithmetic only, so the caller's
// floating-point environment has no say.
#include "core/convert.h"

#include <string.h>

#include "core/error.h"
#include "vllm_vt/dtype.h"

uint16_t vt_f16_from_f32(float value) {
  return vt__f16_from_bits(vt__f32_bits(value));
}
float vt_f16_to_f32(uint16_t bits) {
  return vt__f32_from_bits(vt__f16_to_bits(bits));
}
uint16_t vt_bf16_from_f32(float value) {
  return vt__bf16_from_bits(vt__f32_bits(value));
}
float vt_bf16_to_f32(uint16_t bits) {
  return vt__f32_from_bits(vt__bf16_to_bits(bits));
}

static bool is_convertible(vt_dtype dtype) {
  return dtype == VT_DTYPE_F32 || dtype == VT_DTYPE_F16 || dtype == VT_DTYPE_BF16;
}

static uint32_t load_as_f32(const unsigned char *src, vt_dtype dtype) {
  uint32_t wide;
  uint16_t narrow;
  if (dtype == VT_DTYPE_F32) {
    memcpy(&wide, src, sizeof(wide));
    return wide;
  }
  memcpy(&narrow, src, sizeof(narrow));
  return dtype == VT_DTYPE_F16 ? vt__f16_to_bits(narrow) : vt__bf16_to_bits(narrow);
}

static void store_from_f32(unsigned char *dst, vt_dtype dtype, uint32_t bits) {
  if (dtype == VT_DTYPE_F32) {
    memcpy(dst, &bits, sizeof(bits));
    return;
  }
  uint16_t narrow = dtype == VT_DTYPE_F16 ? vt__f16_from_bits(bits) : vt__bf16_from_bits(bits);
  memcpy(dst, &narrow, sizeof(narrow));
}

vt_status vt_dtype_convert(void *dst, vt_dtype dst_dtype, const void *src, vt_dtype src_dtype, size_t count) {
  VT_CHECK_ARG(is_convertible(dst_dtype), "dst_dtype %d is not f32, f16 or bf16", dst_dtype);
  VT_CHECK_ARG(is_convertible(src_dtype), "src_dtype %d is not f32, f16 or bf16", src_dtype);
  if (count == 0) {
    return VT_OK;
  }
  VT_CHECK_ARG(dst != NULL, "dst is NULL");
  VT_CHECK_ARG(src != NULL, "src is NULL");
  VT_CHECK_ARG(count <= SIZE_MAX / sizeof(float), "the bytes of %zu elements overflow", count);
  size_t dst_size = dst_dtype == VT_DTYPE_F32 ? 4 : 2;
  size_t src_size = src_dtype == VT_DTYPE_F32 ? 4 : 2;
  VT_CHECK_ARG(!vt__overlaps(dst, count * dst_size, src, count * src_size), "dst %p and src %p overlap", dst, src);
  if (dst_dtype == src_dtype) {
    memcpy(dst, src, count * dst_size);
    return VT_OK;
  }
  unsigned char *to = dst;
  const unsigned char *from = src;
  for (size_t i = 0; i < count; i++) {
    store_from_f32(to + i * dst_size, dst_dtype, load_as_f32(from + i * src_size, src_dtype));
  }
  return VT_OK;
}
