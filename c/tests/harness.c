// harness.c: the harness itself. A check that can't fail would make every other case worthless.
#include "suite.h"

#include <stdlib.h>

// A case inside the case, whose failures are expected.
static vt_case *inner_begin(vt_case *c) {
  vt_case *inner = calloc(1, sizeof(*inner));
  if (inner == NULL) {
    vt_test_give_up(c, "no memory");
  }
  inner->test = c->test;
  inner->row = c->row;
  inner->seed = c->seed;
  pthread_mutex_init(&inner->mutex, NULL);
  vt_test_census_take(&inner->before);
  return inner;
}

static int inner_end(vt_case *inner) {
  int failures = inner->failures;
  pthread_mutex_destroy(&inner->mutex);
  free(inner);
  return failures;
}

static void every_check_can_fail(vt_case *c) {
  vt_case *inner = inner_begin(c);
  (void)vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "f", "some words");
  int held = EXPECT_OK(inner, VT_ERR_INTERNAL);
  held += EXPECT_STATUS(inner, VT_ERR_TIMEOUT, VT_OK);
  held += EXPECT_TRUE(inner, held == 5);
  held += EXPECT_EQ(inner, 1, held + 7);
  held += EXPECT_MESSAGE(inner, "other words");
  held += EXPECT_LAST_ERROR(inner, VT_ERR_ABORTED, "some");
  held += EXPECT_FAILS(inner, VT_ERR_INTERNAL, "other words", VT_ERR_INTERNAL);
  held += EXPECT_TEXT(inner, "a", "b");
  held += EXPECT_TEXT(inner, NULL, "b");
  held += EXPECT_BYTES(inner, "abc", "abd", 3);
  held += EXPECT_FILLED(inner, 'a', "aab", 3);
  held += FAIL_CASE(inner, "%d", 5);
  EXPECT_EQ(c, 0, held);
  EXPECT_EQ(c, 0, vt_test_is_clean(inner));
  EXPECT_EQ(c, 12, inner_end(inner));
}

static void broken_canaries_are_found(vt_case *c) {
  vt_case *inner = inner_begin(c);
  unsigned char *block = vt_test_guarded_alloc_at(inner, 10, 3);
  EXPECT_EQ(c, 3, (uintptr_t)block % 64);
  EXPECT_EQ(c, 1, vt_test_guarded_check(inner, block));
  block[10] = 0;
  EXPECT_EQ(c, 0, vt_test_guarded_check(inner, block));
  block[10] = 0xc5;
  block[-1] = 0;
  vt_test_clean_up(inner);
  EXPECT_EQ(c, 2, inner_end(inner));
}

static void things_left_behind_are_found(vt_case *c) {
  vt_case *inner = inner_begin(c);
  vt_arena *arena = NULL;
  REQUIRE_OK(c, vt_arena_create(vt_test_device(c), 64, &arena));
  inner->grace_ns = 1000000;
  vt_test_clean_up(inner);
  vt_arena_release(arena);
  EXPECT_TRUE(c, inner_end(inner) >= 2);
}

static void random_numbers_repeat(vt_case *c) {
  vt_test_rng a = vt_test_rng_begin(c, 1);
  vt_test_rng b = vt_test_rng_begin(c, 1);
  vt_test_rng other = vt_test_rng_begin(c, 2);
  unsigned char bytes[13] = {0};
  int differ = 0;
  for (int i = 0; i < 100; i++) {
    uint64_t value = vt_test_random(&a);
    EXPECT_EQ(c, value, vt_test_random(&b));
    differ += value != vt_test_random(&other);
    EXPECT_TRUE(c, vt_test_random_below(&a, 7) < 7 && vt_test_random_below(&b, 7) < 7);
  }
  EXPECT_TRUE(c, differ > 90);
  vt_test_random_fill(&a, bytes, sizeof(bytes));
  EXPECT_TRUE(c, bytes[12] != 0 || bytes[11] != 0 || bytes[10] != 0);
}

const vt_test_case vt_cases_harness[] = {{"every_check_can_fail", ONCE, every_check_can_fail},
                                         {"broken_canaries_are_found", ONCE, broken_canaries_are_found},
                                         {"things_left_behind_are_found", ONCE, things_left_behind_are_found},
                                         {"random_numbers_repeat", ONCE, random_numbers_repeat},
                                         VT_TEST_END};
