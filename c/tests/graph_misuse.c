// graph_misuse.c: what may not be done with a capture, and that the queue is usable after each of these.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>

// Ends the capture without a graph; then an ordinary copy on the same queue must work.
static void recover(vt_case *c, vt_queue *queue) {
  unsigned char from[32];
  unsigned char to[32] = {0};
  memset(from, 42, sizeof(from));
  if (vt_queue_is_capturing(queue)) {
    EXPECT_OK(c, vt_graph_abort_capture(queue));
  }
  EXPECT_EQ(c, 0, vt_queue_is_capturing(queue));
  EXPECT_OK(c, vt_copy(queue, to, from, sizeof(from)));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 42, to, sizeof(to));
}

// The refusal also fails the capture: its end answers that refusal, and the queue is usable.
static void expect_failed_end(vt_case *c, vt_queue *queue, vt_status status, const char *part) {
  vt_graph *graph = NULL;
  EXPECT_FAILS(c, status, part, vt_graph_end_capture(queue, &graph));
  EXPECT_TRUE(c, graph == NULL);
  recover(c, queue);
}

static void id_text(char *text, size_t bytes, vt_queue *queue) {
  snprintf(text, bytes, "queue %llu", (unsigned long long)vt_queue_get_id(queue));
}

static void waiting_for_a_capturing_queue_is_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char byte = 0;
  EXPECT_OK(c, vt_memset(queue, &byte, 1, 1));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  uint64_t ticket = 0;
  EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
  for (int way = 0; way < 2; way++) {
    EXPECT_OK(c, vt_graph_begin_capture(queue));
    EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_queue_synchronize", vt_queue_synchronize(queue));
    way == 0 ? recover(c, queue) : expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, "vt_queue_synchronize");
    EXPECT_OK(c, vt_graph_begin_capture(queue));
    EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_queue_query", vt_queue_query(queue));
    way == 0 ? recover(c, queue) : expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, "vt_queue_query");
    EXPECT_OK(c, vt_graph_begin_capture(queue));
    EXPECT_OK(c, vt_queue_wait_ticket(queue, ticket, 0));
    EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_queue_wait_ticket", vt_queue_wait_ticket(queue, ticket, VT_WAIT_FOREVER));
    way == 0 ? recover(c, queue) : expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, "vt_queue_wait_ticket");
  }
}

// Calls that allocate, free or wait for a device, which no capture allows.
typedef struct forbidden {
  vt_device device;
  void *block;
  void *pinned;
  void *got;  // stays NULL
} forbidden;

static const char *const forbidden_names[] = {"vt_alloc",        "vt_free",         "vt_pinned_alloc", "vt_pinned_free",
                                              "vt_queue_create", "vt_arena_create", "vt_device_flush"};

static vt_status call_forbidden(forbidden *f, size_t call) {
  switch (call) {
    case 0:
      return vt_alloc(f->device, 8, &f->got);
    case 1:
      return vt_free(f->device, f->block);
    case 2:
      return vt_pinned_alloc(f->device, 8, &f->got);
    case 3:
      return vt_pinned_free(f->device, f->pinned);
    case 4:
      return vt_queue_create(f->device, NULL, (vt_queue **)&f->got);
    case 5:
      return vt_arena_create(f->device, 64, (vt_arena **)&f->got);
    default:
      return vt_device_flush(f->device);
  }
}

static void allocation_inside_a_capture_is_refused_by_name(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  forbidden f = {.device = vt_test_device(c)};
  REQUIRE_OK(c, vt_alloc(f.device, 8, &f.block));
  REQUIRE_OK(c, vt_pinned_alloc(f.device, 8, &f.pinned));
  for (size_t call = 0; call < sizeof(forbidden_names) / sizeof(forbidden_names[0]); call++) {
    EXPECT_OK(c, vt_graph_begin_capture(queue));
    EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, forbidden_names[call], call_forbidden(&f, call));
    EXPECT_TRUE(c, f.got == NULL);
    recover(c, queue);
  }
  EXPECT_OK(c, vt_free(f.device, f.block));
  EXPECT_OK(c, vt_pinned_free(f.device, f.pinned));
}

