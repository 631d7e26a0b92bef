// validate_graph.c: the validation layer inside captures, at launches, and over collectives.
#include "validate_rig.h"

static void release_graph(void *graph) {
  vt_graph_release(graph);
}

// A graph on queue a that fills x and copies it to y.
static vt_graph *capture_copy(vt_case *c, const rig *r) {
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(r->a));
  EXPECT_OK(c, vt_memset(r->a, r->x, 1, BYTES));
  EXPECT_OK(c, vt_copy(r->a, r->y, r->x, BYTES));
  EXPECT_OK(c, vt_graph_end_capture(r->a, &graph));
  return graph;
}

static void branches_without_order_race(vt_case *c) {
  rig r = make_rig(c);
  for (int joined = 0; joined < 2; joined++) {
    EXPECT_OK(c, vt_graph_begin_capture(r.a));
    order(c, r.a, r.b);
    EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
    EXPECT_OK(c, vt_memset(r.b, r.y, 1, BYTES));
    if (joined) {
      order(c, r.a, r.b);
    }
    EXPECT_QUIET(c);
    EXPECT_OK(c, vt_copy(r.b, r.y, r.x, BYTES));
    if (joined) {
      EXPECT_QUIET(c);
    } else {
      EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_copy", "vt_memset");
      EXPECT_EQ(c, vt_queue_get_id(r.b), vt_test_last_report(c)->now.queue_id);
      EXPECT_EQ(c, vt_queue_get_id(r.a), vt_test_last_report(c)->before.queue_id);
    }
    order(c, r.b, r.a);
    EXPECT_OK(c, vt_memset(r.a, r.y, 1, BYTES));  // behind both
    EXPECT_QUIET(c);
    EXPECT_OK(c, vt_graph_abort_capture(r.a));
  }
}

// Recording is no use: what is pending outside doesn't matter until the launch.
static void a_launch_uses_what_it_captured(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_OK(c, vt_memset(r.b, r.x, 2, BYTES));
  vt_graph *graph = capture_copy(c, &r);
  REQUIRE_TRUE(c, graph != NULL);
  vt_test_defer(c, release_graph, graph);
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_graph_launch", "vt_memset");
  order(c, r.a, r.b);
  EXPECT_OK(c, vt_memset(r.b, r.y, 2, BYTES));
  EXPECT_QUIET(c);
  order(c, r.b, r.a);
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_touch(r.b, r.y, BYTES, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_validate_touch", "vt_graph_launch");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  EXPECT_OK(c, vt_validate_host_access(r.y, BYTES, VT_TOUCH_WRITE));
}

// One graph runs one launch at a time; two graphs don't wait for each other.
static void launches_of_one_graph_do_not_race(vt_case *c) {
  rig r = make_rig(c);
  vt_graph *graph = capture_copy(c, &r);
  REQUIRE_TRUE(c, graph != NULL);
  vt_test_defer(c, release_graph, graph);
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  EXPECT_OK(c, vt_graph_launch(graph, r.b));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
}

static void two_graphs_race(vt_case *c) {
  rig r = make_rig(c);
  vt_graph *graph = capture_copy(c, &r);
  vt_graph *other = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(r.b));
  EXPECT_OK(c, vt_memset(r.b, r.y, 1, 1));
  EXPECT_OK(c, vt_graph_end_capture(r.b, &other));
  REQUIRE_TRUE(c, graph != NULL && other != NULL);
  vt_test_defer(c, release_graph, graph);
  vt_test_defer(c, release_graph, other);
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  EXPECT_OK(c, vt_graph_launch(other, r.b));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_graph_launch", "vt_graph_launch");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
}

static void blocks_stay_as_long_as_their_graph(vt_case *c) {
  rig r = make_rig(c);
  vt_device device = vt_test_device(c);
  void *block = NULL;
  vt_graph *graph = NULL;
  REQUIRE_OK(c, vt_alloc(device, BYTES, &block));
  EXPECT_OK(c, vt_graph_begin_capture(r.a));
  EXPECT_OK(c, vt_memset(r.a, block, 1, BYTES));
  EXPECT_OK(c, vt_graph_end_capture(r.a, &graph));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_free(device, block));
  EXPECT_REPORT(c, VT_VALIDATE_FREED_UNDER_GRAPH, "vt_free", "vt_memset");
  // The layer has kept the block, so this does no harm here.
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_FREE, "vt_graph_launch", "vt_free");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  vt_graph_release(graph);
  // In the right order.
  REQUIRE_OK(c, vt_alloc(device, BYTES, &block));
  EXPECT_OK(c, vt_graph_begin_capture(r.a));
  EXPECT_OK(c, vt_memset(r.a, block, 1, BYTES));
  EXPECT_OK(c, vt_graph_end_capture(r.a, &graph));
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  vt_graph_release(graph);
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_free(device, block));
  EXPECT_QUIET(c);
}

