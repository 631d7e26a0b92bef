// event.c: marks that queues and the host wait for.
#include "vt_test.h"

#include <stdatomic.h>

static int32_t value_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment on the queue's thread.
  return atomic_load_explicit(counter, memory_order_acquire);
}

static void an_event_that_was_never_recorded_is_complete(vt_case *c) {
  vt_event *event = vt_test_event(c, 0);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 10);
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_OK(c, vt_event_wait(event, 0));
  EXPECT_OK(c, vt_event_wait(event, 1000));
  EXPECT_OK(c, vt_event_wait(event, VT_WAIT_FOREVER));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_OK(c, vt_queue_after_event(queue, event));
  EXPECT_OK(c, vt_memset(queue, block, 1, 10));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, block, 10);
}

static void bad_event_calls_are_refused(vt_case *c) {
  vt_event *event = NULL;
  vt_queue *queue = vt_test_queue(c);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_event", vt_event_create(vt_test_device(c), 0, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "0x80", vt_event_create(vt_test_device(c), 0x80, &event));
  EXPECT_TRUE(c, event == NULL);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_event_record(NULL, queue));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_event_synchronize(NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_event_wait(NULL, 5));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_event_query(NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_queue_after_event(queue, NULL));
  event = vt_test_event(c, 0);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_event_record(event, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_queue_after_event(NULL, event));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_device", vt_event_get_device(event, NULL));
}

static void event_ids_grow(vt_case *c) {
  uint64_t last = 0;
  for (int i = 0; i < 20; i++) {
    vt_event *event = NULL;
    REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
    EXPECT_TRUE(c, vt_event_get_id(event) > last);
    last = vt_event_get_id(event);
    vt_event_release(event);
  }
}

static void a_record_covers_the_work_before_it(vt_case *c) {
  static const uint32_t kinds[] = {0, VT_EVENT_BLOCKING};
  for (size_t i = 0; i < 2; i++) {
    vt_queue *queue = vt_test_queue(c);
    vt_event *event = vt_test_event(c, kinds[i]);
    unsigned char *block = vt_test_alloc(c, 50000);
    for (int round = 1; round <= 30; round++) {
      EXPECT_OK(c, vt_memset(queue, block, round, 50000));
      EXPECT_OK(c, vt_event_record(event, queue));
      vt_status status = VT_NOT_READY;
      switch (round % 4) {
        case 0:
          status = vt_event_synchronize(event);
          break;
        case 1:
          status = vt_event_wait(event, VT_WAIT_FOREVER);
          break;
        case 2:
          status = vt_event_wait(event, UINT64_C(50000000000));
          break;
        default:
          while ((status = vt_event_query(event)) == VT_NOT_READY) {
          }
      }
      EXPECT_EQ(c, VT_OK, status);
      EXPECT_FILLED(c, round, block, 50000);
    }
  }
}

static void a_pending_event_polls_and_times_out(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  vt_event *blocking = vt_test_event(c, VT_EVENT_BLOCKING);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_event_record(blocking, queue));
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_query(event));
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_wait(event, 0));
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_wait(blocking, 0));
  uint64_t begin = vt_test_now_ns();
  EXPECT_STATUS(c, VT_ERR_TIMEOUT, vt_event_wait(event, 20000000));
  EXPECT_TRUE(c, vt_test_now_ns() - begin >= 20000000);
  EXPECT_STATUS(c, VT_ERR_TIMEOUT, vt_event_wait(blocking, 20000000));
  EXPECT_TRUE(c, vt_test_now_ns() - begin >= 40000000);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_event_wait(event, VT_WAIT_FOREVER));
  EXPECT_OK(c, vt_event_synchronize(blocking));
}

