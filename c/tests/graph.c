// graph.c: captured work, and its replay.
#include "vt_test.h"

#include <stdatomic.h>

static int32_t value_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment on the queue's thread.
  return atomic_load_explicit(counter, memory_order_acquire);
}

static void release_graph(void *graph) {
  vt_graph_release(graph);
}

static vt_graph *end_capture(vt_case *c, vt_queue *queue) {
  vt_graph *graph = NULL;
  if (EXPECT_OK(c, vt_graph_end_capture(queue, &graph))) {
    vt_test_defer(c, release_graph, graph);
  }
  return graph;
}

static void capture_records_and_replay_reads_the_bytes_of_the_moment(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *from = vt_test_alloc(c, 1000);
  unsigned char *to = vt_test_alloc(c, 1000);
  unsigned char *fill = vt_test_alloc(c, 1000);
  memset(from, 1, 1000);
  memset(to, 77, 1000);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_EQ(c, 1, vt_queue_is_capturing(queue));
  EXPECT_OK(c, vt_copy(queue, to, from, 1000));
  EXPECT_OK(c, vt_memset(queue, fill, 9, 1000));
  vt_graph *graph = end_capture(c, queue);
  EXPECT_EQ(c, 0, vt_queue_is_capturing(queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 77, to, 1000);
  EXPECT_FILLED(c, 0, fill, 1000);
  for (int replay = 2; replay < 12; replay++) {
    memset(from, replay, 1000);
    memset(fill, 0, 1000);
    EXPECT_OK(c, vt_graph_launch(graph, queue));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_FILLED(c, replay, to, 1000);
    EXPECT_FILLED(c, 9, fill, 1000);
  }
}

static void launches_run_in_stream_order(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *a = vt_test_alloc(c, 256);
  unsigned char *b = vt_test_alloc(c, 256);
  unsigned char *seen = vt_test_pinned(c, 20 * 256);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_copy(queue, b, a, 256));
  vt_graph *graph = end_capture(c, queue);
  for (int i = 0; i < 20; i++) {
    EXPECT_OK(c, vt_memset(queue, a, i + 1, 256));
    EXPECT_OK(c, vt_graph_launch(graph, queue));
    EXPECT_OK(c, vt_copy(queue, seen + 256 * i, b, 256));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  for (int i = 0; i < 20; i++) {
    EXPECT_FILLED(c, i + 1, seen + 256 * i, 256);
  }
}

static void a_captured_function_runs_per_launch_and_is_dropped_once(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  _Atomic int32_t calls = 0;
  _Atomic int32_t drops = 0;
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  EXPECT_EQ(c, 0, value_of(&calls) + value_of(&drops));
  for (int i = 0; i < 5; i++) {
    EXPECT_OK(c, vt_graph_launch(graph, queue));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 5, value_of(&calls));
  EXPECT_EQ(c, 5, value_of(&drops));
  // Launches in flight keep the graph.
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  vt_graph_release(graph);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 6, value_of(&calls));
  while (value_of(&drops) < 7) {
    vt_test_sleep_ns(100000);
  }
  EXPECT_EQ(c, 7, value_of(&drops));
}

static void aborted_and_failed_captures_drop_their_functions(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  _Atomic int32_t drops = 0;
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_OK(c, vt_graph_abort_capture(queue));
  EXPECT_EQ(c, 1, value_of(&drops));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_memset(queue, &drops, 999, 1));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_graph_end_capture(queue, &graph));
  EXPECT_EQ(c, 2, value_of(&drops));
  EXPECT_TRUE(c, graph == NULL);
}

static void a_graph_outlives_its_queue(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *captured = NULL;
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 100);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &captured));
  EXPECT_OK(c, vt_graph_begin_capture(captured));
  EXPECT_OK(c, vt_memset(captured, block, 3, 100));
  vt_graph *graph = end_capture(c, captured);
  vt_queue_release(captured);
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 3, block, 100);
}

