// arena.c: the step arena.
#include "vt_test.h"

static size_t used_of(vt_case *c, vt_arena *arena) {
  vt_arena_stats stats = VT_ARENA_STATS_INIT;
  EXPECT_OK(c, vt_arena_get_stats(arena, &stats));
  return stats.used;
}

static void requests_are_rounded_to_64_bytes(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 256);
  unsigned char *a = NULL;
  unsigned char *b = NULL;
  unsigned char *e = NULL;
  EXPECT_OK(c, vt_arena_alloc(arena, 40, (void **)&a));
  EXPECT_EQ(c, 64, used_of(c, arena));
  EXPECT_OK(c, vt_arena_alloc(arena, 1, (void **)&b));
  EXPECT_EQ(c, 128, used_of(c, arena));
  EXPECT_OK(c, vt_arena_alloc(arena, 128, (void **)&e));
  EXPECT_EQ(c, 256, used_of(c, arena));
  EXPECT_EQ(c, 0, (uintptr_t)a % 64);
  EXPECT_TRUE(c, b == a + 64 && e == a + 128);
  memset(a, 1, 256);
}

static void refusal_leaves_accounting_alone(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 256);
  void *p = NULL;
  EXPECT_OK(c, vt_arena_alloc(arena, 40, &p));
  void *kept = p;
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "arena of 256 bytes has 192 left", vt_arena_alloc(arena, SIZE_MAX - 8, &p));
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "192 left", vt_arena_alloc(arena, SIZE_MAX, &p));
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "asked for 193", vt_arena_alloc(arena, 193, &p));
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "192 left", vt_arena_alloc_elements(arena, ((size_t)1 << 61) - 8, VT_DTYPE_I64, &p));
  EXPECT_STATUS(c, VT_ERR_OUT_OF_MEMORY, vt_arena_alloc_elements(arena, SIZE_MAX, VT_DTYPE_F32, &p));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ptr", vt_arena_alloc(arena, 8, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ptr", vt_arena_alloc_elements(arena, 8, VT_DTYPE_F32, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "42", vt_arena_alloc_elements(arena, 8, 42, &p));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "33", vt_arena_alloc_elements(arena, 33, VT_DTYPE_Q4_0, &p));
  EXPECT_TRUE(c, p == kept);
  EXPECT_EQ(c, 64, used_of(c, arena));
  EXPECT_OK(c, vt_arena_alloc(arena, 192, &p));
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "0 left", vt_arena_alloc(arena, 1, &p));
}

static void elements_take_the_bytes_of_their_type(vt_case *c) {
  static const struct {
    vt_dtype dtype;
    size_t count;
    size_t bytes;
  } all[] = {{VT_DTYPE_F32, 17, 128}, {VT_DTYPE_BF16, 32, 64},   {VT_DTYPE_I8, 65, 128},    {VT_DTYPE_I64, 8, 64},
             {VT_DTYPE_Q4_0, 64, 64}, {VT_DTYPE_Q6_K, 256, 256}, {VT_DTYPE_F8_E4M3, 1, 64}, {VT_DTYPE_F32, 0, 0}};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
    vt_arena *arena = vt_test_arena(c, 1024);
    void *p = NULL;
    EXPECT_OK(c, vt_arena_alloc_elements(arena, all[i].count, all[i].dtype, &p));
    EXPECT_EQ(c, all[i].bytes, used_of(c, arena));
  }
}

static void reset_keeps_the_high_water_mark(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 1024);
  vt_arena_stats stats = VT_ARENA_STATS_INIT;
  void *first = NULL;
  void *p = NULL;
  EXPECT_OK(c, vt_arena_alloc(arena, 64, &first));
  EXPECT_OK(c, vt_arena_alloc(arena, 500, &p));
  EXPECT_OK(c, vt_arena_reset(arena));
  EXPECT_OK(c, vt_arena_alloc(arena, 10, &p));
  EXPECT_TRUE(c, p == first);
  EXPECT_OK(c, vt_arena_get_stats(arena, &stats));
  EXPECT_EQ(c, 1024, stats.capacity);
  EXPECT_EQ(c, 64, stats.used);
  EXPECT_EQ(c, 576, stats.high_water);
  EXPECT_EQ(c, 1, stats.resets);
}