// A queue takes the latest record at the time of the call: a later record of the same event doesn't move it.
static void a_wait_keeps_the_record_it_took(vt_case *c) {
  vt_queue *first = vt_test_queue(c);
  vt_queue *second = vt_test_queue(c);
  vt_queue *waiting = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  _Atomic int32_t calls = 0;
  EXPECT_OK(c, vt_queue_host_func(first, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_event_record(event, first));
  EXPECT_OK(c, vt_queue_after_event(waiting, event));
  EXPECT_OK(c, vt_queue_host_func(second, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_event_record(event, second));
  EXPECT_OK(c, vt_queue_host_func(waiting, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_synchronize(waiting));
  EXPECT_EQ(c, 2, value_of(&calls));
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_query(event));
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_event_synchronize(event));
}

static void an_event_may_be_released_at_once(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 1000);
  unsigned char *copy = vt_test_alloc(c, 1000);
  for (int i = 1; i <= 40; i++) {
    vt_event *event = NULL;
    vt_event *back = NULL;
    REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
    REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &back));
    EXPECT_OK(c, vt_memset(a, block, i, 1000));
    EXPECT_OK(c, vt_event_record(event, a));
    EXPECT_OK(c, vt_queue_after_event(b, event));
    vt_event_release(event);
    EXPECT_OK(c, vt_copy(b, copy, block, 1000));
    EXPECT_OK(c, vt_event_record(back, b));
    EXPECT_OK(c, vt_queue_after_event(a, back));
    vt_event_release(back);
    if (i % 10 == 0) {
      EXPECT_OK(c, vt_queue_synchronize(b));
      EXPECT_FILLED(c, i, copy, 1000);
    }
  }
}

static void an_event_outlives_its_queue(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  vt_event *event = vt_test_event(c, 0);
  unsigned char *block = vt_test_alloc(c, 1000);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_memset(queue, block, 9, 1000));
  EXPECT_OK(c, vt_event_record(event, queue));
  vt_queue_release(queue);
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_FILLED(c, 9, block, 1000);
  // Queues that come later may use the memory of the first one; the event must not take them for it.
  vt_queue *later = vt_test_queue(c);
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_OK(c, vt_queue_after_event(later, event));
  EXPECT_OK(c, vt_queue_synchronize(later));
}

static void fork_and_join_forty_times(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  vt_event *fork_event = vt_test_event(c, 0);
  vt_event *join_event = vt_test_event(c, 0);
  uint32_t *value = vt_test_alloc(c, 4000);
  uint32_t *side = vt_test_alloc(c, 4000);
  uint32_t *result = vt_test_pinned(c, 40 * 4000);
  for (int layer = 0; layer < 40; layer++) {
    EXPECT_OK(c, vt_memset(main_queue, value, layer + 1, 4000));
    EXPECT_OK(c, vt_event_record(fork_event, main_queue));
    EXPECT_OK(c, vt_queue_after_event(side_queue, fork_event));
    EXPECT_OK(c, vt_copy(side_queue, side, value, 4000));
    EXPECT_OK(c, vt_event_record(join_event, side_queue));
    EXPECT_OK(c, vt_queue_after_event(main_queue, join_event));
    EXPECT_OK(c, vt_copy(main_queue, result + 1000 * layer, side, 4000));
  }
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
  for (int layer = 0; layer < 40; layer++) {
    EXPECT_FILLED(c, layer + 1, result + 1000 * layer, 4000);
  }
}

// What an engine does for asynchronous output: a pool of slots, the host looks one step later.
static void output_is_awaited_one_step_later(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *copy_queue = vt_test_queue(c);
  unsigned char *device = vt_test_alloc(c, 4 * 2048);
  unsigned char *host = vt_test_pinned(c, 4 * 2048);
  vt_event *done[4];
  vt_event *copied[4];
  for (int slot = 0; slot < 4; slot++) {
    done[slot] = vt_test_event(c, 0);
    copied[slot] = vt_test_event(c, VT_EVENT_BLOCKING);
  }
  for (int step = 0; step < 40; step++) {
    int slot = step % 4;
    EXPECT_OK(c, vt_memset(main_queue, device + slot * 2048, step, 2048));
    EXPECT_OK(c, vt_event_record(done[slot], main_queue));
    EXPECT_OK(c, vt_queue_after_event(copy_queue, done[slot]));
    EXPECT_OK(c, vt_copy(copy_queue, host + slot * 2048, device + slot * 2048, 2048));
    EXPECT_OK(c, vt_event_record(copied[slot], copy_queue));
    if (step > 0) {
      int last = (step - 1) % 4;
      EXPECT_OK(c, vt_event_synchronize(copied[last]));
      EXPECT_FILLED(c, step - 1, host + last * 2048, 2048);
    }
  }
}

