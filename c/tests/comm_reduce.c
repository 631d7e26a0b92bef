// comm_reduce.c: all_reduce gives the promised bits on every rank.
//
// Every (world, type) is one case that goes through counts, operations, in and out of place, aligned and odd addresses.
#include <math.h>

#include "comm_model.h"
#include "comm_rig.h"

#define LARGE_COUNT ((size_t)1024 * 1024 + 1)
#define SMALL_MAX 1000

static const size_t small_counts[] = {0, 1, 63, 64, 65, SMALL_MAX};

typedef struct reduce_run {
  comm_rig *rig;
  vt_dtype dtype;
  void *inputs[RIG_MAX_WORLD];
  void *expected[VT_REDUCE_COUNT];
  comm_space send[RIG_MAX_WORLD];
  comm_space recv[RIG_MAX_WORLD];
  int32_t failed[RIG_MAX_WORLD];  // a rank that failed goes on calling, for its peers, and looks no further
} reduce_run;

// What the ranks are to get from their inputs.
static void reduce_expect(reduce_run *run, size_t count, int32_t op_count) {
  for (vt_reduce_op op = 0; op < op_count; op++) {
    model_all_reduce(run->dtype, op, run->rig->world, (const void *const *)run->inputs, count, run->expected[op]);
  }
}

static reduce_run reduce_begin(vt_case *c, comm_rig *rig, vt_dtype dtype, size_t count, int32_t op_count) {
  int32_t world = rig->world;
  reduce_run run = {.rig = rig, .dtype = dtype};
  size_t bytes = model_bytes(dtype, count);
  for (int32_t r = 0; r < world; r++) {
    run.inputs[r] = vt_test_guarded_alloc(c, bytes);
    model_fill(dtype, vt_test_seed(c), r, count, run.inputs[r]);
    run.send[r] = space_begin(c, bytes);
    run.recv[r] = space_begin(c, bytes);
  }
  for (vt_reduce_op op = 0; op < op_count; op++) {
    run.expected[op] = vt_test_guarded_alloc(c, bytes);
  }
  reduce_expect(&run, count, op_count);
  return run;
}

// One call of one rank.
typedef struct reduce_call {
  size_t count;
  vt_reduce_op op;
  int32_t in_place;
  size_t misalign;
} reduce_call;

static void reduce_once(reduce_run *run, int32_t rank, reduce_call call) {
  comm_rig *rig = run->rig;
  vt_case *c = rig->c;
  size_t bytes = model_bytes(run->dtype, call.count);
  void *recv = space_place(&run->recv[rank], bytes, call.misalign);
  void *send = call.in_place ? recv : space_place(&run->send[rank], bytes, call.misalign * 3 % 64);
  memcpy(send, run->inputs[rank], bytes);
  int32_t no_array = call.count == 0 && call.misalign != 0;
  vt_status status = vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], no_array ? NULL : send, no_array ? NULL : recv,
                                        call.count, run->dtype, call.op, NULL);
  status = rig_finish(rig, rank, status);
  if (run->failed[rank]) {
    return;
  }
  int ok = EXPECT_OK(c, status) && EXPECT_BYTES(c, run->expected[call.op], recv, bytes) && space_check(c, &run->recv[rank]);
  if (ok && !call.in_place) {
    ok = EXPECT_BYTES(c, run->inputs[rank], send, bytes) && space_check(c, &run->send[rank]);
  }
  if (!ok) {
    run->failed[rank] = 1;
    FAIL_CASE(c, "rank %d of %d: %s, op %d, count %zu, in place %d, address off by %zu", rank, rig->world,
              vt_dtype_get_name(run->dtype), call.op, call.count, call.in_place, call.misalign);
  }
}

static void reduce_small_rank(vt_case *c, int32_t rank, void *arg) {
  (void)c;
  for (size_t n = 0; n < sizeof small_counts / sizeof small_counts[0]; n++) {
    for (vt_reduce_op op = 0; op < VT_REDUCE_COUNT; op++) {
      for (int32_t variant = 0; variant < 4; variant++) {
        reduce_once(arg, rank, (reduce_call){small_counts[n], op, variant & 1, (size_t)variant >> 1});
      }
    }
  }
}

static void reduce_small(vt_case *c, int32_t world, vt_dtype dtype) {
  reduce_run run = reduce_begin(c, rig_begin(c, world, NULL), dtype, SMALL_MAX, VT_REDUCE_COUNT);
  rig_run(run.rig, reduce_small_rank, &run);
}