static void a_graph_answers_what_it_is(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 128);
  _Atomic int32_t calls = 0;
  size_t nodes = 99;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  vt_graph *empty = end_capture(c, queue);
  EXPECT_OK(c, vt_graph_get_node_count(empty, &nodes));
  EXPECT_EQ(c, 0, nodes);
  EXPECT_OK(c, vt_graph_launch(empty, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, 1, 64));
  EXPECT_OK(c, vt_copy(queue, block + 64, block, 64));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  vt_graph *graph = end_capture(c, queue);
  EXPECT_OK(c, vt_graph_get_node_count(graph, &nodes));
  EXPECT_EQ(c, 3, nodes);
  EXPECT_TRUE(c, vt_graph_get_id(graph) > vt_graph_get_id(empty));
  vt_device device = {-1, -1};
  EXPECT_OK(c, vt_graph_get_device(graph, &device));
  EXPECT_TRUE(c, device.type == vt_test_device(c).type && device.index == 0);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_count", vt_graph_get_node_count(graph, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_device", vt_graph_get_device(graph, NULL));
}

// Two runs of one graph at once would show as two threads inside its function.

typedef struct room {
  _Atomic int32_t inside;
  _Atomic int32_t crowded;
  _Atomic int32_t visits;
} room;

static vt_status visit(void *user) {
  room *r = user;
  // seq_cst: both threads must agree on who came first.
  if (atomic_fetch_add_explicit(&r->inside, 1, memory_order_seq_cst) != 0) {
    atomic_fetch_add_explicit(&r->crowded, 1, memory_order_seq_cst);
  }
  vt_test_sleep_ns(300000);
  atomic_fetch_add_explicit(&r->visits, 1, memory_order_seq_cst);
  atomic_fetch_sub_explicit(&r->inside, 1, memory_order_seq_cst);
  return VT_OK;
}

typedef struct launcher {
  vt_graph *graph;
  vt_queue *queues[4];
} launcher;

static void launch_often(vt_case *c, int32_t index, void *arg) {
  launcher *l = arg;
  for (int i = 0; i < 20; i++) {
    EXPECT_OK(c, vt_graph_launch(l->graph, l->queues[index]));
  }
  EXPECT_OK(c, vt_queue_synchronize(l->queues[index]));
}

static void one_graph_on_two_queues_runs_one_launch_at_a_time(vt_case *c) {
  room r = {0};
  launcher l = {.queues = {vt_test_queue(c), vt_test_queue(c)}};
  EXPECT_OK(c, vt_graph_begin_capture(l.queues[0]));
  EXPECT_OK(c, vt_queue_host_func(l.queues[0], visit, &r, NULL));
  l.graph = end_capture(c, l.queues[0]);
  vt_test_threads(c, 2, launch_often, &l);
  EXPECT_EQ(c, 40, value_of(&r.visits));
  EXPECT_EQ(c, 0, value_of(&r.crowded));
}

static char why[] = "the node broke";

static void a_failing_node_fails_the_launch(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *other = vt_test_queue(c);
  _Atomic int32_t before = 0;
  _Atomic int32_t after = 0;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &before, NULL));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, why, NULL));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &after, NULL));
  vt_graph *graph = end_capture(c, queue);
  for (int run = 0; run < 2; run++) {
    // A queue of its own for each run: on an asynchronous one the failure sticks.
    vt_queue *used = run == 0 ? queue : other;
    vt_status status = vt_graph_launch(graph, used);
    status = vt_test_has(c, NEED_SYNC) ? status : vt_queue_synchronize(used);
    EXPECT_EQ(c, VT_ERR_INTERNAL, status);
    EXPECT_MESSAGE(c, why);
    EXPECT_EQ(c, run + 1, value_of(&before));
    EXPECT_EQ(c, 0, value_of(&after));
  }
}

