// comm_model.c: the element-wise model and its inputs.
#include "comm_model.h"

#include <math.h>
#include <string.h>

const vt_dtype model_reducible[MODEL_REDUCIBLE_COUNT] = {VT_DTYPE_F32, VT_DTYPE_F64, VT_DTYPE_F16, VT_DTYPE_BF16,
                                                         VT_DTYPE_I8,  VT_DTYPE_U8,  VT_DTYPE_I32, VT_DTYPE_I64};

typedef struct model_shape {
  size_t elements;
  size_t bytes;
} model_shape;

static const model_shape shapes[VT_DTYPE_COUNT] = {
    [VT_DTYPE_F32] = {1, 4},      [VT_DTYPE_F16] = {1, 2},      [VT_DTYPE_BF16] = {1, 2},     [VT_DTYPE_I8] = {1, 1},
    [VT_DTYPE_I32] = {1, 4},      [VT_DTYPE_I64] = {1, 8},      [VT_DTYPE_Q4_0] = {32, 18},   [VT_DTYPE_Q8_0] = {32, 34},
    [VT_DTYPE_Q3_K] = {256, 110}, [VT_DTYPE_Q4_K] = {256, 144}, [VT_DTYPE_Q5_K] = {256, 176}, [VT_DTYPE_Q6_K] = {256, 210},
    [VT_DTYPE_Q8_K] = {256, 292}, [VT_DTYPE_F64] = {1, 8},      [VT_DTYPE_U8] = {1, 1},       [VT_DTYPE_F8_E4M3] = {1, 1},
    [VT_DTYPE_F8_E5M2] = {1, 1},
};

size_t model_bytes(vt_dtype dtype, size_t count) {
  return count / shapes[dtype].elements * shapes[dtype].bytes;
}

size_t model_block(vt_dtype dtype) {
  return shapes[dtype].elements;
}

// Layout of a binary floating-point type: sign, exponent, fraction, from the top.
typedef struct model_float {
  int exponent_bits;
  int fraction_bits;
} model_float;

// exponent_bits is 0 for what isn't a floating-point type.
static model_float float_layout(vt_dtype dtype) {
  switch (dtype) {
    case VT_DTYPE_F16:
      return (model_float){5, 10};
    case VT_DTYPE_BF16:
      return (model_float){8, 7};
    case VT_DTYPE_F32:
      return (model_float){8, 23};
    case VT_DTYPE_F64:
      return (model_float){11, 52};
    default:
      return (model_float){0, 0};
  }
}

static uint64_t low_mask(int bits) {
  return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t load_bits(const void *base, size_t bytes, size_t index) {
  const unsigned char *at = (const unsigned char *)base + bytes * index;
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes; i++) {
    bits |= (uint64_t)at[i] << (8 * i);
  }
  return bits;
}

static void store_bits(void *base, size_t bytes, size_t index, uint64_t bits) {
  unsigned char *at = (unsigned char *)base + bytes * index;
  for (size_t i = 0; i < bytes; i++) {
    at[i] = (unsigned char)(bits >> (8 * i));
  }
}

static bool bits_are_nan(model_float f, uint64_t bits) {
  uint64_t exponent = (bits >> f.fraction_bits) & low_mask(f.exponent_bits);
  return exponent == low_mask(f.exponent_bits) && (bits & low_mask(f.fraction_bits)) != 0;
}

// The quiet NaN, positive, without payload.
static uint64_t canonical_nan(model_float f) {
  return (low_mask(f.exponent_bits) << f.fraction_bits) | (UINT64_C(1) << (f.fraction_bits - 1));
}

float model_half_to_f32(vt_dtype dtype, uint16_t bits) {
  model_float f = float_layout(dtype);
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  int exponent = (int)((bits >> f.fraction_bits) & low_mask(f.exponent_bits));
  double fraction = (double)(bits & low_mask(f.fraction_bits));
  double magnitude;
  if (exponent == (int)low_mask(f.exponent_bits)) {
    magnitude = fraction > 0 ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    magnitude = ldexp(fraction, 1 - bias - f.fraction_bits);
  } else {
    magnitude = ldexp(fraction + ldexp(1.0, f.fraction_bits), exponent - bias - f.fraction_bits);
  }
  return (float)((bits >> 15) != 0 ? -magnitude : magnitude);
}