static void reduce_large_rank(vt_case *c, int32_t rank, void *arg) {
  (void)c;
  reduce_once(arg, rank, (reduce_call){LARGE_COUNT, VT_REDUCE_SUM, 0, 0});
  reduce_once(arg, rank, (reduce_call){LARGE_COUNT, VT_REDUCE_SUM, 1, 1});
}

static void reduce_large(vt_case *c, int32_t world, vt_dtype dtype) {
  reduce_run run = reduce_begin(c, rig_begin(c, world, NULL), dtype, LARGE_COUNT, 1);
  rig_run(run.rig, reduce_large_rank, &run);
}

static void tails_rank(vt_case *c, int32_t rank, void *arg) {
  (void)c;
  for (size_t count = 1; count <= 300; count++) {
    reduce_once(arg, rank, (reduce_call){count, (vt_reduce_op)(count % VT_REDUCE_COUNT), (int32_t)(count / 5 % 2), count * 7 % 64});
  }
}

static void reductions_end_anywhere_and_begin_anywhere(vt_case *c) {
  for (int32_t t = 0; t < MODEL_REDUCIBLE_COUNT; t++) {
    for (int32_t world = 2; world <= 3; world++) {
      reduce_run run = reduce_begin(c, rig_begin(c, world, NULL), model_reducible[t], SMALL_MAX, VT_REDUCE_COUNT);
      rig_run(run.rig, tails_rank, &run);
    }
  }
}

// Every sign and exponent with fractions at its ends, between them and at a tie: number `i` of CLASSES bit patterns.
#define CLASSES ((size_t)65536)
static uint64_t class_bits(vt_dtype dtype, size_t i) {
  static const uint64_t fractions[16] = {0,      1,      2,      3,       0x7fffff, 0x7ffffe, 0x400000, 0x3fffff,
                                         0x8000, 0x7fff, 0x8001, 0x18000, 0x1000,   0x3000,   0x2000,   0x555555};
  if (model_bytes(dtype, 1) == 2) {
    return i;
  }
  if (dtype == VT_DTYPE_F32) {
    return (i / 16 % 512) << 23 | fractions[i % 16];
  }
  return (uint64_t)(i / 16) << 52 | fractions[i % 16] << (i % 2 == 0 ? 29 : 0);
}

// Rank 0 goes through all classes, rank 1 through those that a stride apart from them: each meets its own exponent and distant
// ones.
static void fill_classes(reduce_run *run, size_t stride) {
  size_t bytes = model_bytes(run->dtype, 1);
  for (size_t i = 0; i < CLASSES; i++) {
    uint64_t a = class_bits(run->dtype, i);
    uint64_t b = class_bits(run->dtype, (i * 3 + stride) % CLASSES);
    memcpy((char *)run->inputs[0] + i * bytes, &a, bytes);
    memcpy((char *)run->inputs[1] + i * bytes, &b, bytes);
  }
}

static void classes_rank(vt_case *c, int32_t rank, void *arg) {
  (void)c;
  for (vt_reduce_op op = 0; op < VT_REDUCE_COUNT; op++) {
    reduce_once(arg, rank, (reduce_call){CLASSES, op, op % 2, 0});
  }
}

static void reductions_of_every_exponent_nan_and_tie_give_the_models_bits(vt_case *c) {
  static const size_t strides[] = {0, 32768, 31, 0x7f80, 0xffc1};
  for (int32_t t = 0; t < 4; t++) {
    reduce_run run = reduce_begin(c, rig_begin(c, 2, NULL), model_reducible[t], CLASSES, VT_REDUCE_COUNT);
    for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
      fill_classes(&run, strides[s]);
      reduce_expect(&run, CLASSES, VT_REDUCE_COUNT);
      rig_run(run.rig, classes_rank, &run);
    }
  }
}

// Sets the thread's floating-point environment to what a caller may have: subnormals flushed, rounding upwards.
static uint64_t odd_environment_enter(void) {
#if defined(__x86_64__)
  uint32_t before;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  uint32_t odd = before | 0x8040u | 0x4000u;
  __asm__ volatile("ldmxcsr %0" : : "m"(odd));
#else
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  uint64_t odd = before | UINT64_C(1) << 24 | UINT64_C(1) << 22;
  __asm__ volatile("msr fpcr, %0" : : "r"(odd));
#endif
  return before;
}

