// handle.c: references, wrong and dead handles, and what is alive.
#include "vt_test.h"

// Every function that takes a queue, an event, a graph or an arena, called with `object`, which is not one.
static void expect_not_a_queue(vt_case *c, vt_queue *object, const char *part) {
  uint64_t ticket;
  vt_device device;
  vt_graph *graph = NULL;
  char byte = 0;
  vt_event *event = vt_test_event(c, 0);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_retain(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_destroy(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_synchronize(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_query(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_get_ticket(object, &ticket));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_wait_ticket(object, 0, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_host_func(object, vt_test_host_count, NULL, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_on_destroy(object, vt_test_drop_count, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_get_device(object, &device));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_copy(object, &byte, &ticket, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_memset(object, &byte, 0, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_record(event, object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_after_event(object, event));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_begin_capture(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_end_capture(object, &graph));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_abort_capture(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_replay(object));
  EXPECT_EQ(c, 0, vt_queue_get_id(object));
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, part);
  EXPECT_TRUE(c, vt_queue_get_native(object) == NULL);
  EXPECT_EQ(c, 0, vt_queue_is_synchronous(object));
  EXPECT_EQ(c, 0, vt_queue_is_capturing(object));
}

static void expect_not_an_event(vt_case *c, vt_event *object, const char *part) {
  vt_device device;
  vt_queue *queue = vt_test_queue(c);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_retain(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_record(object, queue));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_synchronize(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_wait(object, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_query(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_queue_after_event(queue, object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_event_get_device(object, &device));
  EXPECT_EQ(c, 0, vt_event_get_id(object));
  EXPECT_TRUE(c, vt_event_get_native(object) == NULL);
}

static void expect_not_a_graph(vt_case *c, vt_graph *object, const char *part) {
  vt_device device;
  size_t count;
  vt_queue *queue = vt_test_queue(c);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_retain(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_launch(object, queue));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_get_node_count(object, &count));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_graph_get_device(object, &device));
  EXPECT_EQ(c, 0, vt_graph_get_id(object));
  EXPECT_TRUE(c, vt_graph_get_native(object) == NULL);
}

static void expect_not_an_arena(vt_case *c, vt_arena *object, const char *part) {
  vt_device device;
  void *p;
  vt_arena_mark mark = {0};
  vt_arena_stats stats = VT_ARENA_STATS_INIT;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_retain(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_alloc(object, 1, &p));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_alloc_elements(object, 1, VT_DTYPE_F32, &p));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_reset(object));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_get_mark(object, &mark));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_rewind(object, mark));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_get_stats(object, &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_arena_get_device(object, &device));
}

static void null_handles_are_refused(vt_case *c) {
  expect_not_a_queue(c, NULL, "queue is NULL");
  expect_not_an_event(c, NULL, "event is NULL");
  expect_not_a_graph(c, NULL, "graph is NULL");
  expect_not_an_arena(c, NULL, "arena is NULL");
}

static void handles_of_another_kind_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  vt_arena *arena = vt_test_arena(c, 64);
  expect_not_a_queue(c, (vt_queue *)event, "not a live queue");
  expect_not_a_queue(c, (vt_queue *)arena, "not a live queue");
  expect_not_an_event(c, (vt_event *)queue, "not a live event");
  expect_not_a_graph(c, (vt_graph *)event, "not a live graph");
  expect_not_an_arena(c, (vt_arena *)queue, "not a live arena");
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_OK(c, vt_arena_reset(arena));
}

// A dead handle is recognised as long as its memory wasn't used again, so nothing of that kind is made in between: the helpers make
// objects of other kinds only.
static void dead_handles_are_refused(vt_case *c) {
  vt_event *event = NULL;
  vt_arena *arena = NULL;
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
  vt_event_release(event);
  expect_not_an_event(c, event, "not a live event");
  REQUIRE_OK(c, vt_arena_create(vt_test_device(c), 64, &arena));
  vt_arena_release(arena);
  expect_not_an_arena(c, arena, "not a live arena");

  vt_queue *queue = NULL;
  size_t alive = vt_handle_get_live_count(VT_HANDLE_QUEUE);
  vt_queue_options options = vt_test_queue_options(c);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_queue_destroy(queue));
  while (vt_handle_get_live_count(VT_HANDLE_QUEUE) != alive) {
    vt_test_sleep_ns(100000);
  }
  expect_not_a_queue(c, queue, "not a live queue");
}

static void dead_graphs_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  vt_graph_release(graph);
  expect_not_a_graph(c, graph, "not a live graph");
}

