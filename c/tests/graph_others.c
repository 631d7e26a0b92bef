// graph_others.c: a capture and what goes on beside it: other threads, and its own callbacks.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdlib.h>

static int32_t value_of(_Atomic int32_t *value) {
  // acquire: partners are the stores and increments of the other threads.
  return atomic_load_explicit(value, memory_order_acquire);
}

// Thread 0 captures for a while. The others do everything that a program does meanwhile, on queues of their own.

enum { LONG_ROUNDS = 64, OTHERS = 5 };

typedef struct long_capture {
  vt_queue *queue;
  vt_queue *side;
  vt_event *fork;
  vt_event *join;
  unsigned char *block;  // a byte per round of the capture
  _Atomic int32_t calls;
  _Atomic int32_t over;
  _Atomic int32_t others;  // what they did
  vt_queue *queues[OTHERS];
  vt_comm *comms[2];
  vt_graph *graph;
} long_capture;

static void capture_round(vt_case *c, long_capture *l, int i) {
  EXPECT_OK(c, vt_memset(l->queue, l->block + i, i + 1, 1));
  EXPECT_OK(c, vt_event_record(l->fork, l->queue));
  EXPECT_OK(c, vt_queue_after_event(l->side, l->fork));
  EXPECT_OK(c, vt_queue_host_func(l->side, vt_test_host_count, &l->calls, NULL));
  EXPECT_OK(c, vt_event_record(l->join, l->side));
  EXPECT_OK(c, vt_queue_after_event(l->queue, l->join));
}

static void capture_for_a_while(vt_case *c, long_capture *l) {
  uint64_t pause_ns = (vt_test_has(c, NEED_WORKER) ? UINT64_C(1000000000) : UINT64_C(300000000)) / LONG_ROUNDS;
  EXPECT_OK(c, vt_graph_begin_capture(l->queue));
  for (int i = 0; i < LONG_ROUNDS; i++) {
    capture_round(c, l, i);
    vt_test_sleep_ns(pause_ns);
  }
  EXPECT_OK(c, vt_graph_end_capture(l->queue, &l->graph));
  // release: partner is the load of value_of().
  atomic_store_explicit(&l->over, 1, memory_order_release);
}

static void query_wait_and_record(vt_case *c, long_capture *l) {
  vt_event *event = NULL;
  uint64_t ticket = 0;
  unsigned char byte[2] = {0};
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
  EXPECT_OK(c, vt_memset(l->queues[0], byte, 3, 1));
  EXPECT_OK(c, vt_copy(l->queues[0], byte + 1, byte, 1));
  EXPECT_OK(c, vt_event_record(event, l->queues[0]));
  vt_status status = vt_event_query(event);
  EXPECT_TRUE(c, status == VT_OK || status == VT_NOT_READY);
  EXPECT_OK(c, vt_queue_get_ticket(l->queues[0], &ticket));
  EXPECT_OK(c, vt_queue_after_event(l->queues[1], event));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_OK(c, vt_queue_wait_ticket(l->queues[0], ticket, VT_WAIT_FOREVER));
  EXPECT_OK(c, vt_queue_synchronize(l->queues[1]));
  EXPECT_EQ(c, 3, byte[1]);
  vt_event_release(event);
}

static void allocate_and_make_queues(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  void *block = NULL;
  void *pinned = NULL;
  void *pooled = NULL;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_alloc(vt_test_device(c), 1000, &block));
  EXPECT_OK(c, vt_pinned_alloc(vt_test_device(c), 1000, &pinned));
  EXPECT_OK(c, vt_memset(queue, block, 1, 1000));
  EXPECT_OK(c, vt_copy(queue, pinned, block, 1000));
  EXPECT_OK(c, vt_alloc_async(queue, 1000, &pooled));
  EXPECT_OK(c, vt_copy(queue, pooled, pinned, 1000));
  EXPECT_OK(c, vt_free_async(queue, pooled));
  EXPECT_OK(c, vt_queue_destroy(queue));
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
  EXPECT_OK(c, vt_pinned_free(vt_test_device(c), pinned));
}