static void a_released_graph_may_still_be_running(vt_case *c) {
  rig r = make_rig(c);
  vt_graph *graph = capture_copy(c, &r);
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  vt_graph_release(graph);
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_READ));
  if (vt_test_has(c, NEED_SYNC)) {
    EXPECT_QUIET(c);
  } else {
    EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_validate_host_access", "vt_graph_launch");
  }
  EXPECT_OK(c, vt_queue_synchronize(r.a));
}

// A graph goes on using the slab whose arena was reset for the capture of the next one.
static void an_arena_may_be_reset_under_a_graph(vt_case *c) {
  rig r = make_rig(c);
  vt_arena *arena = vt_test_arena(c, 1024);
  vt_graph *graphs[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    void *part = NULL;
    EXPECT_OK(c, vt_arena_reset(arena));
    EXPECT_OK(c, vt_graph_begin_capture(r.a));
    EXPECT_OK(c, vt_arena_alloc(arena, 100 + (size_t)i, &part));
    EXPECT_OK(c, vt_memset(r.a, part, i, 100));
    EXPECT_OK(c, vt_graph_end_capture(r.a, &graphs[i]));
    REQUIRE_TRUE(c, graphs[i] != NULL);
    vt_test_defer(c, release_graph, graphs[i]);
  }
  EXPECT_OK(c, vt_arena_reset(arena));
  EXPECT_OK(c, vt_graph_launch(graphs[0], r.a));
  EXPECT_OK(c, vt_graph_launch(graphs[1], r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_QUIET(c);
}

static void a_stored_graph_is_followed_too(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_OK(c, vt_graph_begin_capture(r.a));
  EXPECT_OK(c, vt_validate_touch(r.a, r.x, BYTES, VT_TOUCH_WRITE));
  EXPECT_OK(c, vt_memset(r.a, r.y, 1, BYTES));
  EXPECT_OK(c, vt_graph_end_capture(r.a, NULL));
  EXPECT_OK(c, vt_queue_replay(r.a));
  EXPECT_OK(c, vt_validate_touch(r.b, r.x, 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_validate_touch", "vt_queue_replay");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_validate_touch(r.b, r.x, 1, VT_TOUCH_WRITE));
  EXPECT_QUIET(c);
}

static void what_a_function_in_a_graph_told_is_ordered(vt_case *c) {
  rig r = make_rig(c);
  vt_test_latch at_door = VT_TEST_LATCH_INIT;
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(r.a));
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_queue_host_func(r.a, vt_test_host_wait, &at_door, NULL));
  EXPECT_OK(c, vt_graph_end_capture(r.a, &graph));
  REQUIRE_TRUE(c, graph != NULL);
  EXPECT_OK(c, vt_graph_launch(graph, r.a));
  vt_test_latch_await_waiter(&at_door);
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_READ));
  EXPECT_QUIET(c);
  vt_test_latch_open(&at_door);
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  vt_graph_release(graph);
}

// One report of a breach. Answers where the call came from.
static const void *breach(vt_case *c, const char *function, const char *before) {
  EXPECT_REPORT(c, VT_VALIDATE_CAPTURE, function, before);
  return vt_test_last_report(c) == NULL ? NULL : vt_test_last_report(c)->now.caller;
}

// An address inside the library would be the same for two calls.
static void breaches_of_a_capture_name_who_called(vt_case *c) {
  static const char begin[] = "vt_graph_begin_capture";
  rig r = make_rig(c);
  const void *callers[10];
  for (size_t i = 0; i < 10; i++) {  // the first failure of a capture is reported
    EXPECT_OK(c, vt_graph_begin_capture(r.a));
    EXPECT_TRUE(c, i != 0 || vt_queue_synchronize(r.a) < 0);
    EXPECT_TRUE(c, i != 1 || vt_queue_synchronize(r.a) < 0);
    EXPECT_TRUE(c, i != 2 || vt_queue_host_func(r.a, NULL, NULL, NULL) < 0);
    EXPECT_TRUE(c, i != 3 || vt_queue_host_func(r.a, NULL, NULL, NULL) < 0);
    EXPECT_TRUE(c, i != 4 || vt_memset(r.a, r.x, 256, 1) < 0);
    EXPECT_TRUE(c, i != 5 || vt_memset(r.a, r.x, 256, 1) < 0);
    EXPECT_TRUE(c, i != 6 || vt_graph_begin_capture(r.a) < 0);
    EXPECT_TRUE(c, i != 7 || vt_graph_begin_capture(r.a) < 0);
    EXPECT_TRUE(c, i != 8 || vt_pool_trim(vt_test_device(c), 0) < 0);
    EXPECT_TRUE(c, i != 9 || vt_pool_trim(vt_test_device(c), 0) < 0);
    static const char *const functions[] = {"vt_queue_synchronize", "vt_queue_host_func", "vt_memset", begin, "vt_pool_trim"};
    callers[i] = breach(c, functions[i / 2], i < 8 ? begin : NULL);
    EXPECT_OK(c, vt_graph_abort_capture(r.a));
  }
  for (size_t i = 0; i < 10; i += 2) {
    EXPECT_TRUE(c, callers[i] != callers[i + 1]);
  }
}