static uint64_t environment_read(void) {
#if defined(__x86_64__)
  uint32_t now;
  __asm__ volatile("stmxcsr %0" : "=m"(now));
  return now & 0xffc0u;
#else
  uint64_t now;
  __asm__ volatile("mrs %0, fpcr" : "=r"(now));
  return now;
#endif
}

static void environment_leave(uint64_t before) {
#if defined(__x86_64__)
  uint32_t word = (uint32_t)before;
  __asm__ volatile("ldmxcsr %0" : : "m"(word));
#else
  __asm__ volatile("msr fpcr, %0" : : "r"(before));
#endif
}

static void odd_environment_rank(vt_case *c, int32_t rank, void *arg) {
  uint64_t before = odd_environment_enter();
  uint64_t mine = environment_read();
  // The first operation of a queue starts its worker, which inherits this environment.
  for (vt_reduce_op op = 0; op < VT_REDUCE_COUNT; op++) {
    reduce_once(arg, rank, (reduce_call){1, op, 0, 0});
    reduce_once(arg, rank, (reduce_call){SMALL_MAX, op, 0, 0});
  }
  EXPECT_EQ(c, mine, environment_read());
  environment_leave(before);
}

static void all_reduce_bits_do_not_depend_on_the_callers_float_environment(vt_case *c) {
  for (int32_t t = 0; t < 4; t++) {
    reduce_run run = reduce_begin(c, rig_begin(c, 3, NULL), model_reducible[t], SMALL_MAX, VT_REDUCE_COUNT);
    rig_run(run.rig, odd_environment_rank, &run);
  }
}

// Many calls in a row without waiting in between; each has its own count.
static void pipelined_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  enum { CALLS = 40, STRIDE = 1000 };
  static int32_t values[RIG_MAX_WORLD][CALLS][STRIDE];
  for (int32_t i = 0; i < CALLS; i++) {
    for (int32_t k = 0; k < STRIDE; k++) {
      values[rank][i][k] = (rank + 1) * (i + 1) + k;
    }
    size_t count = (size_t)(i % 4 == 3 ? STRIDE : i);
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], values[rank][i], values[rank][i], count, VT_DTYPE_I32,
                                    VT_REDUCE_SUM, NULL));
  }
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
  for (int32_t i = 0; i < CALLS; i++) {
    int32_t count = i % 4 == 3 ? STRIDE : i;
    int32_t wrong = 0;
    for (int32_t k = 0; k < STRIDE; k++) {
      int32_t mine = (rank + 1) * (i + 1) + k;
      wrong += values[rank][i][k] != (k < count ? 6 * (i + 1) + 3 * k : mine);
    }
    EXPECT_EQ(c, 0, wrong);
  }
}

static void all_reduce_calls_submitted_in_a_row_keep_their_order(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  rig_run(rig, pipelined_rank, rig);
}

// A random program that all ranks follow: every type, operation and size after every other, small and large ones mixed.
static void random_rank(vt_case *c, int32_t rank, void *arg) {
  reduce_run *runs = arg;
  comm_rig *rig = runs[0].rig;
  vt_test_rng rng = vt_test_rng_begin(c, 7);
  for (int32_t step = 0; step < 400; step++) {
    reduce_run *run = &runs[vt_test_random_below(&rng, MODEL_REDUCIBLE_COUNT)];
    reduce_call call = {.op = (vt_reduce_op)vt_test_random_below(&rng, VT_REDUCE_COUNT)};
    call.count = vt_test_random_below(&rng, 3) == 0 ? vt_test_random_below(&rng, SMALL_MAX + 1) : vt_test_random_below(&rng, 40);
    call.in_place = (int32_t)vt_test_random_below(&rng, 2);
    call.misalign = vt_test_random_below(&rng, 8);
    reduce_once(run, rank, call);
    if (vt_test_random_below(&rng, 16) == 0) {
      EXPECT_OK(c, rig_finish(rig, rank, vt_comm_barrier(rig->comms[rank], rig->queues[rank], NULL)));
    }
  }
}

static void a_random_program_of_all_reduces_gives_the_models_bits(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  reduce_run runs[MODEL_REDUCIBLE_COUNT];
  for (int32_t t = 0; t < MODEL_REDUCIBLE_COUNT; t++) {
    runs[t] = reduce_begin(c, rig, model_reducible[t], SMALL_MAX, VT_REDUCE_COUNT);
  }
  rig_run(rig, random_rank, runs);
}