static void capture_another(vt_case *c, long_capture *l) {
  vt_graph *graph = NULL;
  unsigned char byte = 0;
  EXPECT_OK(c, vt_graph_begin_capture(l->queues[2]));
  EXPECT_OK(c, vt_memset(l->queues[2], &byte, 5, 1));
  REQUIRE_OK(c, vt_graph_end_capture(l->queues[2], &graph));
  EXPECT_OK(c, vt_graph_launch(graph, l->queues[2]));
  vt_graph_release(graph);
  EXPECT_OK(c, vt_queue_synchronize(l->queues[2]));
  EXPECT_EQ(c, 5, byte);
}

// Both ranks go on until both have seen the end.
static void meet_until_over(vt_case *c, long_capture *l, int32_t rank) {
  int32_t stop = 0;
  while (stop == 0) {
    stop = value_of(&l->over);
    REQUIRE_OK(c, vt_comm_all_reduce(l->comms[rank], l->queues[3 + rank], &stop, &stop, 1, VT_DTYPE_I32, VT_REDUCE_MIN, NULL));
    REQUIRE_OK(c, vt_queue_synchronize(l->queues[3 + rank]));
  }
}

static void capture_or_work(vt_case *c, int32_t index, void *arg) {
  long_capture *l = arg;
  if (index == 0) {
    capture_for_a_while(c, l);
  } else if (index >= OTHERS - 1) {
    meet_until_over(c, l, index - (OTHERS - 1));
  } else {
    while (value_of(&l->over) == 0 && vt_test_is_clean(c)) {
      index == 1 ? query_wait_and_record(c, l) : index == 2 ? allocate_and_make_queues(c) : capture_another(c, l);
      // relaxed: read when the threads were joined.
      atomic_fetch_add_explicit(&l->others, 1, memory_order_relaxed);
    }
  }
}

static void a_long_capture_is_not_disturbed_by_other_threads(vt_case *c) {
  long_capture l = {.queue = vt_test_queue(c), .side = vt_test_queue(c)};
  vt_comm_group *group = vt_test_group(c, 2, NULL);
  l.fork = vt_test_event(c, 0);
  l.join = vt_test_event(c, 0);
  l.block = vt_test_alloc(c, LONG_ROUNDS);
  for (int i = 0; i < OTHERS; i++) {
    l.queues[i] = vt_test_queue(c);
  }
  for (int32_t rank = 0; rank < 2; rank++) {
    REQUIRE_OK(c, vt_comm_group_get_comm(group, rank, &l.comms[rank]));
  }
  vt_test_threads(c, OTHERS + 1, capture_or_work, &l);
  REQUIRE_TRUE(c, l.graph != NULL);
  EXPECT_TRUE(c, value_of(&l.others) >= 3);
  EXPECT_FILLED(c, 0, l.block, LONG_ROUNDS);
  EXPECT_EQ(c, 0, value_of(&l.calls));
  for (int replay = 1; replay <= 3; replay++) {
    memset(l.block, 0, LONG_ROUNDS);
    EXPECT_OK(c, vt_graph_launch(l.graph, l.queue));
    EXPECT_OK(c, vt_queue_synchronize(l.queue));
    EXPECT_EQ(c, replay * LONG_ROUNDS, value_of(&l.calls));
    for (int i = 0; i < LONG_ROUNDS; i++) {
      EXPECT_EQ(c, i + 1, l.block[i]);
    }
  }
  vt_graph_release(l.graph);
}

// A callback with memory of its own, which its drop function gives back: used after that, it would be seen by AddressSanitizer.

typedef struct closure {
  _Atomic int32_t *calls;
  _Atomic int32_t *drops;
} closure;

static vt_status call_closure(void *user) {
  const closure *own = user;
  return vt_test_host_count(own->calls);
}

static void drop_closure(void *user) {
  closure *own = user;
  _Atomic int32_t *drops = own->drops;
  free(own);
  vt_test_drop_count(drops);
}

static void capture_closure(vt_case *c, vt_queue *queue, _Atomic int32_t *calls, _Atomic int32_t *drops, vt_graph **out) {
  closure *own = malloc(sizeof(*own));
  REQUIRE_TRUE(c, own != NULL);
  *own = (closure){calls, drops};
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_queue_host_func(queue, call_closure, own, drop_closure));
  EXPECT_OK(c, vt_graph_end_capture(queue, out));
}

