// op_refusal.c: providers that refuse, one after the other, and one that takes its time over it.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>

static void some_function(void) {}

// The four of {10, 5, 5, 0}, in the order in which they are asked.
static const struct {
  const char *name;
  int32_t priority;
} four[] = {{"r-top", 10}, {"r-tie-a", 5}, {"r-tie-b", 5}, {"r-last", 0}};

// The first `refusing` of them refuse.
static _Atomic int32_t refusing;

typedef struct place {
  int32_t index;
  char reason[32];
} place;

static int32_t refuse_in_turn(void *user, vt_op_question *question) {
  const place *mine = user;
  // relaxed: a number that this thread set.
  int32_t refuses = mine->index < atomic_load_explicit(&refusing, memory_order_relaxed);
  question->reason = refuses ? mine->reason : NULL;
  return !refuses;
}

static vt_op_id register_four(vt_case *c, const char *name, vt_device_type type) {
  static place places[4];
  static const int registered[] = {2, 3, 0, 1};
  vt_op_id op = 0;
  EXPECT_OK(c, vt_op_intern(name, &op));
  for (int32_t i = 0; i < 4; i++) {
    int32_t k = registered[i];
    places[k].index = k;
    snprintf(places[k].reason, sizeof(places[k].reason), "reason %d", (int)k);
    vt_op_provider provider = {.struct_size = sizeof(provider), .name = four[k].name, .priority = four[k].priority};
    provider.fn = some_function;
    provider.supports = refuse_in_turn;
    provider.user = &places[k];
    EXPECT_OK(c, vt_op_provider_register(op, type, &provider));
  }
  return op;
}

static void each_refusal_leads_to_the_next_in_order_and_the_last_names_all(vt_case *c) {
  vt_op_id op = register_four(c, "test.refusal.order", VT_DEVICE_CPU);
  const vt_op_provider *found = NULL;
  for (int32_t count = 0; count < 4; count++) {
    // relaxed: read on this thread.
    atomic_store_explicit(&refusing, count, memory_order_relaxed);
    REQUIRE_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
    EXPECT_TEXT(c, four[count].name, found->name);
  }
  atomic_store_explicit(&refusing, 4, memory_order_relaxed);  // relaxed: as above
  EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  for (int32_t i = 0; i < 4; i++) {
    char part[64];
    snprintf(part, sizeof(part), "reason %d", (int)i);
    EXPECT_MESSAGE(c, part);
    EXPECT_MESSAGE(c, four[i].name);
  }
}

// One thread's question to a provider isn't answered for a while. Nobody else waits for that.

static vt_test_latch doors[2] = {VT_TEST_LATCH_INIT, VT_TEST_LATCH_INIT};

// The descriptor is the number of a door, or NULL.
static int32_t answer_later(void *user, vt_op_question *question) {
  (void)user;
  if (question->descriptor != NULL) {
    vt_test_latch_wait(&doors[*(const int32_t *)question->descriptor]);
  }
  question->reason = "slow";
  return 0;
}

static void register_name(vt_case *c, vt_op_id op, const char *name, int32_t priority,
                          int32_t (*supports)(void *user, vt_op_question *question)) {
  vt_op_provider provider = {.struct_size = sizeof(provider), .name = name, .priority = priority};
  provider.fn = some_function;
  provider.supports = supports;
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &provider));
}

// Threads 0 and 1 hang in the provider, each in another call; thread 2 goes on.
static void ask_or_go_on(vt_case *c, int32_t index, void *arg) {
  vt_op_id op = *(vt_op_id *)arg;
  const vt_op_provider *found = NULL;
  vt_op_stats stats = VT_OP_STATS_INIT;
  char text[512];
  if (index == 0) {
    EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, &index, &found));
    EXPECT_TEXT(c, "s-fast", found->name);
    return;
  }
  if (index == 1) {
    EXPECT_TRUE(c, vt_op_explain(op, VT_DEVICE_CPU, NULL, &index, text, sizeof(text)) > 0);
    return;
  }
  vt_test_latch_await_waiter(&doors[0]);
  vt_test_latch_await_waiter(&doors[1]);
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_TEXT(c, "s-fast", found->name);
  register_name(c, op, "s-later", 20, NULL);
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_TEXT(c, "s-later", found->name);
  EXPECT_OK(c, vt_op_provider_disable("s-later"));
  EXPECT_OK(c, vt_op_provider_get_stats(op, VT_DEVICE_CPU, "s-slow", &stats));
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_TEXT(c, "s-fast", found->name);
  EXPECT_OK(c, vt_op_provider_enable("s-later"));
  vt_test_latch_open(&doors[0]);
  vt_test_latch_open(&doors[1]);
}

static void a_provider_that_takes_its_time_holds_up_nobody_else(vt_case *c) {
  vt_op_id op = 0;
  EXPECT_OK(c, vt_op_intern("test.refusal.slow", &op));
  register_name(c, op, "s-slow", 10, answer_later);
  register_name(c, op, "s-fast", 1, NULL);
  vt_test_threads(c, 3, ask_or_go_on, &op);
}

const vt_test_case vt_cases_op_refusal[] = {
    {"each_refusal_leads_to_the_next_in_order_and_the_last_names_all", ONCE,
     each_refusal_leads_to_the_next_in_order_and_the_last_names_all},
    {"a_provider_that_takes_its_time_holds_up_nobody_else", ONCE, a_provider_that_takes_its_time_holds_up_nobody_else},
    VT_TEST_END};
