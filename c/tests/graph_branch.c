// graph_branch.c: captures that fork to other queues and join again.
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

// Makes `to` wait for all that was submitted to `from`, in or out of a capture.
static void order_after(vt_case *c, vt_queue *to, vt_queue *from) {
  vt_event *event = NULL;
  if (EXPECT_OK(c, vt_event_create(vt_test_device(c), 0, &event))) {
    EXPECT_OK(c, vt_event_record(event, from));
    EXPECT_OK(c, vt_queue_after_event(to, event));
    vt_event_release(event);
  }
}

// Two functions that each wait for the other one to have begun.

typedef struct meeting {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int arrived;
  int expected;
} meeting;

static vt_status meet(void *user) {
  meeting *m = user;
  pthread_mutex_lock(&m->mutex);
  int round = m->arrived / m->expected;
  m->arrived++;
  pthread_cond_broadcast(&m->changed);
  while (m->arrived / m->expected == round) {
    pthread_cond_wait(&m->changed, &m->mutex);
  }
  pthread_mutex_unlock(&m->mutex);
  return VT_OK;
}

static void branches_that_wait_for_each_other_finish(vt_case *c) {
  meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 2};
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  order_after(c, side_queue, main_queue);
  EXPECT_EQ(c, 1, vt_queue_is_capturing(side_queue));
  EXPECT_OK(c, vt_queue_host_func(main_queue, meet, &m, NULL));
  EXPECT_OK(c, vt_queue_host_func(side_queue, meet, &m, NULL));
  order_after(c, main_queue, side_queue);
  vt_graph *graph = end_capture(c, main_queue);
  EXPECT_EQ(c, 0, vt_queue_is_capturing(side_queue));
  for (int i = 0; i < 10; i++) {
    EXPECT_OK(c, vt_graph_launch(graph, main_queue));
  }
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
  EXPECT_EQ(c, 20, m.arrived);
}

// A call that records nothing leaves nothing to be joined.
static void an_operation_on_no_bytes_needs_no_join(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  size_t nodes = 7;
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  order_after(c, side_queue, main_queue);
  EXPECT_OK(c, vt_copy(side_queue, NULL, NULL, 0));
  EXPECT_OK(c, vt_memset(side_queue, NULL, 1, 0));
  vt_graph *graph = end_capture(c, main_queue);
  REQUIRE_TRUE(c, graph != NULL);
  EXPECT_OK(c, vt_graph_get_node_count(graph, &nodes));
  EXPECT_EQ(c, 0, nodes);
  // What is refused fails the capture all the same.
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "256", vt_memset(main_queue, NULL, 256, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "256", vt_graph_end_capture(main_queue, &graph));
}

static void relaunches_start_no_threads(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  _Atomic int32_t calls = 0;
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  order_after(c, side_queue, main_queue);
  EXPECT_OK(c, vt_queue_host_func(side_queue, vt_test_host_count, &calls, NULL));
  order_after(c, main_queue, side_queue);
  vt_graph *graph = end_capture(c, main_queue);
  REQUIRE_TRUE(c, graph != NULL);
  EXPECT_OK(c, vt_graph_launch(graph, main_queue));
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
  int32_t before = vt_test_count_threads(c);
  for (int i = 0; i < 1000; i++) {
    EXPECT_OK(c, vt_graph_launch(graph, main_queue));
  }
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
  EXPECT_EQ(c, 1001, value_of(&calls));
  EXPECT_TRUE(c, vt_test_count_threads(c) <= before);  // one of an earlier case may have ended
}

static void many_branches_run_at_once(vt_case *c) {
  enum { SIDES = 6 };
  meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, SIDES + 1};
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *sides[SIDES];
  vt_event *fork_event = vt_test_event(c, 0);
  for (int i = 0; i < SIDES; i++) {
    sides[i] = vt_test_queue(c);
  }
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_OK(c, vt_event_record(fork_event, main_queue));
  for (int i = 0; i < SIDES; i++) {
    EXPECT_OK(c, vt_queue_after_event(sides[i], fork_event));
    EXPECT_OK(c, vt_queue_host_func(sides[i], meet, &m, NULL));
  }
  EXPECT_OK(c, vt_queue_host_func(main_queue, meet, &m, NULL));
  for (int i = 0; i < SIDES; i++) {
    order_after(c, main_queue, sides[i]);
  }
  vt_graph *graph = end_capture(c, main_queue);
  for (int i = 0; i < 5; i++) {
    EXPECT_OK(c, vt_graph_launch(graph, main_queue));
  }
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
  EXPECT_EQ(c, 5 * (SIDES + 1), m.arrived);
}

