// comm_model.h: what collectives promise to compute, written as simply as possible and apart from the library.
//
// Elements are handled one at a time, in rank order, in the widest simple form: nothing here is fast, shares code with the library
// or knows how it works. It also makes the inputs, which hold what reductions most often get wrong.
#ifndef VT_TESTS_COMM_MODEL_H
#define VT_TESTS_COMM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vllm_vt/comm.h"

// The types that can be reduced.
#define MODEL_REDUCIBLE_COUNT 8
extern const vt_dtype model_reducible[MODEL_REDUCIBLE_COUNT];

// Bytes of `count` elements; block types in whole blocks.
size_t model_bytes(vt_dtype dtype, size_t count);

// Elements of one block: 1 for plain types.
size_t model_block(vt_dtype dtype);

// Writes the input of `rank`: plain random numbers, NaNs with payloads and signs, infinities, zeroes of both signs, subnormals,
// ties and values whose sums overflow. Elements are a function of (dtype, seed, rank, index). `out` may be any address.
void model_fill(vt_dtype dtype, uint64_t seed, int32_t rank, size_t count, void *out);

// Computes what every rank gets: element by element over `world` inputs, in rank order. Addresses may be odd.
void model_all_reduce(vt_dtype dtype, vt_reduce_op op, int32_t world, const void *const *inputs, size_t count, void *out);

// The half conversions that the model itself uses.
float model_half_to_f32(vt_dtype dtype, uint16_t bits);
uint16_t model_half_from_f32(vt_dtype dtype, float value);

#endif