static void releasing_null_is_fine_and_releasing_the_dead_is_noted(vt_case *c) {
  vt_event *event = NULL;
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
  (void)vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "test", "untouched");
  vt_queue_release(NULL);
  vt_event_release(NULL);
  vt_graph_release(NULL);
  vt_arena_release(NULL);
  vt_comm_release(NULL);
  vt_comm_group_release(NULL);
  EXPECT_LAST_ERROR(c, VT_ERR_INTERNAL, "untouched");
  vt_event_release(event);
  vt_event_release(event);
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, "not a live event");
  vt_queue_release((vt_queue *)event);
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, "not a live queue");
}

static void references_are_counted(vt_case *c) {
  vt_event *event = NULL;
  vt_arena *arena = NULL;
  size_t events = vt_handle_get_live_count(VT_HANDLE_EVENT);
  size_t arenas = vt_handle_get_live_count(VT_HANDLE_ARENA);
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
  REQUIRE_OK(c, vt_arena_create(vt_test_device(c), 64, &arena));
  EXPECT_EQ(c, events + 1, vt_handle_get_live_count(VT_HANDLE_EVENT));
  EXPECT_EQ(c, arenas + 1, vt_handle_get_live_count(VT_HANDLE_ARENA));
  for (int i = 0; i < 10; i++) {
    EXPECT_OK(c, vt_event_retain(event));
    EXPECT_OK(c, vt_arena_retain(arena));
  }
  for (int i = 0; i < 10; i++) {
    vt_event_release(event);
    vt_arena_release(arena);
  }
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_OK(c, vt_arena_reset(arena));
  vt_event_release(event);
  vt_arena_release(arena);
  EXPECT_EQ(c, events, vt_handle_get_live_count(VT_HANDLE_EVENT));
  EXPECT_EQ(c, arenas, vt_handle_get_live_count(VT_HANDLE_ARENA));
  EXPECT_EQ(c, 0, vt_handle_get_live_count(-1));
  EXPECT_EQ(c, 0, vt_handle_get_live_count(VT_HANDLE_KIND_COUNT));
}

// Queue, event and graph of one piece of work, given back in all orders while it is in flight.
static void everything_goes_in_any_order(vt_case *c) {
  for (int order = 0; order < 6; order++) {
    vt_queue_options options = vt_test_queue_options(c);
    vt_queue *queue = NULL;
    vt_event *event = NULL;
    vt_graph *graph = NULL;
    unsigned char *block = vt_test_alloc(c, 1000);
    vt_queue *side = vt_test_queue(c);
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
    REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
    EXPECT_OK(c, vt_graph_begin_capture(queue));
    EXPECT_OK(c, vt_memset(queue, block, order + 1, 1000));
    REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
    EXPECT_OK(c, vt_graph_launch(graph, queue));
    EXPECT_OK(c, vt_event_record(event, queue));
    EXPECT_OK(c, vt_queue_after_event(side, event));
    int left[3] = {0, 1, 2};
    for (int i = 3, k = order; i > 0; k /= i, i--) {
      int pick = k % i;
      int what = left[pick];
      left[pick] = left[i - 1];
      what == 0 ? vt_queue_release(queue) : what == 1 ? vt_event_release(event) : vt_graph_release(graph);
    }
    EXPECT_OK(c, vt_queue_synchronize(side));
    EXPECT_FILLED(c, order + 1, block, 1000);
  }
}

static void make_and_drop(vt_case *c, int32_t index, void *unused) {
  (void)unused;
  (void)index;
  for (int i = 0; i < 100; i++) {
    vt_event *event = NULL;
    vt_queue *queue = NULL;
    vt_queue_options options = vt_test_queue_options(c);
    char byte = 0;
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
    REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
    EXPECT_OK(c, vt_event_record(event, queue));
    if (i % 10 == 0) {
      EXPECT_OK(c, vt_memset(queue, &byte, 1, 1));
      EXPECT_OK(c, vt_queue_synchronize(queue));
      EXPECT_EQ(c, 1, byte);
    }
    vt_event_release(event);
    vt_queue_release(queue);
  }
}

static void threads_make_and_drop_handles_at_once(vt_case *c) {
  vt_test_threads(c, 4, make_and_drop, NULL);
}

const vt_test_case vt_cases_handle[] = {
    {"null_handles_are_refused", 0, null_handles_are_refused},
    {"handles_of_another_kind_are_refused", 0, handles_of_another_kind_are_refused},
    {"dead_handles_are_refused", 0, dead_handles_are_refused},
    {"dead_graphs_are_refused", NEED_GRAPH, dead_graphs_are_refused},
    {"releasing_null_is_fine_and_releasing_the_dead_is_noted", 0, releasing_null_is_fine_and_releasing_the_dead_is_noted},
    {"references_are_counted", 0, references_are_counted},
    {"everything_goes_in_any_order", NEED_GRAPH, everything_goes_in_any_order},
    {"threads_make_and_drop_handles_at_once", 0, threads_make_and_drop_handles_at_once},
    VT_TEST_END};
