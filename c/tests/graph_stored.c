// graph_stored.c: the graph that a queue keeps.
#include "vt_test.h"

#include <stdatomic.h>

static void store_fill(vt_case *c, vt_queue *queue, void *block, int32_t value) {
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, value, 100));
  EXPECT_OK(c, vt_graph_end_capture(queue, NULL));
}

static void replay_before_any_capture_is_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 100);
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "keeps no graph", vt_queue_replay(queue));
  // An aborted capture, or one whose graph went to the caller, leaves nothing behind.
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_graph_abort_capture(queue));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_queue_replay(queue));
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_queue_replay(queue));
  vt_graph_release(graph);
  store_fill(c, queue, block, 5);
  EXPECT_OK(c, vt_queue_replay(queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 5, block, 100);
}

static void a_second_capture_replaces_the_stored_graph(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 100);
  for (int value = 1; value <= 5; value++) {
    store_fill(c, queue, block, value);
    for (int i = 0; i < 3; i++) {
      EXPECT_OK(c, vt_memset(queue, block, 200, 100));
      EXPECT_OK(c, vt_queue_replay(queue));
    }
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_FILLED(c, value, block, 100);
  }
  EXPECT_TRUE(c, vt_handle_get_live_count(VT_HANDLE_GRAPH) >= 1);
}

static void a_failing_end_keeps_the_old_graph(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 100);
  store_fill(c, queue, block, 7);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, 8, 100));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_memset(queue, block, -8, 100));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_graph_end_capture(queue, NULL));
  EXPECT_OK(c, vt_queue_replay(queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 7, block, 100);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_graph_abort_capture(queue));
  EXPECT_OK(c, vt_queue_replay(queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void each_queue_keeps_its_own_graph(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 200);
  store_fill(c, a, block, 1);
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_queue_replay(b));
  store_fill(c, b, block + 100, 2);
  EXPECT_OK(c, vt_queue_replay(a));
  EXPECT_OK(c, vt_queue_replay(b));
  EXPECT_OK(c, vt_queue_synchronize(a));
  EXPECT_OK(c, vt_queue_synchronize(b));
  EXPECT_FILLED(c, 1, block, 100);
  EXPECT_FILLED(c, 2, block + 100, 100);
}

// The harness sees to it that the graph goes with its queue.
static void a_stored_graph_goes_with_its_queue(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  unsigned char *block = vt_test_alloc(c, 100);
  static _Atomic int32_t drops;
  // relaxed: no other thread is about.
  atomic_store_explicit(&drops, 0, memory_order_relaxed);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, 3, 100));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_OK(c, vt_graph_end_capture(queue, NULL));
  EXPECT_OK(c, vt_queue_replay(queue));
  vt_queue_release(queue);
  // acquire: partner is the increment in the drop function.
  while (atomic_load_explicit(&drops, memory_order_acquire) < 2) {
    vt_test_sleep_ns(100000);
  }
  EXPECT_FILLED(c, 3, block, 100);
}

const vt_test_case vt_cases_graph_stored[] = {
    {"replay_before_any_capture_is_refused", NEED_GRAPH, replay_before_any_capture_is_refused},
    {"a_second_capture_replaces_the_stored_graph", NEED_GRAPH, a_second_capture_replaces_the_stored_graph},
    {"a_failing_end_keeps_the_old_graph", NEED_GRAPH | REPORTS, a_failing_end_keeps_the_old_graph},
    {"each_queue_keeps_its_own_graph", NEED_GRAPH, each_queue_keeps_its_own_graph},
    {"a_stored_graph_goes_with_its_queue", NEED_GRAPH, a_stored_graph_goes_with_its_queue},
    VT_TEST_END};
