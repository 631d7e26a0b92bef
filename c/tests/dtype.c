// dtype.c: the table of element types, and conversions against an independent model.
#include "vt_test.h"

#include <math.h>

static const struct {
  vt_dtype dtype;
  int32_t number;
  const char *name;
  size_t elements;
  size_t bytes;
  int32_t ggml;  // -1: the number does not map
} table[] = {{VT_DTYPE_F32, 0, "f32", 1, 4, -1},         {VT_DTYPE_F16, 1, "f16", 1, 2, -1},
             {VT_DTYPE_BF16, 2, "bf16", 1, 2, -1},       {VT_DTYPE_I8, 3, "i8", 1, 1, -1},
             {VT_DTYPE_I32, 4, "i32", 1, 4, -1},         {VT_DTYPE_I64, 5, "i64", 1, 8, -1},
             {VT_DTYPE_Q4_0, 6, "q4_0", 32, 18, 2},      {VT_DTYPE_Q8_0, 7, "q8_0", 32, 34, 8},
             {VT_DTYPE_Q3_K, 8, "q3_K", 256, 110, 11},   {VT_DTYPE_Q4_K, 9, "q4_K", 256, 144, 12},
             {VT_DTYPE_Q5_K, 10, "q5_K", 256, 176, 13},  {VT_DTYPE_Q6_K, 11, "q6_K", 256, 210, 14},
             {VT_DTYPE_Q8_K, 12, "q8_K", 256, 292, 15},  {VT_DTYPE_F64, 13, "f64", 1, 8, -1},
             {VT_DTYPE_U8, 14, "u8", 1, 1, -1},          {VT_DTYPE_F8_E4M3, 15, "f8_e4m3", 1, 1, -1},
             {VT_DTYPE_F8_E5M2, 16, "f8_e5m2", 1, 1, -1}};

#define TYPES (sizeof(table) / sizeof(table[0]))

static void dtype_table_is_as_published(vt_case *c) {
  EXPECT_EQ(c, TYPES, VT_DTYPE_COUNT);
  for (size_t i = 0; i < TYPES; i++) {
    EXPECT_EQ(c, table[i].number, table[i].dtype);
    const char *name = vt_dtype_get_name(table[i].dtype);
    REQUIRE_TRUE(c, name != NULL && strcmp(name, table[i].name) == 0);
    size_t elements = 0;
    size_t bytes = 0;
    EXPECT_OK(c, vt_dtype_get_block(table[i].dtype, &elements, &bytes));
    EXPECT_EQ(c, table[i].elements, elements);
    EXPECT_EQ(c, table[i].bytes, bytes);
    if (table[i].elements == 1) {
      EXPECT_OK(c, vt_dtype_get_size(table[i].dtype, &bytes));
      EXPECT_EQ(c, table[i].bytes, bytes);
    } else {
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, table[i].name, vt_dtype_get_size(table[i].dtype, &bytes));
    }
    EXPECT_OK(c, vt_dtype_get_row_bytes(table[i].dtype, (int64_t)(3 * table[i].elements), &bytes));
    EXPECT_EQ(c, 3 * table[i].bytes, bytes);
    EXPECT_OK(c, vt_dtype_get_row_bytes(table[i].dtype, 0, &bytes));
    EXPECT_EQ(c, 0, bytes);
  }
}

