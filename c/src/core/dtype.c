// dtype.c: the table of data types.
//
// Block sizes are those of the ggml file formats.
#include "vllm_vt/dtype.h"

#include <limits.h>

#include "core/error.h"

typedef struct dtype_row {
  const char *name;
  size_t elements;  // per block
  size_t bytes;     // per block
  int32_t ggml;     // type number of a block type, else -1
} dtype_row;

static const dtype_row table[VT_DTYPE_COUNT] = {
    [VT_DTYPE_F32] = {"f32", 1, 4, -1},         [VT_DTYPE_F16] = {"f16", 1, 2, -1},
    [VT_DTYPE_BF16] = {"bf16", 1, 2, -1},       [VT_DTYPE_I8] = {"i8", 1, 1, -1},
    [VT_DTYPE_I32] = {"i32", 1, 4, -1},         [VT_DTYPE_I64] = {"i64", 1, 8, -1},
    [VT_DTYPE_Q4_0] = {"q4_0", 32, 18, 2},      [VT_DTYPE_Q8_0] = {"q8_0", 32, 34, 8},
    [VT_DTYPE_Q3_K] = {"q3_K", 256, 110, 11},   [VT_DTYPE_Q4_K] = {"q4_K", 256, 144, 12},
    [VT_DTYPE_Q5_K] = {"q5_K", 256, 176, 13},   [VT_DTYPE_Q6_K] = {"q6_K", 256, 210, 14},
    [VT_DTYPE_Q8_K] = {"q8_K", 256, 292, 15},   [VT_DTYPE_F64] = {"f64", 1, 8, -1},
    [VT_DTYPE_U8] = {"u8", 1, 1, -1},           [VT_DTYPE_F8_E4M3] = {"f8_e4m3", 1, 1, -1},
    [VT_DTYPE_F8_E5M2] = {"f8_e5m2", 1, 1, -1},
};

static const dtype_row *find(vt_dtype dtype) {
  return dtype >= 0 && dtype < VT_DTYPE_COUNT ? &table[dtype] : NULL;
}

const char *vt_dtype_get_name(vt_dtype dtype) {
  const dtype_row *row = find(dtype);
  return row == NULL ? NULL : row->name;
}

vt_status vt_dtype_get_size(vt_dtype dtype, size_t *out_bytes) {
  const dtype_row *row = find(dtype);
  VT_CHECK_ARG(row != NULL, "dtype %d is unknown", dtype);
  VT_CHECK_ARG(out_bytes != NULL, "out_bytes is NULL");
  VT_CHECK_ARG(row->elements == 1, "dtype %s stores blocks of %zu elements and has no element size", row->name, row->elements);
  *out_bytes = row->bytes;
  return VT_OK;
}

vt_status vt_dtype_get_block(vt_dtype dtype, size_t *out_elements, size_t *out_bytes) {
  const dtype_row *row = find(dtype);
  VT_CHECK_ARG(row != NULL, "dtype %d is unknown", dtype);
  VT_CHECK_ARG(out_elements != NULL, "out_elements is NULL");
  VT_CHECK_ARG(out_bytes != NULL, "out_bytes is NULL");
  *out_elements = row->elements;
  *out_bytes = row->bytes;
  return VT_OK;
}

vt_status vt_dtype_get_row_bytes(vt_dtype dtype, int64_t elements, size_t *out_bytes) {
  const dtype_row *row = find(dtype);
  VT_CHECK_ARG(row != NULL, "dtype %d is unknown", dtype);
  VT_CHECK_ARG(out_bytes != NULL, "out_bytes is NULL");
  VT_CHECK_ARG(elements >= 0, "a row of %lld elements is negative", (long long)elements);
  VT_CHECK_ARG((size_t)elements % row->elements == 0, "a row of %lld elements is not in whole blocks of %zu (%s)",
               (long long)elements, row->elements, row->name);
  size_t bytes;
  VT_CHECK_ARG(!vt__mul_overflows((size_t)elements / row->elements, row->bytes, &bytes),
               "the bytes of %lld elements of %s overflow", (long long)elements, row->name);
  *out_bytes = bytes;
  return VT_OK;
}

vt_status vt_dtype_find_ggml(int32_t ggml_type, vt_dtype *out_dtype) {
  VT_CHECK_ARG(out_dtype != NULL, "out_dtype is NULL");
  for (vt_dtype dtype = 0; dtype < VT_DTYPE_COUNT; dtype++) {
    if (table[dtype].ggml == ggml_type && ggml_type >= 0) {
      *out_dtype = dtype;
      return VT_OK;
    }
  }
  return vt__fail(VT_ERR_NOT_FOUND, "ggml type %d is not a block type of this library", ggml_type);
}