// Two threads of each rank, each with a queue of its own, make the same calls.
static void two_threads_rank(vt_case *c, int32_t index, void *arg) {
  comm_rig *rig = arg;
  int32_t rank = index / 2;
  vt_queue *queue = vt_test_queue(c);
  int32_t value[300];
  for (int32_t i = 0; i < 100; i++) {
    for (int32_t k = 0; k < 300; k++) {
      value[k] = rank + 1;
    }
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[rank], queue, value, value, 300, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_TRUE(c, value[0] == 3 && value[299] == 3);
  }
}

static void calls_of_two_threads_of_one_rank_are_serialised(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  vt_test_threads(c, 4, two_threads_rank, rig);
}

// Values that are known without any model.
typedef struct golden_run {
  comm_rig *rig;
  vt_dtype dtype;
  vt_reduce_op op;
  size_t count;
  const void *inputs;  // world rows
  const void *expected;
} golden_run;

static void golden_rank(vt_case *c, int32_t rank, void *arg) {
  const golden_run *run = arg;
  unsigned char got[64] = {0};
  size_t bytes = model_bytes(run->dtype, run->count);
  const unsigned char *mine = (const unsigned char *)run->inputs + (size_t)rank * bytes;
  vt_status status =
      vt_comm_all_reduce(run->rig->comms[rank], run->rig->queues[rank], mine, got, run->count, run->dtype, run->op, NULL);
  EXPECT_OK(c, rig_finish(run->rig, rank, status));
  EXPECT_BYTES(c, run->expected, got, bytes);
}

static void golden(vt_case *c, int32_t world, vt_dtype dtype, vt_reduce_op op, size_t count, const void *inputs,
                   const void *expected) {
  golden_run run = {rig_begin(c, world, NULL), dtype, op, count, inputs, expected};
  rig_run(run.rig, golden_rank, &run);
}

static void all_reduce_gives_the_known_good_values(vt_case *c) {
  golden(c, 2, VT_DTYPE_F32, VT_REDUCE_SUM, 4, (const float[]){1, 2, 3, 4, 10, 20, 30, 40}, (const float[]){11, 22, 33, 44});
  golden(c, 4, VT_DTYPE_F32, VT_REDUCE_SUM, 5, (const float[]){1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4},
         (const float[]){10, 10, 10, 10, 10});
  const int32_t rows[] = {5, 1, 9, 2, 3, 8, 0, 2, 7, 8, 4, 2, 1, 6, 9, 2};
  golden(c, 4, VT_DTYPE_I32, VT_REDUCE_MAX, 4, rows, (const int32_t[]){7, 8, 9, 2});
  golden(c, 4, VT_DTYPE_I32, VT_REDUCE_MIN, 4, rows, (const int32_t[]){1, 1, 0, 2});
  golden(c, 2, VT_DTYPE_BF16, VT_REDUCE_SUM, 2, (const uint16_t[]){0x3f80, 0x4000, 0x4000, 0x4080},
         (const uint16_t[]){0x4040, 0x40c0});
  golden(c, 3, VT_DTYPE_I64, VT_REDUCE_SUM, 2, (const int64_t[]){1, 100, 10, 200, 100, 300}, (const int64_t[]){111, 600});
  // The narrow type would stop at 2048 + 1, or leave its range.
  golden(c, 4, VT_DTYPE_F16, VT_REDUCE_SUM, 2, (const uint16_t[]){0x7bff, 0x6800, 0x7bff, 0x3c00, 0xfbff, 0x3c00, 0xfbff, 0x0000},
         (const uint16_t[]){0x0000, 0x6801});
  // -7 / 2 truncates towards zero; 127 + 1 wraps before it is divided.
  golden(c, 2, VT_DTYPE_I8, VT_REDUCE_AVG, 2, (const int8_t[]){-3, 127, -4, 1}, (const int8_t[]){-3, -64});
  // -0 is below +0, from either side; a NaN of any sign and payload comes out as the one quiet NaN.
  golden(c, 2, VT_DTYPE_F32, VT_REDUCE_MIN, 3, (const uint32_t[]){0x80000000, 0, 0xffc12345, 0, 0x80000000, 0x3f800000},
         (const uint32_t[]){0x80000000, 0x80000000, 0x7fc00000});
  golden(c, 2, VT_DTYPE_F32, VT_REDUCE_SUM, 2, (const uint32_t[]){0x7f800000, 0x7f800001, 0xff800000, 0x3f800000},
         (const uint32_t[]){0x7fc00000, 0x7fc00000});
}

