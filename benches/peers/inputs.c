// inputs.c: see inputs.h.
#include "inputs.h"

#include <string.h>

// Small whole numbers: sums of HARNESS_MAX_WORLD of them are exact in bf16. Moved blocks don't look like their neighbours.
static inline uint32_t varying(size_t i, size_t call) {
  uint32_t low = (uint32_t)i;
  return (low + (low >> 9) + (uint32_t)call) & 7;
}

static inline float value(int rank, size_t i, size_t call) {
  return (float)(int32_t)(varying(i, call) + (uint32_t)rank + 1);
}

static float sum_of_values(int world, size_t i, size_t call) {
  return (float)(world * (int)varying(i, call) + world * (world + 1) / 2);
}

static inline uint16_t to_bf16(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof(bits));
  return (uint16_t)(bits >> 16);  // exact: the low half is zero
}

static float load(const void *array, bool bf16, size_t i) {
  if (!bf16) {
    return ((const float *)array)[i];
  }
  uint32_t bits = (uint32_t)((const uint16_t *)array)[i] << 16;
  float number;
  memcpy(&number, &bits, sizeof(number));
  return number;
}

static bool moves(const harness_rank *rank) {
  harness_op op = rank->row.op;
  return op < OP_PING_PONG || (op == OP_PING_PONG && rank->rank < 2);
}

void inputs_fill(const harness_rank *rank, size_t call) {
  size_t count = rank->row.op == OP_ALL_GATHER ? rank->row.part : rank->row.count;
  if (!moves(rank)) {
    return;
  }
  if (rank->row.bf16) {
    uint16_t *out = rank->send;
    for (size_t i = 0; i < count; i++) {
      out[i] = to_bf16(value(rank->rank, i, call));
    }
  } else {
    float *out = rank->send;
    for (size_t i = 0; i < count; i++) {
      out[i] = value(rank->rank, i, call);
    }
  }
}

static float expected(const harness_rank *rank, size_t i, size_t call) {
  size_t part = rank->row.part;
  size_t own = (size_t)rank->rank * part;
  switch (rank->row.op) {
    case OP_ALL_REDUCE:
      return sum_of_values(rank->world, i, call);
    case OP_ALL_GATHER:
      return value((int)(i / part), i % part, call);
    case OP_REDUCE_SCATTER:
      return sum_of_values(rank->world, own + i, call);
    case OP_ALL_TO_ALL:
      return value((int)(i / part), own + i % part, call);
    case OP_PING_PONG:
      return value(1 - rank->rank, i, call);
    default:
      return value(0, i, call);
  }
}

bool inputs_correct(const harness_rank *rank, size_t call) {
  const harness_case *row = &rank->row;
  size_t count = row->op == OP_REDUCE_SCATTER                           ? row->part
                 : row->op == OP_ALL_GATHER || row->op == OP_ALL_TO_ALL ? row->part * (size_t)rank->world
                                                                        : row->count;
  bool correct = true;
  for (size_t i = 0; moves(rank) && i < count; i++) {
    correct = correct && load(rank->recv, row->bf16, i) == expected(rank, i, call);
  }
  return correct;
}