static void an_arena_serves_inside_a_capture(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_arena *arena = vt_test_arena(c, 256);
  void *ptr = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_arena_alloc(arena, 64, &ptr));
  EXPECT_OK(c, vt_memset(queue, ptr, 1, 64));
  EXPECT_OK(c, vt_arena_reset(arena));
  recover(c, queue);
}

static void beginning_twice_is_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  char text[40];
  id_text(text, sizeof(text), queue);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, text, vt_graph_begin_capture(queue));
  recover(c, queue);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_graph_begin_capture(queue));
  expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, "capturing already");
}

static void ending_without_beginning_is_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_graph *graph = NULL;
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "not capturing", vt_graph_end_capture(queue, &graph));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "not capturing", vt_graph_end_capture(queue, NULL));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "not capturing", vt_graph_abort_capture(queue));
  EXPECT_TRUE(c, graph == NULL);
  recover(c, queue);
}

static void use_from_another_thread(vt_case *c, int32_t index, void *arg) {
  vt_queue *queue = arg;
  vt_graph *graph = NULL;
  unsigned char byte = 0;
  (void)index;
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "another thread", vt_graph_end_capture(queue, &graph));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "another thread", vt_graph_abort_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "another thread", vt_memset(queue, &byte, 1, 1));
  EXPECT_TRUE(c, graph == NULL);
}

// A stranger's calls don't end the capture.
static void another_thread_may_not_use_a_capturing_queue(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 10);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, 1, 10));
  vt_test_threads(c, 1, use_from_another_thread, queue);
  EXPECT_EQ(c, 1, vt_queue_is_capturing(queue));
  recover(c, queue);
  EXPECT_FILLED(c, 0, block, 10);
}

static void an_unjoined_fork_is_named(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  unsigned char byte = 0;
  char text[40];
  id_text(text, sizeof(text), side_queue);
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_OK(c, vt_event_record(event, main_queue));
  EXPECT_OK(c, vt_queue_after_event(side_queue, event));
  EXPECT_OK(c, vt_memset(side_queue, &byte, 1, 1));
  expect_failed_end(c, main_queue, VT_ERR_FAILED_PRECONDITION, text);
  recover(c, side_queue);
  // Work behind the join is unjoined again.
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_OK(c, vt_event_record(event, main_queue));
  EXPECT_OK(c, vt_queue_after_event(side_queue, event));
  EXPECT_OK(c, vt_event_record(event, side_queue));
  EXPECT_OK(c, vt_queue_after_event(main_queue, event));
  EXPECT_OK(c, vt_memset(side_queue, &byte, 1, 1));
  expect_failed_end(c, main_queue, VT_ERR_FAILED_PRECONDITION, text);
  recover(c, side_queue);
  EXPECT_EQ(c, 0, byte);
}

static void a_capture_ends_where_it_began(vt_case *c) {
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  vt_graph *graph = NULL;
  char text[40];
  id_text(text, sizeof(text), main_queue);
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_OK(c, vt_event_record(event, main_queue));
  EXPECT_OK(c, vt_queue_after_event(side_queue, event));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, text, vt_graph_end_capture(side_queue, &graph));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, text, vt_graph_abort_capture(side_queue));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_graph_begin_capture(side_queue));
  EXPECT_TRUE(c, graph == NULL);
  EXPECT_OK(c, vt_graph_abort_capture(main_queue));
  recover(c, main_queue);
  recover(c, side_queue);
}

static void events_from_outside_the_capture_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *other = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_event_record(event, other));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "event", vt_queue_after_event(queue, event));
  expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, "event");
}

static void events_of_another_capture_are_refused(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  vt_queue *idle = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_graph_begin_capture(a));
  EXPECT_OK(c, vt_event_record(event, a));
  EXPECT_OK(c, vt_graph_begin_capture(b));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "another capture", vt_queue_after_event(b, event));
  EXPECT_OK(c, vt_graph_abort_capture(b));
  EXPECT_OK(c, vt_graph_abort_capture(a));
  // The capture is over: the event marks nothing any more.
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "has ended", vt_queue_after_event(idle, event));
  recover(c, a);
  recover(c, b);
  recover(c, idle);
  // A record outside makes it an ordinary event again.
  EXPECT_OK(c, vt_event_record(event, a));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_OK(c, vt_queue_after_event(idle, event));
}