// The model is only worth something if its own conversions are right: two implementations that share nothing must agree.
static void the_model_and_the_library_convert_halves_alike(vt_case *c) {
  static const vt_dtype halves[] = {VT_DTYPE_F16, VT_DTYPE_BF16};
  int32_t wrong = 0;
  for (uint32_t n = 0; n < 2u << 16; n++) {
    vt_dtype dtype = halves[n >> 16];
    uint16_t bits = (uint16_t)n;
    float mine = model_half_to_f32(dtype, bits);
    float theirs = dtype == VT_DTYPE_F16 ? vt_f16_to_f32(bits) : vt_bf16_to_f32(bits);
    wrong += isnan(mine) ? !isnan(theirs) : memcmp(&mine, &theirs, sizeof mine) != 0;
  }
  vt_test_rng rng = vt_test_rng_begin(c, 1);
  for (uint32_t n = 0; n < 1u << 20; n++) {
    uint32_t bits = (uint32_t)vt_test_random(&rng);
    // Ties between halves are rare among random numbers: every second one is nearly or exactly in the middle.
    bits = n % 2 == 0 ? bits : (bits & 0xfffff000u) | 0x1000u | (bits & 1);
    float value;
    memcpy(&value, &bits, sizeof value);
    wrong += !isnan(value) && model_half_from_f32(VT_DTYPE_F16, value) != vt_f16_from_f32(value);
    wrong += !isnan(value) && model_half_from_f32(VT_DTYPE_BF16, value) != vt_bf16_from_f32(value);
  }
  EXPECT_EQ(c, 0, wrong);
}

#define REDUCE_CASE(world, lower, upper)                      \
  static void all_reduce_world##world##_##lower(vt_case *c) { \
    reduce_small(c, world, VT_DTYPE_##upper);                 \
  }
#define LARGE_CASE(world, lower, upper)                             \
  static void all_reduce_large_world##world##_##lower(vt_case *c) { \
    reduce_large(c, world, VT_DTYPE_##upper);                       \
  }
#define WORLD_CASES(world)       \
  REDUCE_CASE(world, f32, F32)   \
  REDUCE_CASE(world, f64, F64)   \
  REDUCE_CASE(world, f16, F16)   \
  REDUCE_CASE(world, bf16, BF16) \
  REDUCE_CASE(world, i8, I8)     \
  REDUCE_CASE(world, u8, U8)     \
  REDUCE_CASE(world, i32, I32)   \
  REDUCE_CASE(world, i64, I64)   \
  LARGE_CASE(world, f32, F32)    \
  LARGE_CASE(world, bf16, BF16)  \
  LARGE_CASE(world, i8, I8)
// clang-format off
WORLD_CASES(1)
WORLD_CASES(2)
WORLD_CASES(3)
WORLD_CASES(5)
WORLD_CASES(8)
// clang-format on

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }
#define WORLD_ROWS(world, needs)                                                                                                   \
  ROW(all_reduce_world##world##_f32, needs), ROW(all_reduce_world##world##_f64, needs), ROW(all_reduce_world##world##_f16, needs), \
      ROW(all_reduce_world##world##_bf16, needs), ROW(all_reduce_world##world##_i8, needs),                                        \
      ROW(all_reduce_world##world##_u8, needs), ROW(all_reduce_world##world##_i32, needs),                                         \
      ROW(all_reduce_world##world##_i64, needs), ROW(all_reduce_large_world##world##_f32, NEED_NO_TSAN),                           \
      ROW(all_reduce_large_world##world##_bf16, NEED_NO_TSAN), ROW(all_reduce_large_world##world##_i8, NEED_NO_TSAN)

const vt_test_case vt_cases_comm_reduce[] = {
    ROW(the_model_and_the_library_convert_halves_alike, ONCE),
    ROW(all_reduce_gives_the_known_good_values, 0),
    ROW(all_reduce_bits_do_not_depend_on_the_callers_float_environment, 0),
    ROW(reductions_end_anywhere_and_begin_anywhere, 0),
    ROW(reductions_of_every_exponent_nan_and_tie_give_the_models_bits, ONCE | NEED_NO_TSAN),
    ROW(a_random_program_of_all_reduces_gives_the_models_bits, 0),
    ROW(calls_of_two_threads_of_one_rank_are_serialised, 0),
    ROW(all_reduce_calls_submitted_in_a_row_keep_their_order, 0),
    WORLD_ROWS(1, NEED_NO_TSAN),
    WORLD_ROWS(2, 0),
    WORLD_ROWS(3, 0),
    WORLD_ROWS(5, 0),
    WORLD_ROWS(8, NEED_NO_TSAN),
    VT_TEST_END,
};