static void dtype_refusals_name_the_value(vt_case *c) {
  size_t a = 1;
  size_t b = 1;
  static const vt_dtype unknown[] = {-1, VT_DTYPE_COUNT, INT32_MAX, INT32_MIN};
  static const char *const parts[] = {"-1", "17", "2147483647", "-2147483648"};
  for (size_t i = 0; i < 4; i++) {
    EXPECT_TRUE(c, vt_dtype_get_name(unknown[i]) == NULL);
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, parts[i], vt_dtype_get_size(unknown[i], &a));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, parts[i], vt_dtype_get_block(unknown[i], &a, &b));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, parts[i], vt_dtype_get_row_bytes(unknown[i], 1, &a));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, parts[i], vt_dtype_convert(&a, unknown[i], &b, VT_DTYPE_F32, 1));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, parts[i], vt_dtype_convert(&a, VT_DTYPE_F32, &b, unknown[i], 1));
  }
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-5", vt_dtype_get_row_bytes(VT_DTYPE_F32, -5, &a));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "33", vt_dtype_get_row_bytes(VT_DTYPE_Q4_0, 33, &a));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overflow", vt_dtype_get_row_bytes(VT_DTYPE_I64, INT64_MAX, &a));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_bytes", vt_dtype_get_size(VT_DTYPE_F32, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_bytes", vt_dtype_get_row_bytes(VT_DTYPE_F32, 1, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_elements", vt_dtype_get_block(VT_DTYPE_F32, NULL, &b));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_bytes", vt_dtype_get_block(VT_DTYPE_F32, &a, NULL));
  EXPECT_EQ(c, 1, a);
  EXPECT_EQ(c, 1, b);
}

static void ggml_numbers_map_to_block_types_only(vt_case *c) {
  for (int32_t ggml = -2; ggml < 40; ggml++) {
    vt_dtype expected = -1;
    for (size_t i = 0; i < TYPES; i++) {
      expected = table[i].ggml == ggml && ggml >= 0 ? table[i].dtype : expected;
    }
    vt_dtype found = -7;
    EXPECT_STATUS(c, expected < 0 ? VT_ERR_NOT_FOUND : VT_OK, vt_dtype_find_ggml(ggml, &found));
    EXPECT_EQ(c, expected < 0 ? -7 : expected, found);
  }
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_dtype", vt_dtype_find_ggml(2, NULL));
}

// The model: exact arithmetic in double, rounded to nearest even by hand. Independent of the bit tricks of the library.

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