// Graph, launching queue and captured queue go in each of the six orders, with launches in flight.
static void a_captured_function_lives_as_long_as_its_graph_in_any_order_of_release(vt_case *c) {
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  vt_queue_options options = vt_test_queue_options(c);
  for (size_t i = 0; i < 6; i++) {
    _Atomic int32_t calls = 0;
    _Atomic int32_t drops = 0;
    vt_queue *queues[2] = {NULL, NULL};
    vt_graph *graph = NULL;
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queues[0]));
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queues[1]));
    capture_closure(c, queues[0], &calls, &drops, &graph);
    for (int replay = 0; replay < 5; replay++) {
      EXPECT_OK(c, vt_graph_launch(graph, queues[1]));
    }
    EXPECT_EQ(c, 0, value_of(&drops));
    for (int k = 0; k < 3; k++) {
      if (orders[i][k] == 2) {
        vt_graph_release(graph);
      } else {
        vt_queue_release(queues[orders[i][k]]);
      }
    }
    while (value_of(&drops) == 0) {
      vt_test_sleep_ns(100000);
    }
    EXPECT_EQ(c, 5, value_of(&calls));
    EXPECT_EQ(c, 1, value_of(&drops));
  }
}

// What a callback in a graph may not do: wait for the queue that waits for it.

enum { FORBIDDEN = 6 };

typedef struct waiting_callback {
  vt_queue *queue;
  vt_event *event;
  vt_graph *graph;
  vt_status status[FORBIDDEN];
  int32_t calls;
} waiting_callback;

static vt_status wait_for_own_queue(void *user) {
  waiting_callback *w = user;
  w->status[0] = vt_queue_synchronize(w->queue);
  w->status[1] = vt_event_synchronize(w->event);
  w->status[2] = vt_event_wait_by(w->event, VT_WAIT_MODE_SPIN, VT_WAIT_FOREVER);
  w->status[3] = vt_queue_wait_ticket(w->queue, 0, 1000);
  w->status[4] = vt_graph_launch(w->graph, w->queue);
  w->status[5] = vt_queue_destroy(w->queue);
  w->calls++;
  return VT_OK;
}

static void expect_all_refused(vt_case *c, const waiting_callback *w) {
  EXPECT_EQ(c, 5, w->calls);
  for (size_t i = 0; i < FORBIDDEN; i++) {
    EXPECT_EQ(c, VT_ERR_FAILED_PRECONDITION, w->status[i]);
  }
}

// One callback on the thread of the queue, one on that of a branch.
static void a_captured_function_may_not_wait_for_its_own_queue(vt_case *c) {
  waiting_callback own = {.queue = vt_test_queue(c), .event = vt_test_event(c, 0)};
  waiting_callback branch = own;
  vt_queue *side = vt_test_queue(c);
  vt_event *fork = vt_test_event(c, 0);
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(own.queue));
  EXPECT_OK(c, vt_event_record(fork, own.queue));
  EXPECT_OK(c, vt_queue_after_event(side, fork));
  EXPECT_OK(c, vt_queue_host_func(own.queue, wait_for_own_queue, &own, NULL));
  EXPECT_OK(c, vt_queue_host_func(side, wait_for_own_queue, &branch, NULL));
  EXPECT_OK(c, vt_event_record(fork, side));
  EXPECT_OK(c, vt_queue_after_event(own.queue, fork));
  REQUIRE_OK(c, vt_graph_end_capture(own.queue, &graph));
  own.graph = graph;
  branch.graph = graph;
  for (int replay = 0; replay < 5; replay++) {
    EXPECT_OK(c, vt_graph_launch(graph, own.queue));
    EXPECT_OK(c, vt_event_record(own.event, own.queue));
  }
  EXPECT_OK(c, vt_queue_synchronize(own.queue));
  expect_all_refused(c, &own);
  expect_all_refused(c, &branch);
  vt_graph_release(graph);
}

const vt_test_case vt_cases_graph_others[] = {
    {"a_long_capture_is_not_disturbed_by_other_threads", NEED_GRAPH | NEED_COMM, a_long_capture_is_not_disturbed_by_other_threads},
    {"a_captured_function_lives_as_long_as_its_graph_in_any_order_of_release", NEED_GRAPH,
     a_captured_function_lives_as_long_as_its_graph_in_any_order_of_release},
    {"a_captured_function_may_not_wait_for_its_own_queue", NEED_GRAPH, a_captured_function_may_not_wait_for_its_own_queue},
    VT_TEST_END};