uint16_t model_half_from_f32(vt_dtype dtype, float value) {
  model_float f = float_layout(dtype);
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  uint16_t sign = (uint16_t)(signbit(value) ? 0x8000 : 0);
  uint16_t infinity = (uint16_t)(low_mask(f.exponent_bits) << f.fraction_bits);
  double magnitude = fabs((double)value);
  if (isnan(magnitude)) {
    return (uint16_t)(sign | canonical_nan(f));
  }
  if (magnitude <= 0.0) {
    return sign;
  }
  int exponent = isinf(magnitude) ? bias + 1 : ilogb(magnitude);
  if (exponent > bias) {
    return sign | infinity;
  }
  exponent = exponent < 1 - bias ? 1 - bias : exponent;
  // In units of the last place; rint() rounds ties to even. A carry into the next exponent needs no special case, since the
  // encodings of neighbours are consecutive numbers.
  double units = rint(ldexp(magnitude, f.fraction_bits - exponent));
  uint64_t hidden = UINT64_C(1) << f.fraction_bits;
  uint64_t bits = (uint64_t)units + (uint64_t)(exponent + bias - 1) * hidden;
  return (uint16_t)(sign | (bits > infinity ? infinity : bits));
}

// Orders numbers as IEEE 754-2019 minimum and maximum do: -0 below +0. Not for NaN.
static int64_t order_key(uint64_t bits, size_t bytes) {
  uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
  return (bits & sign) != 0 ? -(int64_t)(bits & (sign - 1)) - 1 : (int64_t)bits;
}

static uint64_t float_extreme(vt_dtype dtype, vt_reduce_op op, int32_t world, const uint64_t *in) {
  size_t bytes = shapes[dtype].bytes;
  uint64_t best = in[0];
  for (int32_t r = 0; r < world; r++) {
    if (bits_are_nan(float_layout(dtype), in[r])) {
      return canonical_nan(float_layout(dtype));
    }
    int64_t key = order_key(in[r], bytes);
    int64_t best_key = order_key(best, bytes);
    if (op == VT_REDUCE_MAX ? key > best_key : key < best_key) {
      best = in[r];
    }
  }
  return best;
}

static uint64_t f64_arithmetic(vt_reduce_op op, int32_t world, const uint64_t *in) {
  volatile double total = 0;
  for (int32_t r = 0; r < world; r++) {
    double value;
    memcpy(&value, &in[r], sizeof value);
    total = r == 0 ? value : op == VT_REDUCE_PROD ? total * value : total + value;
  }
  double result = op == VT_REDUCE_AVG ? total / (double)world : total;
  uint64_t bits;
  memcpy(&bits, &result, sizeof bits);
  return bits;
}

// f32, and the half types through f32.
static uint64_t f32_arithmetic(vt_dtype dtype, vt_reduce_op op, int32_t world, const uint64_t *in) {
  volatile float total = 0;
  for (int32_t r = 0; r < world; r++) {
    float value;
    if (dtype == VT_DTYPE_F32) {
      uint32_t word = (uint32_t)in[r];
      memcpy(&value, &word, sizeof value);
    } else {
      value = model_half_to_f32(dtype, (uint16_t)in[r]);
    }
    total = r == 0 ? value : op == VT_REDUCE_PROD ? total * value : total + value;
  }
  float result = op == VT_REDUCE_AVG ? total / (float)world : total;
  if (dtype != VT_DTYPE_F32) {
    return model_half_from_f32(dtype, result);
  }
  uint32_t bits;
  memcpy(&bits, &result, sizeof bits);
  return bits;
}

static uint64_t reduce_float(vt_dtype dtype, vt_reduce_op op, int32_t world, const uint64_t *in) {
  if (op == VT_REDUCE_MAX || op == VT_REDUCE_MIN) {
    return float_extreme(dtype, op, world, in);
  }
  uint64_t bits = dtype == VT_DTYPE_F64 ? f64_arithmetic(op, world, in) : f32_arithmetic(dtype, op, world, in);
  return bits_are_nan(float_layout(dtype), bits) ? canonical_nan(float_layout(dtype)) : bits;
}

// The number that `bits` stand for, as wide as it gets. u8 is the one unsigned type.
static int64_t integer_value(vt_dtype dtype, uint64_t bits) {
  switch (dtype) {
    case VT_DTYPE_U8:
      return (int64_t)(bits & 0xff);
    case VT_DTYPE_I8:
      return (int8_t)(uint8_t)bits;
    case VT_DTYPE_I32:
      return (int32_t)(uint32_t)bits;
    default:
      return (int64_t)bits;
  }
}