static void breaches_of_a_capture_are_reports(vt_case *c) {
  rig r = make_rig(c);
  void *block = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(r.a));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_alloc(vt_test_device(c), 1, &block));
  EXPECT_REPORT(c, VT_VALIDATE_CAPTURE, "vt_alloc", NULL);
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_queue_synchronize(r.a));
  EXPECT_REPORT(c, VT_VALIDATE_CAPTURE, "vt_queue_synchronize", "vt_graph_begin_capture");
  EXPECT_TRUE(c, strstr(vt_test_last_report(c)->message, "illegal inside a capture") != NULL);
  EXPECT_OK(c, vt_graph_abort_capture(r.a));
  EXPECT_OK(c, vt_graph_begin_capture(r.a));
  order(c, r.a, r.b);
  EXPECT_OK(c, vt_memset(r.b, r.x, 1, 1));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_graph_end_capture(r.a, NULL));
  EXPECT_REPORT(c, VT_VALIDATE_CAPTURE, "vt_graph_end_capture", "vt_graph_begin_capture");
}

// Of a world of one; more ranks use their buffers in the same way.
static void collectives_use_their_buffers(vt_case *c) {
  rig r = make_rig(c);
  vt_comm_group *group = vt_test_group(c, 1, NULL);
  vt_comm *comm = NULL;
  REQUIRE_OK(c, vt_comm_group_get_comm(group, 0, &comm));
  EXPECT_OK(c, vt_comm_all_reduce(comm, r.a, r.x, r.y, 10, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_copy(r.b, r.x + 40, r.y + 40, 100));  // behind both buffers
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.b, r.y + 39, 1, 1));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_comm_all_reduce");
  EXPECT_OK(c, vt_memset(r.b, r.x + 39, 1, 1));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_comm_all_reduce");
  order(c, r.b, r.a);
  EXPECT_OK(c, vt_comm_all_gather(comm, r.a, r.x, r.y, 10, VT_DTYPE_F32, NULL));
  EXPECT_OK(c, vt_comm_barrier(comm, r.b, NULL));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  EXPECT_OK(c, vt_comm_all_reduce(comm, r.a, r.x, r.x, BYTES, VT_DTYPE_U8, VT_REDUCE_SUM, NULL));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_queue_synchronize(r.a));
}

static void a_collective_stays_in_its_block(vt_case *c) {
  rig r = make_rig(c);
  void *slab = NULL;
  vt_comm_group *group = vt_test_group(c, 1, NULL);
  vt_comm *comm = NULL;
  REQUIRE_OK(c, vt_comm_group_get_comm(group, 0, &comm));
  vt_arena *arena = vt_test_arena(c, 1024);
  REQUIRE_OK(c, vt_arena_alloc(arena, 100, &slab));
  EXPECT_OK(c, vt_comm_all_reduce(comm, r.a, slab, slab, 26, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_comm_all_reduce", "vt_arena_alloc");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
}

static void batches_use_their_buffers_when_they_end(vt_case *c) {
  rig r = make_rig(c);
  vt_comm_group *group = vt_test_group(c, 2, NULL);
  vt_comm *comms[2] = {NULL, NULL};
  for (int32_t rank = 0; rank < 2; rank++) {
    REQUIRE_OK(c, vt_comm_group_get_comm(group, rank, &comms[rank]));
  }
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_all_reduce(comms[0], r.a, r.x, r.x, 10, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_reduce(comms[1], r.b, r.y, r.y, 10, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_batch_end());
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.b, r.x, 1, 1));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_comm_batch_end");
  EXPECT_TRUE(c, vt_test_last_report(c)->before.caller != NULL);
  // What a batch dropped was never used.
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_all_reduce(comms[0], r.a, r.x, r.x, 10, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_reduce(comms[1], r.b, r.y, r.y, 10, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_batch_abandon());
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_WRITE));
  EXPECT_QUIET(c);
}