static void the_host_can_not_wait_for_a_captured_record(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  vt_event *plain = vt_test_event(c, 0);
  EXPECT_OK(c, vt_event_record(plain, queue));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "capture", vt_event_query(event));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "capture", vt_event_wait(event, 0));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "capture", vt_event_synchronize(event));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_event_synchronize", vt_event_synchronize(plain));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_event_wait", vt_event_wait(plain, 1000));
  recover(c, queue);
  EXPECT_OK(c, vt_event_synchronize(plain));
}

static void launching_on_a_capturing_queue_is_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_graph *graph = NULL;
  char text[40];
  id_text(text, sizeof(text), queue);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_graph_end_capture(queue, NULL));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, text, vt_graph_launch(graph, queue));
  expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, text);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_queue_replay(queue));
  expect_failed_end(c, queue, VT_ERR_FAILED_PRECONDITION, text);
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  vt_graph_release(graph);
}

static void any_refused_call_fails_the_capture(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char bytes[8];
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_memset(queue, bytes, 256, 8));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_copy(queue, bytes, bytes + 1, 4));
  expect_failed_end(c, queue, VT_ERR_INVALID_ARGUMENT, "256");
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_queue_host_func(queue, NULL, NULL, NULL));
  expect_failed_end(c, queue, VT_ERR_INVALID_ARGUMENT, "fn is NULL");
}

static void destroying_a_capturing_queue_is_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_queue_destroy", vt_queue_destroy(queue));
  recover(c, queue);
}

static void releasing_the_capturing_queue_aborts_its_capture(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  vt_queue *side_queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  void *ptr = NULL;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_queue_after_event(side_queue, event));
  vt_queue_release(queue);
  recover(c, side_queue);
  // This thread isn't capturing any more.
  EXPECT_OK(c, vt_alloc(vt_test_device(c), 8, &ptr));
  EXPECT_OK(c, vt_free(vt_test_device(c), ptr));
}

static void releasing_a_member_fails_the_capture(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *main_queue = vt_test_queue(c);
  vt_queue *side_queue = NULL;
  vt_event *event = vt_test_event(c, 0);
  char text[40];
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &side_queue));
  id_text(text, sizeof(text), side_queue);
  EXPECT_OK(c, vt_graph_begin_capture(main_queue));
  EXPECT_OK(c, vt_event_record(event, main_queue));
  EXPECT_OK(c, vt_queue_after_event(side_queue, event));
  vt_queue_release(side_queue);
  vt_graph *graph = NULL;
  EXPECT_TRUE(c, vt_graph_end_capture(main_queue, &graph) < 0);
  EXPECT_MESSAGE(c, text);
  EXPECT_TRUE(c, graph == NULL);
  recover(c, main_queue);
}

typedef struct contest {
  vt_queue *queue;
  unsigned char *block;
  _Atomic int32_t calls;
  _Atomic int32_t accepted;
} contest;

// Thread 0 captures on the queue that the others submit to: their work runs or is refused, and is never recorded.
static void capture_or_submit(vt_case *c, int32_t index, void *arg) {
  contest *k = arg;
  for (int i = 0; i < 150; i++) {
    if (index > 0) {
      vt_status status = vt_queue_host_func(k->queue, vt_test_host_count, &k->calls, NULL);
      EXPECT_TRUE(c, status == VT_OK || status == VT_ERR_FAILED_PRECONDITION);
      // relaxed: read when the threads were joined.
      atomic_fetch_add_explicit(&k->accepted, status == VT_OK, memory_order_relaxed);
      continue;
    }
    vt_graph *graph = NULL;
    size_t nodes = 0;
    EXPECT_OK(c, vt_graph_begin_capture(k->queue));
    EXPECT_OK(c, vt_memset(k->queue, k->block, 1, 64));
    REQUIRE_OK(c, vt_graph_end_capture(k->queue, &graph));
    EXPECT_OK(c, vt_graph_get_node_count(graph, &nodes));
    EXPECT_EQ(c, 1, nodes);
    vt_graph_release(graph);
  }
}