// A format of 1 + exponent_bits + fraction_bits bits as IEEE 754 lays them out.
static double model_decode(uint32_t bits, int exponent_bits, int fraction_bits) {
  uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  int exponent = (int)((bits >> fraction_bits) & ((1u << exponent_bits) - 1));
  int bias = (1 << (exponent_bits - 1)) - 1;
  double sign = (bits >> (exponent_bits + fraction_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  }
  return exponent == 0 ? sign * ldexp(fraction, 1 - bias - fraction_bits)
                       : sign * ldexp(fraction + ldexp(1.0, fraction_bits), exponent - bias - fraction_bits);
}

// Finds the nearest value of a format by stepping: `value` is not a NaN.
static uint32_t model_encode(float value, int exponent_bits, int fraction_bits) {
  uint32_t sign = (bits_of(value) >> 31) << (exponent_bits + fraction_bits);
  uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  double x = fabs((double)value);
  uint32_t low = 0;
  uint32_t high = infinity;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (model_decode(middle, exponent_bits, fraction_bits) <= x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  double below = model_decode(low, exponent_bits, fraction_bits);
  // Overflow rounds as if the exponent range went on: infinity stands at the next power of two.
  double above =
      high == infinity ? 2 * ldexp(1.0, (1 << (exponent_bits - 1)) - 1) : model_decode(high, exponent_bits, fraction_bits);
  if (isinf(x)) {
    return sign | infinity;
  }
  double to_low = x - below;
  double to_high = above - x;
  return sign | (to_low < to_high || (to_low == to_high && (low & 1) == 0) ? low : high);
}

static void golden_conversions_hold(vt_case *c) {
  EXPECT_EQ(c, 0x3c00, vt_f16_from_f32(1.0f));
  EXPECT_EQ(c, 0xc000, vt_f16_from_f32(-2.0f));
  EXPECT_TRUE(c, fabs((double)vt_f16_to_f32(0x3555) - 0.333252) < 1e-6);
  EXPECT_TRUE(c, vt_f16_to_f32(vt_f16_from_f32(65504.0f)) == 65504.0f);
  EXPECT_TRUE(c, vt_f16_to_f32(vt_f16_from_f32(-65504.0f)) == -65504.0f);
  EXPECT_EQ(c, 0x7c00, vt_f16_from_f32(1e10f));
  EXPECT_EQ(c, 0x7bff, vt_f16_from_f32(65519.99f));
  EXPECT_EQ(c, 0x7c00, vt_f16_from_f32(65520.0f));
  EXPECT_EQ(c, 0x0001, vt_f16_from_f32(5.9604645e-8f));
  EXPECT_EQ(c, 0x0000, vt_f16_from_f32(2.9802322e-8f));
  EXPECT_EQ(c, 0x8000, vt_f16_from_f32(-0.0f));
  EXPECT_EQ(c, 0x3f80, vt_bf16_from_f32(1.0f));
  EXPECT_EQ(c, 0x3f80, vt_bf16_from_f32(1.00390625f));
  EXPECT_EQ(c, 0x3f81, vt_bf16_from_f32(1.00390637f));
  EXPECT_EQ(c, 0x7f80, vt_bf16_from_f32(float_of(0x7f7fffff)));
}

static void every_half_round_trips(vt_case *c) {
  for (uint32_t bits = 0; bits < 65536 && vt_test_is_clean(c); bits++) {
    double f16 = model_decode(bits, 5, 10);
    double bf16 = model_decode(bits, 8, 7);
    float got_f16 = vt_f16_to_f32((uint16_t)bits);
    float got_bf16 = vt_bf16_to_f32((uint16_t)bits);
    uint32_t quiet_f16 = isnan(f16) ? bits | 0x0200 : bits;
    uint32_t quiet_bf16 = isnan(bf16) ? bits | 0x0040 : bits;
    EXPECT_TRUE(c, isnan(f16) ? isnan(got_f16) && (bits_of(got_f16) & 0x400000) != 0 : (double)got_f16 == f16);
    EXPECT_TRUE(c, isnan(bf16) ? isnan(got_bf16) && (bits_of(got_bf16) & 0x400000) != 0 : (double)got_bf16 == bf16);
    EXPECT_EQ(c, bits >> 15, bits_of(got_f16) >> 31);
    EXPECT_EQ(c, quiet_f16, vt_f16_from_f32(got_f16));
    EXPECT_EQ(c, quiet_bf16, vt_bf16_from_f32(got_bf16));
  }
}

static void expect_conversion(vt_case *c, uint32_t bits) {
  float value = float_of(bits);
  if (isnan(value)) {
    uint16_t f16 = vt_f16_from_f32(value);
    uint16_t bf16 = vt_bf16_from_f32(value);
    EXPECT_TRUE(c, (f16 & 0x7e00) == 0x7e00 && f16 >> 15 == bits >> 31);
    EXPECT_TRUE(c, (bf16 & 0x7fc0) == 0x7fc0 && bf16 >> 15 == bits >> 31);
    return;
  }
  EXPECT_EQ(c, model_encode(value, 5, 10), vt_f16_from_f32(value));
  EXPECT_EQ(c, model_encode(value, 8, 7), vt_bf16_from_f32(value));
}

static void f32_samples_convert_as_the_model_does(vt_case *c) {
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  int samples = vt_test_is_slow() ? 20000 : 200000;
  for (int i = 0; i < samples && vt_test_is_clean(c); i++) {
    expect_conversion(c, (uint32_t)vt_test_random(&rng));
  }
  // Around every boundary between two halves: the tie and its neighbours, in the range where f16 has values at all.
  for (uint32_t half = 0; half < 0x7c00 && vt_test_is_clean(c); half += vt_test_is_slow() ? 97 : 7) {
    float tie = (float)((model_decode(half, 5, 10) + model_decode(half + 1 == 0x7c00 ? half : half + 1, 5, 10)) / 2);
    for (uint32_t near = 0; near < 3; near++) {
      expect_conversion(c, bits_of(tie) + near - 1);
      expect_conversion(c, (bits_of(tie) + near - 1) | 0x80000000u);
    }
  }
  static const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7f800001, 0xffc12345, 0x7fffffff,
                                     0x7f7fffff, 0x00000001, 0x007fffff, 0x00800000, 0x33000000, 0x33000001, 0x477fefff};
  for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
    expect_conversion(c, special[i]);
  }
}