// One decode step of an engine: per layer a fork to a side queue and a join, captured once, replayed with other inputs.
static void forty_forks_replay_in_order(vt_case *c) {
  enum { LAYERS = 40, BYTES = 512 };
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  unsigned char *input = vt_test_pinned(c, BYTES);
  unsigned char *chain = vt_test_alloc(c, (2 * LAYERS + 1) * BYTES);
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_OK(c, vt_copy(main_queue, chain, input, BYTES));
  for (int layer = 0; layer < LAYERS; layer++) {
    unsigned char *from = chain + 2 * layer * BYTES;
    order_after(c, side_queue, main_queue);
    EXPECT_OK(c, vt_copy(side_queue, from + BYTES, from, BYTES));
    order_after(c, main_queue, side_queue);
    EXPECT_OK(c, vt_copy(main_queue, from + 2 * BYTES, from + BYTES, BYTES));
  }
  vt_graph *graph = end_capture(c, main_queue);
  size_t nodes = 0;
  EXPECT_OK(c, vt_graph_get_node_count(graph, &nodes));
  EXPECT_EQ(c, 2 * LAYERS + 1, nodes);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  for (int replay = 0; replay < 5; replay++) {
    vt_test_random_fill(&rng, input, BYTES);
    EXPECT_OK(c, vt_graph_launch(graph, main_queue));
    EXPECT_OK(c, vt_queue_synchronize(main_queue));
    EXPECT_BYTES(c, input, chain + 2 * LAYERS * BYTES, BYTES);
  }
}

static void a_fork_may_go_through_a_third_queue(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  vt_queue *d = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 400);
  EXPECT_OK(c, vt_graph_begin_capture(a));
  EXPECT_OK(c, vt_memset(a, block, 1, 100));
  order_after(c, b, a);
  EXPECT_OK(c, vt_copy(b, block + 100, block, 100));
  order_after(c, d, b);
  EXPECT_OK(c, vt_copy(d, block + 200, block + 100, 100));
  // Joining the last one joins what it waited for.
  order_after(c, a, d);
  EXPECT_OK(c, vt_copy(a, block + 300, block + 200, 100));
  vt_graph *graph = end_capture(c, a);
  EXPECT_OK(c, vt_graph_launch(graph, a));
  EXPECT_OK(c, vt_queue_synchronize(a));
  EXPECT_FILLED(c, 1, block, 400);
  // The side queues are ordinary queues again.
  EXPECT_OK(c, vt_memset(b, block, 2, 100));
  EXPECT_OK(c, vt_queue_synchronize(b));
  EXPECT_OK(c, vt_memset(d, block + 100, 2, 300));
  EXPECT_OK(c, vt_queue_synchronize(d));
  EXPECT_FILLED(c, 2, block, 400);
}

static void side_queues_may_go_before_the_graph(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *side_queue = NULL;
  unsigned char *block = vt_test_alloc(c, 100);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &side_queue));
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  order_after(c, side_queue, main_queue);
  EXPECT_OK(c, vt_memset(side_queue, block, 8, 100));
  order_after(c, main_queue, side_queue);
  vt_graph *graph = end_capture(c, main_queue);
  vt_queue_release(side_queue);
  EXPECT_OK(c, vt_graph_launch(graph, main_queue));
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
  EXPECT_FILLED(c, 8, block, 100);
}

static char why[] = "the branch broke";

static void a_failing_branch_fails_the_launch_and_its_join(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  vt_queue *launch_queue = vt_test_queue(c);
  _Atomic int32_t behind = 0;
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  order_after(c, side_queue, main_queue);
  EXPECT_OK(c, vt_queue_host_func(side_queue, vt_test_host_fail, why, NULL));
  EXPECT_OK(c, vt_queue_host_func(side_queue, vt_test_host_count, &behind, NULL));
  order_after(c, main_queue, side_queue);
  EXPECT_OK(c, vt_queue_host_func(main_queue, vt_test_host_count, &behind, NULL));
  vt_graph *graph = end_capture(c, main_queue);
  vt_status status = vt_graph_launch(graph, launch_queue);
  status = vt_test_has(c, NEED_SYNC) ? status : vt_queue_synchronize(launch_queue);
  EXPECT_EQ(c, VT_ERR_INTERNAL, status);
  EXPECT_MESSAGE(c, why);
  EXPECT_EQ(c, 0, value_of(&behind));
  // The queues that were captured are as they were.
  unsigned char byte = 0;
  EXPECT_OK(c, vt_memset(side_queue, &byte, 1, 1));
  EXPECT_OK(c, vt_queue_synchronize(side_queue));
  EXPECT_OK(c, vt_queue_synchronize(main_queue));
}

const vt_test_case vt_cases_graph_branch[] = {
    {"branches_that_wait_for_each_other_finish", NEED_GRAPH, branches_that_wait_for_each_other_finish},
    {"an_operation_on_no_bytes_needs_no_join", NEED_GRAPH | REPORTS, an_operation_on_no_bytes_needs_no_join},
    {"relaunches_start_no_threads", NEED_GRAPH, relaunches_start_no_threads},
    {"many_branches_run_at_once", NEED_GRAPH, many_branches_run_at_once},
    {"forty_forks_replay_in_order", NEED_GRAPH, forty_forks_replay_in_order},
    {"a_fork_may_go_through_a_third_queue", NEED_GRAPH, a_fork_may_go_through_a_third_queue},
    {"side_queues_may_go_before_the_graph", NEED_GRAPH, side_queues_may_go_before_the_graph},
    {"a_failing_branch_fails_the_launch_and_its_join", NEED_GRAPH, a_failing_branch_fails_the_launch_and_its_join},
    VT_TEST_END};