static void submitting_while_another_thread_captures_is_never_recorded(vt_case *c) {
  contest k = {.queue = vt_test_queue(c), .block = vt_test_alloc(c, 64)};
  vt_test_threads(c, 3, capture_or_submit, &k);
  EXPECT_OK(c, vt_queue_synchronize(k.queue));
  // relaxed: the threads were joined and the queue was waited for.
  EXPECT_EQ(c, atomic_load_explicit(&k.accepted, memory_order_relaxed), atomic_load_explicit(&k.calls, memory_order_relaxed));
  EXPECT_FILLED(c, 0, k.block, 64);
}

static void begin_and_leave(vt_case *c, int32_t index, void *arg) {
  vt_queue **queues = arg;
  vt_event *event = vt_test_event(c, 0);
  unsigned char byte = 0;
  (void)index;
  EXPECT_OK(c, vt_graph_begin_capture(queues[0]));
  EXPECT_OK(c, vt_event_record(event, queues[0]));
  EXPECT_OK(c, vt_queue_after_event(queues[1], event));
  EXPECT_OK(c, vt_memset(queues[1], &byte, 1, 1));
}

static void the_end_of_a_thread_aborts_its_captures(vt_case *c) {
  vt_queue *queues[2] = {vt_test_queue(c), vt_test_queue(c)};
  vt_test_threads(c, 1, begin_and_leave, queues);
  EXPECT_EQ(c, 0, vt_queue_is_capturing(queues[0]));
  EXPECT_EQ(c, 0, vt_queue_is_capturing(queues[1]));
  recover(c, queues[0]);
  recover(c, queues[1]);
}

static char why[] = "broken before";

static void a_failed_queue_can_not_capture(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, why, NULL));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_queue_synchronize(queue));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, why, vt_graph_begin_capture(queue));
  EXPECT_EQ(c, 0, vt_queue_is_capturing(queue));
}

const vt_test_case vt_cases_graph_misuse[] = {
    {"waiting_for_a_capturing_queue_is_refused", NEED_GRAPH | REPORTS, waiting_for_a_capturing_queue_is_refused},
    {"allocation_inside_a_capture_is_refused_by_name", NEED_GRAPH | REPORTS, allocation_inside_a_capture_is_refused_by_name},
    {"an_arena_serves_inside_a_capture", NEED_GRAPH, an_arena_serves_inside_a_capture},
    {"beginning_twice_is_refused", NEED_GRAPH | REPORTS, beginning_twice_is_refused},
    {"ending_without_beginning_is_refused", NEED_GRAPH, ending_without_beginning_is_refused},
    {"another_thread_may_not_use_a_capturing_queue", NEED_GRAPH, another_thread_may_not_use_a_capturing_queue},
    {"an_unjoined_fork_is_named", NEED_GRAPH | REPORTS, an_unjoined_fork_is_named},
    {"a_capture_ends_where_it_began", NEED_GRAPH | REPORTS, a_capture_ends_where_it_began},
    {"events_from_outside_the_capture_are_refused", NEED_GRAPH | REPORTS, events_from_outside_the_capture_are_refused},
    {"events_of_another_capture_are_refused", NEED_GRAPH | REPORTS, events_of_another_capture_are_refused},
    {"the_host_can_not_wait_for_a_captured_record", NEED_GRAPH | REPORTS, the_host_can_not_wait_for_a_captured_record},
    {"launching_on_a_capturing_queue_is_refused", NEED_GRAPH | REPORTS, launching_on_a_capturing_queue_is_refused},
    {"any_refused_call_fails_the_capture", NEED_GRAPH | REPORTS, any_refused_call_fails_the_capture},
    {"destroying_a_capturing_queue_is_refused", NEED_GRAPH | REPORTS, destroying_a_capturing_queue_is_refused},
    {"releasing_the_capturing_queue_aborts_its_capture", NEED_GRAPH, releasing_the_capturing_queue_aborts_its_capture},
    {"releasing_a_member_fails_the_capture", NEED_GRAPH | REPORTS, releasing_a_member_fails_the_capture},
    {"submitting_while_another_thread_captures_is_never_recorded", NEED_GRAPH,
     submitting_while_another_thread_captures_is_never_recorded},
    {"the_end_of_a_thread_aborts_its_captures", NEED_GRAPH, the_end_of_a_thread_aborts_its_captures},
    {"a_failed_queue_can_not_capture", NEED_GRAPH | NEED_ASYNC, a_failed_queue_can_not_capture},
    VT_TEST_END};