static uint64_t reduce_integer(vt_dtype dtype, vt_reduce_op op, int32_t world, const uint64_t *in) {
  uint64_t total = in[0];
  for (int32_t r = 1; r < world; r++) {
    bool greater = integer_value(dtype, in[r]) > integer_value(dtype, total);
    if (op == VT_REDUCE_MAX || op == VT_REDUCE_MIN) {
      total = greater == (op == VT_REDUCE_MAX) ? in[r] : total;
    } else {
      total = op == VT_REDUCE_PROD ? total * in[r] : total + in[r];
    }
  }
  return op == VT_REDUCE_AVG ? (uint64_t)(integer_value(dtype, total) / world) : total;
}

void model_all_reduce(vt_dtype dtype, vt_reduce_op op, int32_t world, const void *const *inputs, size_t count, void *out) {
  size_t bytes = shapes[dtype].bytes;
  if (world == 1) {
    if (count != 0) {
      memcpy(out, inputs[0], bytes * count);
    }
    return;
  }
  bool is_float = float_layout(dtype).exponent_bits != 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t in[64] = {0};
    for (int32_t r = 0; r < world; r++) {
      in[r] = load_bits(inputs[r], bytes, i);
    }
    store_bits(out, bytes, i, is_float ? reduce_float(dtype, op, world, in) : reduce_integer(dtype, op, world, in));
  }
}

static uint64_t scramble(uint64_t x) {
  x ^= x >> 31;
  x *= UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ (x >> 32);
}

// NaNs with payloads and signs (quiet and signalling), infinities, zeroes, the largest and the smallest numbers.
static uint64_t float_special(model_float f, uint64_t random) {
  uint64_t infinity = low_mask(f.exponent_bits) << f.fraction_bits;
  uint64_t sign = (random >> 8 & 1) << (f.exponent_bits + f.fraction_bits);
  uint64_t one = low_mask(f.exponent_bits - 1) << f.fraction_bits;
  switch (random % 10) {
    case 0:
      return sign | infinity | (UINT64_C(1) << (f.fraction_bits - 1)) | (random >> 9 & 0x3f);
    case 1:
      return sign | infinity | 1;
    case 2:
      return sign | infinity;
    case 3:
    case 4:
      return sign;
    case 5:
      return sign | (infinity - 1);
    case 6:
      return sign | 1;
    case 7:
      return sign | (UINT64_C(1) << f.fraction_bits);
    default:
      return sign | one;
  }
}

static uint64_t float_input(model_float f, uint64_t random, int32_t rank, size_t index) {
  int bits = 1 + f.exponent_bits + f.fraction_bits;
  uint64_t sign = UINT64_C(1) << (bits - 1);
  uint64_t fraction = random >> 11 & low_mask(f.fraction_bits);
  uint64_t bias = low_mask(f.exponent_bits - 1);
  switch (index % 16) {
    case 0:
      return float_special(f, random >> 20);
    case 1:
      return random & low_mask(bits);
    case 2:  // the largest numbers, both signs: sums leave the range and come back
      return (rank % 4 < 2 ? 0 : sign) | ((low_mask(f.exponent_bits) << f.fraction_bits) - 1 - (random & 1));
    case 3:  // subnormals
      return (random & sign) | fraction;
    case 4:  // ties: one, and then half units in its last place
      return (rank == 0 ? bias : bias - 1 - (uint64_t)f.fraction_bits) << f.fraction_bits;
    case 5:  // zeroes of both signs
      return random >> 7 & 1 ? sign : 0;
    default:  // between 2^-4 and 2^4, all fraction bits, both signs
      return (random << 13 & sign) | (bias - 4 + (random >> 3) % 8) << f.fraction_bits | fraction;
  }
}

void model_fill(vt_dtype dtype, uint64_t seed, int32_t rank, size_t count, void *out) {
  model_float f = float_layout(dtype);
  uint64_t base = scramble(seed * 1000003 + (uint64_t)dtype * 257 + (uint64_t)rank + 1);
  if (f.exponent_bits == 0) {
    size_t bytes = model_bytes(dtype, count);
    for (size_t i = 0; i < bytes; i++) {
      ((unsigned char *)out)[i] = (unsigned char)(scramble(base + i) >> 17);
    }
    return;
  }
  for (size_t i = 0; i < count; i++) {
    store_bits(out, shapes[dtype].bytes, i, float_input(f, scramble(base + i), rank, i));
  }
}