static void timed_events_measure(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_event *start = vt_test_event(c, VT_EVENT_TIMING);
  vt_event *end = vt_test_event(c, VT_EVENT_TIMING | VT_EVENT_BLOCKING);
  vt_event *plain = vt_test_event(c, 0);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  uint64_t ns = 0;
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "never recorded", vt_event_get_elapsed(start, end, &ns));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "VT_EVENT_TIMING", vt_event_get_elapsed(plain, end, &ns));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ns", vt_event_get_elapsed(start, end, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_event_get_elapsed(NULL, end, &ns));
  uint64_t before = vt_test_now_ns();
  EXPECT_OK(c, vt_event_record(start, queue));
  if (vt_test_has(c, NEED_WORKER)) {
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  }
  vt_test_sleep_ns(10000000);
  EXPECT_OK(c, vt_event_record(end, queue));
  if (vt_test_has(c, NEED_WORKER)) {
    EXPECT_STATUS(c, VT_NOT_READY, vt_event_get_elapsed(start, end, &ns));
    vt_test_latch_open(&gate);
  }
  EXPECT_OK(c, vt_event_synchronize(end));
  uint64_t all = vt_test_now_ns() - before;
  EXPECT_OK(c, vt_event_get_elapsed(start, end, &ns));
  EXPECT_TRUE(c, ns >= (vt_test_has(c, NEED_WORKER) ? 1 : 9000000) && ns <= all);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "before", vt_event_get_elapsed(end, start, &ns));
  EXPECT_OK(c, vt_event_get_elapsed(end, end, &ns));
  EXPECT_EQ(c, 0, ns);
}

// A record that is refused leaves the event at the record before it.
static void a_refused_record_leaves_a_timed_event_as_it_was(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.flags |= VT_QUEUE_FAIL_FULL;
  options.ring_capacity = 4;
  vt_queue *queue = vt_test_queue_with(c, &options);
  vt_event *start = vt_test_event(c, VT_EVENT_TIMING);
  vt_event *end = vt_test_event(c, VT_EVENT_TIMING);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  _Atomic int32_t calls = 0;
  uint64_t before = 0;
  uint64_t after = 0;
  EXPECT_OK(c, vt_event_record(start, queue));
  EXPECT_OK(c, vt_event_record(end, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_event_get_elapsed(start, end, &before));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  while (vt_queue_host_func(queue, vt_test_host_count, &calls, NULL) == VT_OK) {
  }
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_record(end, queue));
  EXPECT_OK(c, vt_event_query(end));
  EXPECT_OK(c, vt_event_get_elapsed(start, end, &after));
  EXPECT_EQ(c, before, after);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_event_get_elapsed(start, end, &after));
  EXPECT_EQ(c, before, after);
  EXPECT_OK(c, vt_event_record(end, queue));
  EXPECT_OK(c, vt_event_synchronize(end));
  EXPECT_OK(c, vt_event_get_elapsed(start, end, &after));
  EXPECT_TRUE(c, after > before);
}

