// queue_async.c: queues that work behind the caller's back.
#include "vt_test.h"

#include <stdatomic.h>

static int32_t value_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment on the queue's thread.
  return atomic_load_explicit(counter, memory_order_acquire);
}

// The toy version of an asynchronous queue runs the work in the call: it would never come back from the first line here.
static void submitting_behind_a_blocked_function_returns_at_once(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  _Atomic int32_t calls = 0;
  unsigned char *block = vt_test_alloc(c, 1000);
  vt_event *event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_memset(queue, block, 5, 1000));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_FILLED(c, 0, block, 1000);
  EXPECT_EQ(c, 0, value_of(&calls));
  EXPECT_STATUS(c, VT_NOT_READY, vt_queue_query(queue));
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_query(event));
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_queue_query(queue));
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_FILLED(c, 5, block, 1000);
  EXPECT_EQ(c, 1, value_of(&calls));
}

static void pending_tickets_poll_and_time_out(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  uint64_t before = 0;
  uint64_t behind = 0;
  _Atomic int32_t calls = 0;
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &before));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &behind));
  EXPECT_OK(c, vt_queue_wait_ticket(queue, before, VT_WAIT_FOREVER));
  EXPECT_EQ(c, 1, value_of(&calls));
  EXPECT_STATUS(c, VT_NOT_READY, vt_queue_wait_ticket(queue, behind, 0));
  uint64_t begin = vt_test_now_ns();
  EXPECT_STATUS(c, VT_ERR_TIMEOUT, vt_queue_wait_ticket(queue, behind, 20000000));
  EXPECT_TRUE(c, vt_test_now_ns() - begin >= 20000000);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_wait_ticket(queue, behind, UINT64_C(50000000000)));
}

static void two_queues_overlap(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  _Atomic int32_t calls = 0;
  EXPECT_OK(c, vt_queue_host_func(a, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_queue_host_func(b, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_synchronize(b));
  EXPECT_EQ(c, 1, value_of(&calls));
  EXPECT_STATUS(c, VT_NOT_READY, vt_queue_query(a));
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(a));
}

static void a_full_ring_that_may_not_wait_answers_not_ready(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.flags |= VT_QUEUE_FAIL_FULL;
  options.ring_capacity = 4;
  vt_queue *queue = vt_test_queue_with(c, &options);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  _Atomic int32_t calls = 0;
  _Atomic int32_t drops = 0;
  unsigned char *block = vt_test_alloc(c, 64);
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  vt_test_latch_await_waiter(&gate);
  int32_t taken = 0;
  vt_status status = VT_OK;
  while (status == VT_OK && taken < 100) {
    status = vt_queue_host_func(queue, vt_test_host_count, &calls, NULL);
    taken += status == VT_OK;
  }
  EXPECT_EQ(c, VT_NOT_READY, status);
  EXPECT_TRUE(c, taken >= 3 && taken <= 4);
  uint64_t ticket = 0;
  uint64_t after = 0;
  EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
  EXPECT_STATUS(c, VT_NOT_READY, vt_memset(queue, block, 1, 64));
  EXPECT_STATUS(c, VT_NOT_READY, vt_copy(queue, block, block + 32, 32));
  EXPECT_STATUS(c, VT_NOT_READY, vt_queue_host_func(queue, vt_test_host_count, &calls, vt_test_drop_count));
  EXPECT_STATUS(c, VT_NOT_READY, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_EQ(c, 1, value_of(&drops));
  EXPECT_EQ(c, 1, value_of(&calls));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &after));
  EXPECT_EQ(c, ticket, after);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 1 + taken, value_of(&calls));
  EXPECT_FILLED(c, 0, block, 64);
  EXPECT_OK(c, vt_memset(queue, block, 1, 64));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, block, 64);
}

typedef struct pressure {
  vt_queue *queue;
  vt_test_latch gate;
  _Atomic int32_t calls;
  _Atomic int32_t submitted;
} pressure;