static void an_empty_arena_serves_empty_requests(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 0);
  void *p = NULL;
  EXPECT_OK(c, vt_arena_alloc(arena, 0, &p));
  EXPECT_OK(c, vt_arena_alloc_elements(arena, 0, VT_DTYPE_Q8_K, &p));
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "0 bytes", vt_arena_alloc(arena, 1, &p));
  EXPECT_EQ(c, 0, used_of(c, arena));
}

static void marks_nest(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 1024);
  vt_arena_mark outer;
  vt_arena_mark inner;
  void *a = NULL;
  void *b = NULL;
  void *again = NULL;
  EXPECT_OK(c, vt_arena_alloc(arena, 64, &a));
  EXPECT_OK(c, vt_arena_get_mark(arena, &outer));
  EXPECT_OK(c, vt_arena_alloc(arena, 64, &b));
  EXPECT_OK(c, vt_arena_get_mark(arena, &inner));
  EXPECT_OK(c, vt_arena_alloc(arena, 256, &a));
  EXPECT_OK(c, vt_arena_rewind(arena, inner));
  EXPECT_EQ(c, 128, used_of(c, arena));
  EXPECT_OK(c, vt_arena_rewind(arena, inner));
  EXPECT_OK(c, vt_arena_rewind(arena, outer));
  EXPECT_EQ(c, 64, used_of(c, arena));
  EXPECT_OK(c, vt_arena_alloc(arena, 1, &again));
  EXPECT_TRUE(c, again == b);
}

static void stale_and_foreign_marks_are_refused(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 1024);
  vt_arena *other = vt_test_arena(c, 1024);
  vt_arena_mark outer;
  vt_arena_mark inner;
  void *p = NULL;
  EXPECT_OK(c, vt_arena_get_mark(arena, &outer));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "another arena", vt_arena_rewind(other, outer));
  EXPECT_OK(c, vt_arena_alloc(arena, 64, &p));
  EXPECT_OK(c, vt_arena_get_mark(arena, &inner));
  EXPECT_OK(c, vt_arena_alloc(arena, 64, &p));
  EXPECT_OK(c, vt_arena_rewind(arena, outer));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "outer rewind", vt_arena_rewind(arena, inner));
  EXPECT_EQ(c, 0, used_of(c, arena));
  EXPECT_OK(c, vt_arena_get_mark(arena, &outer));
  EXPECT_OK(c, vt_arena_reset(arena));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "reset", vt_arena_rewind(arena, outer));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_mark", vt_arena_get_mark(arena, NULL));
}

static void bad_arena_calls_are_refused(vt_case *c) {
  vt_arena *arena = vt_test_arena(c, 64);
  vt_arena_stats stats = {.struct_size = 3};
  void *p = NULL;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_arena", vt_arena_create(vt_test_device(c), 64, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 3", vt_arena_get_stats(arena, &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_stats", vt_arena_get_stats(arena, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_device", vt_arena_get_device(arena, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "arena is NULL", vt_arena_alloc(NULL, 8, &p));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "arena is NULL", vt_arena_reset(NULL));
  vt_arena *huge = NULL;
  EXPECT_STATUS(c, VT_ERR_OUT_OF_MEMORY, vt_arena_create(vt_test_device(c), SIZE_MAX - 100, &huge));
  EXPECT_TRUE(c, huge == NULL);
}

const vt_test_case vt_cases_arena[] = {{"arena_requests_are_rounded_to_64_bytes", 0, requests_are_rounded_to_64_bytes},
                                       {"arena_refusal_leaves_accounting_alone", 0, refusal_leaves_accounting_alone},
                                       {"arena_elements_take_the_bytes_of_their_type", 0, elements_take_the_bytes_of_their_type},
                                       {"arena_reset_keeps_the_high_water_mark", 0, reset_keeps_the_high_water_mark},
                                       {"an_empty_arena_serves_empty_requests", 0, an_empty_arena_serves_empty_requests},
                                       {"arena_marks_nest", 0, marks_nest},
                                       {"stale_and_foreign_arena_marks_are_refused", 0, stale_and_foreign_marks_are_refused},
                                       {"bad_arena_calls_are_refused", 0, bad_arena_calls_are_refused},
                                       VT_TEST_END};