// The stamp of a record that was still pending when the next one was refused counts all the same.
static void a_refused_record_leaves_a_pending_one_to_be_timed(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.flags |= VT_QUEUE_FAIL_FULL;
  options.ring_capacity = 4;
  vt_queue *queue = vt_test_queue_with(c, &options);
  vt_event *event = vt_test_event(c, VT_EVENT_TIMING);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  _Atomic int32_t calls = 0;
  uint64_t ns = 1;
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_event_record(event, queue));
  while (vt_queue_host_func(queue, vt_test_host_count, &calls, NULL) == VT_OK) {
  }
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_record(event, queue));
  EXPECT_STATUS(c, VT_NOT_READY, vt_event_get_elapsed(event, event, &ns));
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_OK(c, vt_event_get_elapsed(event, event, &ns));
  EXPECT_EQ(c, 0, ns);
  EXPECT_OK(c, vt_queue_synchronize(queue));  // the last functions still count in this frame
}

// A pinned block or an event of one device on a queue of another: an error that names both, never a wrong handle.
static void events_of_another_device_are_refused(vt_case *c) {
  vt_device other = {VT_DEVICE_CPU, 1};
  vt_queue *queue0 = vt_test_queue(c);
  vt_queue *queue1 = vt_test_queue_on(c, other);
  vt_event *event0 = vt_test_event(c, 0);
  vt_event *event1 = NULL;
  unsigned char *block = vt_test_alloc(c, 10);
  REQUIRE_OK(c, vt_event_create(other, 0, &event1));
  for (int round = 0; round < 100; round++) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "cpu:1", vt_event_record(event0, queue1));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "cpu:0", vt_event_record(event1, queue0));
    EXPECT_OK(c, vt_event_record(event0, queue0));
    EXPECT_OK(c, vt_event_record(event1, queue1));
  }
  // Devices of one backend may wait for each other.
  EXPECT_OK(c, vt_memset(queue1, block, 3, 10));
  EXPECT_OK(c, vt_event_record(event1, queue1));
  EXPECT_OK(c, vt_queue_after_event(queue0, event1));
  EXPECT_OK(c, vt_queue_synchronize(queue0));
  EXPECT_FILLED(c, 3, block, 10);
  vt_event_release(event1);
}

static void backends_that_can_not_wait_for_each_other_say_so(vt_case *c) {
  vt_device other = vt_test_has(c, NEED_TOY) ? (vt_device){VT_DEVICE_CPU, 0} : (vt_device){VT_DEVICE_METAL, 0};
  vt_queue *queue = vt_test_queue(c);
  vt_event *event = NULL;
  REQUIRE_OK(c, vt_event_create(other, 0, &event));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "metal:0", vt_queue_after_event(queue, event));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "metal:0", vt_event_record(event, queue));
  vt_event_release(event);
}

typedef struct shared_event {
  vt_queue *queue;
  vt_event *event;
} shared_event;

static void record_and_wait(vt_case *c, int32_t index, void *arg) {
  shared_event *shared = arg;
  for (int i = 0; i < 200; i++) {
    if (index == 0) {
      EXPECT_OK(c, vt_event_record(shared->event, shared->queue));
    } else if (index == 1) {
      EXPECT_OK(c, vt_event_synchronize(shared->event));
    } else {
      EXPECT_OK(c, vt_queue_after_event(shared->queue, shared->event));
    }
  }
}

static void threads_may_share_an_event(vt_case *c) {
  shared_event shared = {vt_test_queue(c), vt_test_event(c, 0)};
  vt_test_threads(c, 3, record_and_wait, &shared);
  EXPECT_OK(c, vt_queue_synchronize(shared.queue));
}

// Two threads that capture at once and use one event: each finds its own record or is refused, and both captures stay whole. A
// third one records it outside of captures.

typedef struct captured_event {
  vt_event *event;
  vt_queue *queues[5];
  _Atomic int32_t joins;
} captured_event;