// Thread 0 submits more than fits; thread 1 sees it stand still, then opens the gate.
static void open_later(vt_case *c, int32_t index, void *arg) {
  pressure *p = arg;
  if (index == 0) {
    for (int32_t i = 0; i < 50; i++) {
      EXPECT_OK(c, vt_queue_host_func(p->queue, vt_test_host_count, &p->calls, NULL));
      // release: partner is the load in value_of().
      atomic_store_explicit(&p->submitted, i + 1, memory_order_release);
    }
    return;
  }
  while (value_of(&p->submitted) < 3) {
    vt_test_sleep_ns(100000);
  }
  vt_test_sleep_ns(30000000);
  EXPECT_TRUE(c, value_of(&p->submitted) <= 4);
  EXPECT_EQ(c, 0, value_of(&p->calls));
  vt_test_latch_open(&p->gate);
}

static void a_full_ring_holds_the_submitter_back(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.ring_capacity = 4;
  pressure p = {.queue = vt_test_queue_with(c, &options), .gate = VT_TEST_LATCH_INIT};
  EXPECT_OK(c, vt_queue_host_func(p.queue, vt_test_host_wait, &p.gate, NULL));
  vt_test_latch_await_waiter(&p.gate);
  vt_test_threads(c, 2, open_later, &p);
  EXPECT_OK(c, vt_queue_synchronize(p.queue));
  EXPECT_EQ(c, 50, value_of(&p.calls));
}

static void releasing_never_waits(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  static vt_test_latch gate = VT_TEST_LATCH_INIT;
  static _Atomic int32_t calls;
  // relaxed: no other thread is about.
  atomic_store_explicit(&calls, 0, memory_order_relaxed);
  gate.open = 0;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  size_t alive = vt_handle_get_live_count(VT_HANDLE_QUEUE);
  vt_queue_release(queue);
  EXPECT_EQ(c, 0, value_of(&calls));
  EXPECT_EQ(c, alive, vt_handle_get_live_count(VT_HANDLE_QUEUE));
  vt_test_latch_open(&gate);
  while (vt_handle_get_live_count(VT_HANDLE_QUEUE) == alive) {
    vt_test_sleep_ns(100000);
  }
  EXPECT_EQ(c, 1, value_of(&calls));
}

// Submitting goes on in long runs: the ring goes round many times, with both kinds of waits in between.
static void the_ring_goes_round_many_times(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.ring_capacity = 16;
  vt_queue *queue = vt_test_queue_with(c, &options);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  _Atomic int32_t calls = 0;
  int32_t rounds = vt_test_is_slow() ? 500 : 3000;
  for (int32_t i = 0; i < rounds; i++) {
    REQUIRE_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
    if (vt_test_random_below(&rng, 100) == 0) {
      uint64_t ticket = 0;
      EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
      EXPECT_OK(c, vt_queue_wait_ticket(queue, ticket, VT_WAIT_FOREVER));
      EXPECT_EQ(c, i + 1, value_of(&calls));
    }
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, rounds, value_of(&calls));
}

const vt_test_case vt_cases_queue_async[] = {
    {"submitting_behind_a_blocked_function_returns_at_once", NEED_WORKER, submitting_behind_a_blocked_function_returns_at_once},
    {"pending_tickets_poll_and_time_out", NEED_WORKER, pending_tickets_poll_and_time_out},
    {"two_queues_overlap", NEED_WORKER, two_queues_overlap},
    {"a_full_ring_that_may_not_wait_answers_not_ready", NEED_WORKER, a_full_ring_that_may_not_wait_answers_not_ready},
    {"a_full_ring_holds_the_submitter_back", NEED_WORKER, a_full_ring_holds_the_submitter_back},
    {"releasing_never_waits", NEED_WORKER, releasing_never_waits},
    {"the_ring_goes_round_many_times", NEED_ASYNC, the_ring_goes_round_many_times},
    VT_TEST_END};