static void bulk_conversion_equals_single_conversion(vt_case *c) {
  enum { COUNT = 1003 };
  vt_test_rng rng = vt_test_rng_begin(c, 1);
  // Odd byte addresses are fine.
  unsigned char *f32 = vt_test_guarded_alloc_at(c, 4 * COUNT, 1);
  unsigned char *f16 = vt_test_guarded_alloc_at(c, 2 * COUNT, 3);
  unsigned char *bf16 = vt_test_guarded_alloc_at(c, 2 * COUNT, 5);
  unsigned char *back = vt_test_guarded_alloc_at(c, 4 * COUNT, 7);
  vt_test_random_fill(&rng, f32, 4 * COUNT);
  EXPECT_OK(c, vt_dtype_convert(f16, VT_DTYPE_F16, f32, VT_DTYPE_F32, COUNT));
  EXPECT_OK(c, vt_dtype_convert(bf16, VT_DTYPE_BF16, f32, VT_DTYPE_F32, COUNT));
  EXPECT_OK(c, vt_dtype_convert(back, VT_DTYPE_F32, f16, VT_DTYPE_F16, COUNT));
  for (size_t i = 0; i < COUNT && vt_test_is_clean(c); i++) {
    float value;
    uint16_t half;
    uint16_t brain;
    float returned;
    memcpy(&value, f32 + 4 * i, 4);
    memcpy(&half, f16 + 2 * i, 2);
    memcpy(&brain, bf16 + 2 * i, 2);
    memcpy(&returned, back + 4 * i, 4);
    EXPECT_EQ(c, vt_f16_from_f32(value), half);
    EXPECT_EQ(c, vt_bf16_from_f32(value), brain);
    EXPECT_EQ(c, bits_of(vt_f16_to_f32(half)), bits_of(returned));
  }
  EXPECT_OK(c, vt_dtype_convert(bf16, VT_DTYPE_BF16, f16, VT_DTYPE_F16, COUNT));
  uint16_t half;
  uint16_t brain;
  memcpy(&half, f16 + 2 * 500, 2);
  memcpy(&brain, bf16 + 2 * 500, 2);
  EXPECT_EQ(c, vt_bf16_from_f32(vt_f16_to_f32(half)), brain);
  EXPECT_OK(c, vt_dtype_convert(back, VT_DTYPE_F32, f32, VT_DTYPE_F32, COUNT));
  EXPECT_BYTES(c, f32, back, 4 * COUNT);
}

static void bulk_conversion_refuses_bad_arguments(vt_case *c) {
  uint32_t words[4] = {0};
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "dst", vt_dtype_convert(NULL, VT_DTYPE_F32, words, VT_DTYPE_F16, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "src", vt_dtype_convert(words, VT_DTYPE_F32, NULL, VT_DTYPE_F16, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap", vt_dtype_convert(words, VT_DTYPE_F32, words, VT_DTYPE_F16, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overflow", vt_dtype_convert(words, VT_DTYPE_F32, words, VT_DTYPE_F16, SIZE_MAX / 2));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_dtype_convert(words, VT_DTYPE_I32, words + 2, VT_DTYPE_F32, 1));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_dtype_convert(words, VT_DTYPE_F32, words + 2, VT_DTYPE_Q4_0, 1));
  EXPECT_OK(c, vt_dtype_convert(NULL, VT_DTYPE_F32, NULL, VT_DTYPE_F16, 0));
}

const vt_test_case vt_cases_dtype[] = {{"dtype_table_is_as_published", ONCE, dtype_table_is_as_published},
                                       {"dtype_refusals_name_the_value", ONCE, dtype_refusals_name_the_value},
                                       {"ggml_numbers_map_to_block_types_only", ONCE, ggml_numbers_map_to_block_types_only},
                                       {"golden_conversions_hold", ONCE, golden_conversions_hold},
                                       {"every_half_round_trips", ONCE, every_half_round_trips},
                                       {"f32_samples_convert_as_the_model_does", ONCE, f32_samples_convert_as_the_model_does},
                                       {"bulk_conversion_equals_single_conversion", ONCE, bulk_conversion_equals_single_conversion},
                                       {"bulk_conversion_refuses_bad_arguments", ONCE, bulk_conversion_refuses_bad_arguments},
                                       VT_TEST_END};
