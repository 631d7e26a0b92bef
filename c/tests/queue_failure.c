// queue_failure.c: errors that stick to an asynchronous queue, and those that a synchronous one returns.
#include "vt_test.h"

#include <stdatomic.h>

static char why[] = "the pump is dry";

static int32_t value_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment on the queue's thread.
  return atomic_load_explicit(counter, memory_order_acquire);
}

static void what_stands_behind_a_failure_does_not_run(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 100);
  _Atomic int32_t calls = 0;
  _Atomic int32_t drops = 0;
  uint64_t good = 0;
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  if (vt_test_has(c, NEED_WORKER)) {
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  }
  EXPECT_OK(c, vt_memset(queue, block, 1, 100));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &good));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, why, NULL));
  EXPECT_OK(c, vt_memset(queue, block, 2, 100));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  for (int i = 0; i < 5; i++) {
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  }
  vt_test_latch_open(&gate);
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, block, 100);
  EXPECT_EQ(c, 0, value_of(&calls));
  // Tickets before the failure are fine.
  EXPECT_OK(c, vt_queue_wait_ticket(queue, good, VT_WAIT_FOREVER));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_wait_ticket(queue, good + 1, VT_WAIT_FOREVER));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_wait_ticket(queue, good + 1, 0));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_query(queue));
  // Later submissions answer the failure and are dropped as well.
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_memset(queue, block, 3, 100));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_copy(queue, block, block + 50, 50));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_memset(queue, block, 3, 0));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_copy(queue, block, block + 50, 0));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_synchronize(queue));
  while (value_of(&drops) < 6) {
    vt_test_sleep_ns(100000);
  }
  EXPECT_EQ(c, 6, value_of(&drops));
  EXPECT_FILLED(c, 1, block, 100);
}

static void a_failure_reaches_events_and_dependent_queues(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *dependent = vt_test_queue(c);
  vt_queue *innocent = vt_test_queue(c);
  vt_event *before = vt_test_event(c, 0);
  vt_event *after = vt_test_event(c, VT_EVENT_BLOCKING);
  unsigned char *block = vt_test_alloc(c, 100);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  if (vt_test_has(c, NEED_WORKER)) {
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  }
  EXPECT_OK(c, vt_memset(queue, block, 1, 10));
  EXPECT_OK(c, vt_event_record(before, queue));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, why, NULL));
  EXPECT_OK(c, vt_event_record(after, queue));
  vt_test_latch_open(&gate);
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_event_synchronize(after));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_event_query(after));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_event_wait(after, 1000000));
  EXPECT_OK(c, vt_event_synchronize(before));
  EXPECT_OK(c, vt_queue_after_event(innocent, before));
  EXPECT_OK(c, vt_memset(innocent, block + 50, 2, 10));
  EXPECT_OK(c, vt_queue_synchronize(innocent));
  EXPECT_FILLED(c, 2, block + 50, 10);
  // The dependent queue fails where it waits: either at once, or when the wait is reached.
  if (vt_queue_after_event(dependent, after) == VT_OK) {
    (void)vt_memset(dependent, block + 20, 3, 10);
  }
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_synchronize(dependent));
  EXPECT_FILLED(c, 0, block + 20, 10);
}

static void failed_queues_can_be_released_or_destroyed(vt_case *c) {
  for (int way = 0; way < 2; way++) {
    vt_queue_options options = vt_test_queue_options(c);
    vt_queue *queue = NULL;
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, why, NULL));
    if (way == 0) {
      vt_queue_release(queue);
    } else {
      EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_destroy(queue));
    }
  }
}

static void a_failure_stays_on_its_queue(vt_case *c) {
  vt_queue *bad = vt_test_queue(c);
  vt_queue *good = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 10);
  EXPECT_OK(c, vt_queue_host_func(bad, vt_test_host_fail, why, NULL));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_synchronize(bad));
  EXPECT_OK(c, vt_memset(good, block, 4, 10));
  EXPECT_OK(c, vt_queue_synchronize(good));
  EXPECT_FILLED(c, 4, block, 10);
}

static vt_status fail_without_a_word(void *unused) {
  (void)unused;
  return VT_ERR_DEVICE_LOST;
}

static vt_status answer_nonsense(void *unused) {
  (void)unused;
  return -77;
}

static void a_function_that_sets_no_error_gets_one(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  (void)vt_queue_host_func(queue, fail_without_a_word, NULL, NULL);
  if (vt_test_has(c, NEED_ASYNC)) {
    (void)vt_queue_synchronize(queue);
  }
  EXPECT_LAST_ERROR(c, VT_ERR_DEVICE_LOST, "DEVICE_LOST");
  vt_queue *other = vt_test_queue(c);
  vt_status status = vt_queue_host_func(other, answer_nonsense, NULL, NULL);
  if (vt_test_has(c, NEED_ASYNC)) {
    status = vt_queue_synchronize(other);
  }
  EXPECT_TRUE(c, status < 0);
  EXPECT_MESSAGE(c, "-77");
}

static void synchronous_queues_return_the_failure_and_live_on(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 10);
  _Atomic int32_t drops = 0;
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_host_func(queue, vt_test_host_fail, why, NULL));
  EXPECT_OK(c, vt_queue_query(queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_memset(queue, block, 6, 10));
  EXPECT_FILLED(c, 6, block, 10);
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_EQ(c, 2, value_of(&drops));
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

const vt_test_case vt_cases_queue_failure[] = {
    {"what_stands_behind_a_failure_does_not_run", NEED_ASYNC, what_stands_behind_a_failure_does_not_run},
    {"a_failure_reaches_events_and_dependent_queues", NEED_ASYNC, a_failure_reaches_events_and_dependent_queues},
    {"failed_queues_can_be_released_or_destroyed", NEED_ASYNC, failed_queues_can_be_released_or_destroyed},
    {"a_failure_stays_on_its_queue", NEED_ASYNC, a_failure_stays_on_its_queue},
    {"a_function_that_sets_no_error_gets_one", 0, a_function_that_sets_no_error_gets_one},
    {"synchronous_queues_return_the_failure_and_live_on", NEED_SYNC, synchronous_queues_return_the_failure_and_live_on},
    VT_TEST_END};