static void allocate_elsewhere(vt_case *c, int32_t index, void *arg) {
  vt_queue *queue = arg;
  void *ptr = NULL;
  (void)index;
  EXPECT_OK(c, vt_alloc(vt_test_device(c), 100, &ptr));
  EXPECT_OK(c, vt_memset(queue, ptr, 1, 100));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, ptr, 100);
  EXPECT_OK(c, vt_free(vt_test_device(c), ptr));
}

static void a_capture_binds_its_own_thread_only(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *other = vt_test_queue(c);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  vt_test_threads(c, 1, allocate_elsewhere, other);
  // This thread, too, may still submit to a queue that isn't in the capture, and look at an event of it.
  vt_event *event = vt_test_event(c, 0);
  unsigned char block[10] = {0};
  EXPECT_OK(c, vt_memset(other, block, 4, sizeof(block)));
  EXPECT_OK(c, vt_event_record(event, other));
  vt_status status;
  while ((status = vt_event_query(event)) == VT_NOT_READY) {
  }
  EXPECT_EQ(c, VT_OK, status);
  EXPECT_OK(c, vt_event_wait(event, 0));
  EXPECT_FILLED(c, 4, block, sizeof(block));
  EXPECT_EQ(c, 0, vt_queue_is_capturing(other));
  (void)end_capture(c, queue);
}

static void two_threads_capture_at_once_inner(vt_case *c, int32_t index, void *arg) {
  vt_queue **queues = arg;
  unsigned char *block = vt_test_alloc(c, 100);
  for (int i = 1; i <= 20; i++) {
    vt_graph *graph = NULL;
    EXPECT_OK(c, vt_graph_begin_capture(queues[index]));
    EXPECT_OK(c, vt_memset(queues[index], block, i, 100));
    REQUIRE_OK(c, vt_graph_end_capture(queues[index], &graph));
    EXPECT_OK(c, vt_graph_launch(graph, queues[index]));
    vt_graph_release(graph);
    EXPECT_OK(c, vt_queue_synchronize(queues[index]));
    EXPECT_FILLED(c, i, block, 100);
  }
}

static void two_threads_capture_at_once(vt_case *c) {
  vt_queue *queues[2] = {vt_test_queue(c), vt_test_queue(c)};
  vt_test_threads(c, 2, two_threads_capture_at_once_inner, queues);
}

static void graphs_of_another_device_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *other = vt_test_queue_on(c, (vt_device){VT_DEVICE_CPU, 1});
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  vt_graph *graph = end_capture(c, queue);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "cpu:1", vt_graph_launch(graph, other));
}

const vt_test_case vt_cases_graph[] = {
    {"capture_records_and_replay_reads_the_bytes_of_the_moment", NEED_GRAPH,
     capture_records_and_replay_reads_the_bytes_of_the_moment},
    {"launches_run_in_stream_order", NEED_GRAPH, launches_run_in_stream_order},
    {"a_captured_function_runs_per_launch_and_is_dropped_once", NEED_GRAPH,
     a_captured_function_runs_per_launch_and_is_dropped_once},
    {"aborted_and_failed_captures_drop_their_functions", NEED_GRAPH | REPORTS, aborted_and_failed_captures_drop_their_functions},
    {"a_graph_outlives_its_queue", NEED_GRAPH, a_graph_outlives_its_queue},
    {"a_graph_answers_what_it_is", NEED_GRAPH, a_graph_answers_what_it_is},
    {"one_graph_on_two_queues_runs_one_launch_at_a_time", NEED_GRAPH, one_graph_on_two_queues_runs_one_launch_at_a_time},
    {"a_failing_node_fails_the_launch", NEED_GRAPH, a_failing_node_fails_the_launch},
    {"a_capture_binds_its_own_thread_only", NEED_GRAPH, a_capture_binds_its_own_thread_only},
    {"two_threads_capture_at_once", NEED_GRAPH, two_threads_capture_at_once},
    {"graphs_of_another_device_are_refused", NEED_GRAPH | NEED_DEVICES, graphs_of_another_device_are_refused},
    VT_TEST_END};
