// dtype.h: element types, their sizes and conversions.
//
// Plain types have a size per element. Block-quantized types (the ggml formats) store a fixed number of elements in a fixed number
// of bytes and only make sense in whole blocks. The numbers are part of the ABI: new types are appended.
#ifndef VLLM_VT_DTYPE_H
#define VLLM_VT_DTYPE_H

#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_dtype;

enum {
  VT_DTYPE_F32 = 0,
  VT_DTYPE_F16 = 1,
  VT_DTYPE_BF16 = 2,
  VT_DTYPE_I8 = 3,
  VT_DTYPE_I32 = 4,
  VT_DTYPE_I64 = 5,
  VT_DTYPE_Q4_0 = 6,
  VT_DTYPE_Q8_0 = 7,
  VT_DTYPE_Q3_K = 8,
  VT_DTYPE_Q4_K = 9,
  VT_DTYPE_Q5_K = 10,
  VT_DTYPE_Q6_K = 11,
  VT_DTYPE_Q8_K = 12,
  VT_DTYPE_F64 = 13,
  VT_DTYPE_U8 = 14,
  VT_DTYPE_F8_E4M3 = 15,  // storage and transport only
  VT_DTYPE_F8_E5M2 = 16,  // storage and transport only
  VT_DTYPE_COUNT = 17,
};

// Names a type: "f32", "q4_K". NULL for a number that isn't a type.
//
// Order    none
// Memory   a string constant
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API const char *vt_dtype_get_name(vt_dtype dtype);

// Reads the size of one element.
//
// Order    none
// Memory   none
// Units    bytes
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  `dtype` is unknown or a block type (which has no element size), or `out_bytes` is NULL
VT_API vt_status vt_dtype_get_size(vt_dtype dtype, size_t *out_bytes);

// Reads the shape of one block: elements and bytes. A plain type is a block of one element.
//
// Order    none
// Memory   none
// Units    elements and bytes
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  `dtype` is unknown, or an out-parameter is NULL
VT_API vt_status vt_dtype_get_block(vt_dtype dtype, size_t *out_elements, size_t *out_bytes);

// Computes the bytes of a row of `elements` elements.
//
// Order    none
// Memory   none
// Units    elements in, bytes out
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  `dtype` is unknown, `elements` is negative or not in whole blocks, the bytes overflow, or
//                                   `out_bytes` is NULL
VT_API vt_status vt_dtype_get_row_bytes(vt_dtype dtype, int64_t elements, size_t *out_bytes);

// Maps a ggml type number to a block type. The numbers of f32, f16 and bf16 (0, 1, 30) and unknown ones answer VT_ERR_NOT_FOUND.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         the number is not a block type of this library
//          VT_ERR_INVALID_ARGUMENT  `out_dtype` is NULL
VT_API vt_status vt_dtype_find_ggml(int32_t ggml_type, vt_dtype *out_dtype);

// Converts one f32 to IEEE 754 binary16: to nearest, ties to even; overflow gives infinity, NaN a quiet NaN of the same sign.
//
// Order    none
// Memory   none
// Units    bits of the half
// Threads  any
// Capture  allowed
// Errors   none
VT_API uint16_t vt_f16_from_f32(float value);

// Converts one IEEE 754 binary16 to f32; exact. A NaN becomes quiet.
//
// Order    none
// Memory   none
// Units    bits of the half
// Threads  any
// Capture  allowed
// Errors   none
VT_API float vt_f16_to_f32(uint16_t bits);

// Converts one f32 to bfloat16: to nearest, ties to even; overflow gives infinity, NaN a quiet NaN of the same sign.
//
// Order    none
// Memory   none
// Units    bits of the bfloat16
// Threads  any
// Capture  allowed
// Errors   none
VT_API uint16_t vt_bf16_from_f32(float value);

// Converts one bfloat16 to f32; exact. A NaN becomes quiet.
//
// Order    none
// Memory   none
// Units    bits of the bfloat16
// Threads  any
// Capture  allowed
// Errors   none
VT_API float vt_bf16_to_f32(uint16_t bits);

// Converts `count` host elements between f32, f16 and bf16, each element as the functions above do. Equal types copy the bytes.
//
// Order    runs now, on the host
// Memory   any byte address; the arrays must not overlap; NULL is fine for count 0
// Units    elements
// Threads  any; reads `src`, writes `dst`
// Capture  allowed; it is not recorded
// Errors   VT_ERR_INVALID_ARGUMENT  a type other than these three, a NULL array, an overlap, or the bytes overflow
VT_API vt_status vt_dtype_convert(void *dst, vt_dtype dst_dtype, const void *src, vt_dtype src_dtype, size_t count);

#ifdef __cplusplus
}
#endif

#endif