// Of the pool: freed memory is the pool's, reuse is ordered on the queue that frees, and asks for an event elsewhere.
static void memory_of_the_pool_is_followed(vt_case *c) {
  rig r = make_rig(c);
  void *block = NULL;
  void *again = NULL;
  REQUIRE_OK(c, vt_alloc_async(r.a, BYTES, &block));
  EXPECT_OK(c, vt_memset(r.b, block, 1, BYTES));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_alloc_async");
  EXPECT_OK(c, vt_free_async(r.a, block));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_free_async", "vt_memset");
  EXPECT_OK(c, vt_memset(r.a, block, 1, BYTES));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_FREE, "vt_memset", "vt_free_async");
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  REQUIRE_OK(c, vt_alloc_async(r.a, BYTES - 1, &again));
  EXPECT_OK(c, vt_memset(r.a, again, 1, BYTES - 1));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_touch(r.a, again, BYTES, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", "vt_alloc_async");
  order(c, r.a, r.b);
  EXPECT_OK(c, vt_memset(r.b, again, 1, 10));
  EXPECT_OK(c, vt_free_async(r.b, again));
  EXPECT_QUIET(c);
  REQUIRE_OK(c, vt_alloc_async(r.a, BYTES, &block));
  EXPECT_OK(c, vt_memset(r.a, block, 1, 10));
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
  EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_free", "vt_memset");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  EXPECT_OK(c, vt_pool_trim(vt_test_device(c), 0));
}

static void copies_of_many_ranges_are_followed(vt_case *c) {
  rig r = make_rig(c);
  vt_copy_op ops[] = {{r.x, r.y, 10}, {r.x + 100, r.y + 100, 10}};
  EXPECT_OK(c, vt_copy_batch(r.a, ops, 2));
  EXPECT_OK(c, vt_memset(r.b, r.x + 10, 1, 90));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.b, r.x + 109, 1, 1));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_copy_batch");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  // Two columns of 8 bytes; what lies between them is free.
  EXPECT_OK(c, vt_copy_2d(r.a, r.x, 32, r.y, 16, 8, 4));
  EXPECT_OK(c, vt_copy_2d(r.b, r.x + 8, 32, r.y, 16, 8, 4));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.b, r.x + 3 * 32 + 7, 1, 1));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_copy_2d");
  EXPECT_OK(c, vt_queue_synchronize(r.a));
  EXPECT_OK(c, vt_queue_synchronize(r.b));
}

const vt_test_case vt_cases_validate_graph[] = {
    {"branches_without_order_race", NEED_GRAPH, branches_without_order_race},
    {"a_launch_uses_what_it_captured", NEED_GRAPH | NEED_ASYNC | NEED_NO_TSAN, a_launch_uses_what_it_captured},
    {"launches_of_one_graph_do_not_race", NEED_GRAPH | NEED_ASYNC, launches_of_one_graph_do_not_race},
    {"two_graphs_race", NEED_GRAPH | NEED_ASYNC | NEED_NO_TSAN, two_graphs_race},
    {"blocks_stay_as_long_as_their_graph", NEED_GRAPH, blocks_stay_as_long_as_their_graph},
    {"a_released_graph_may_still_be_running", NEED_GRAPH, a_released_graph_may_still_be_running},
    {"an_arena_may_be_reset_under_a_graph", NEED_GRAPH, an_arena_may_be_reset_under_a_graph},
    {"a_stored_graph_is_followed_too", NEED_GRAPH | NEED_ASYNC, a_stored_graph_is_followed_too},
    {"what_a_function_in_a_graph_told_is_ordered", NEED_GRAPH | NEED_WORKER, what_a_function_in_a_graph_told_is_ordered},
    {"breaches_of_a_capture_are_reports", NEED_GRAPH, breaches_of_a_capture_are_reports},
    {"breaches_of_a_capture_name_who_called", NEED_GRAPH, breaches_of_a_capture_name_who_called},
    {"collectives_use_their_buffers", NEED_COMM | NEED_ASYNC | NEED_NO_TSAN, collectives_use_their_buffers},
    {"a_collective_stays_in_its_block", NEED_COMM, a_collective_stays_in_its_block},
    {"batches_use_their_buffers_when_they_end", NEED_COMM | NEED_ASYNC | NEED_NO_TSAN, batches_use_their_buffers_when_they_end},
    {"memory_of_the_pool_is_followed", NEED_WORKER | NEED_NO_TSAN, memory_of_the_pool_is_followed},
    {"copies_of_many_ranges_are_followed", NEED_ASYNC | NEED_NO_TSAN, copies_of_many_ranges_are_followed},
    VT_TEST_END};