static void capture_with_shared_event(vt_case *c, captured_event *shared, vt_queue *queue, vt_queue *side) {
  vt_event *back = NULL;
  unsigned char byte = 0;
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &back));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_event_record(back, queue));
  EXPECT_OK(c, vt_queue_after_event(side, back));
  EXPECT_OK(c, vt_memset(queue, &byte, 1, 1));
  EXPECT_OK(c, vt_event_record(shared->event, queue));
  vt_status joined = vt_queue_after_event(side, shared->event);
  EXPECT_TRUE(c, joined == VT_OK || joined == VT_ERR_FAILED_PRECONDITION);
  EXPECT_OK(c, vt_memset(side, &byte, 2, 1));
  EXPECT_OK(c, vt_event_record(back, side));
  EXPECT_OK(c, vt_queue_after_event(queue, back));
  vt_graph *graph = NULL;
  EXPECT_STATUS(c, joined, vt_graph_end_capture(queue, &graph));
  if (graph != NULL) {
    EXPECT_OK(c, vt_graph_launch(graph, queue));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_EQ(c, 2, byte);
    vt_graph_release(graph);
    // relaxed: read when the threads were joined.
    atomic_fetch_add_explicit(&shared->joins, 1, memory_order_relaxed);
  }
  vt_event_release(back);
}

static void use_shared_event(vt_case *c, int32_t index, void *arg) {
  captured_event *shared = arg;
  for (int i = 0; i < 200; i++) {
    if (index == 2) {
      EXPECT_OK(c, vt_event_record(shared->event, shared->queues[4]));
      vt_status status = vt_event_query(shared->event);
      EXPECT_TRUE(c, status == VT_OK || status == VT_NOT_READY || status == VT_ERR_FAILED_PRECONDITION);
    } else {
      capture_with_shared_event(c, shared, shared->queues[2 * index], shared->queues[2 * index + 1]);
    }
  }
}

static void threads_may_record_one_event_into_their_own_captures(vt_case *c) {
  for (int32_t threads = 2; threads <= 3; threads++) {
    captured_event shared = {.event = vt_test_event(c, 0)};
    for (int i = 0; i < 5; i++) {
      shared.queues[i] = vt_test_queue(c);
    }
    vt_test_threads(c, threads, use_shared_event, &shared);
    EXPECT_TRUE(c, shared.joins > 0);
    EXPECT_OK(c, vt_event_record(shared.event, shared.queues[0]));
    EXPECT_OK(c, vt_event_synchronize(shared.event));
  }
}

const vt_test_case vt_cases_event[] = {
    {"an_event_that_was_never_recorded_is_complete", REPORTS, an_event_that_was_never_recorded_is_complete},
    {"bad_event_calls_are_refused", 0, bad_event_calls_are_refused},
    {"event_ids_grow", 0, event_ids_grow},
    {"a_record_covers_the_work_before_it", 0, a_record_covers_the_work_before_it},
    {"a_pending_event_polls_and_times_out", NEED_WORKER, a_pending_event_polls_and_times_out},
    {"a_wait_keeps_the_record_it_took", NEED_WORKER, a_wait_keeps_the_record_it_took},
    {"an_event_may_be_released_at_once", 0, an_event_may_be_released_at_once},
    {"an_event_outlives_its_queue", 0, an_event_outlives_its_queue},
    {"fork_and_join_forty_times", 0, fork_and_join_forty_times},
    {"output_is_awaited_one_step_later", 0, output_is_awaited_one_step_later},
    {"timed_events_measure", NEED_EVENT_TIMING, timed_events_measure},
    {"a_refused_record_leaves_a_timed_event_as_it_was", NEED_EVENT_TIMING | NEED_WORKER,
     a_refused_record_leaves_a_timed_event_as_it_was},
    {"a_refused_record_leaves_a_pending_one_to_be_timed", NEED_EVENT_TIMING | NEED_WORKER,
     a_refused_record_leaves_a_pending_one_to_be_timed},
    {"threads_may_record_one_event_into_their_own_captures", NEED_GRAPH | REPORTS,
     threads_may_record_one_event_into_their_own_captures},
    {"events_of_another_device_are_refused", NEED_DEVICES, events_of_another_device_are_refused},
    {"backends_that_can_not_wait_for_each_other_say_so", 0, backends_that_can_not_wait_for_each_other_say_so},
    {"threads_may_share_an_event", REPORTS, threads_may_share_an_event},
    VT_TEST_END};
