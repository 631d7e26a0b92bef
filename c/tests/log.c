// log.c: the log hook and the trace hook.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>

typedef struct log_book {
  pthread_mutex_t mutex;
  int count;
  vt_log_level level;
  char last[VT_ERROR_MESSAGE_MAX + 64];
} log_book;

static void take_message(void *user, vt_log_level level, const char *message) {
  log_book *book = user;
  pthread_mutex_lock(&book->mutex);
  book->count++;
  book->level = level;
  snprintf(book->last, sizeof(book->last), "%s", message);
  pthread_mutex_unlock(&book->mutex);
}

static void a_misused_release_is_logged(vt_case *c) {
  static log_book book = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  vt_event *event = NULL;
  book.count = 0;
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &event));
  vt_event_release(event);
  vt_test_log(c, take_message, &book, VT_LOG_ERROR);
  vt_event_release(event);
  EXPECT_EQ(c, 1, book.count);
  EXPECT_EQ(c, VT_LOG_ERROR, book.level);
  EXPECT_TRUE(c, strstr(book.last, "not a live event") != NULL);
  EXPECT_TRUE(c, strstr(book.last, "vt_event_release") != NULL);
  EXPECT_OK(c, vt_log_set(take_message, &book, VT_LOG_OFF));
  vt_event_release(event);
  EXPECT_EQ(c, 1, book.count);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "5", vt_log_set(take_message, &book, 5));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-1", vt_log_set(take_message, &book, -1));
}

enum { MAX_SEEN = 256 };

typedef struct trace_book {
  pthread_mutex_t mutex;
  size_t count;
  vt_trace_event seen[MAX_SEEN];
} trace_book;

static void take_trace(void *user, const vt_trace_event *event) {
  trace_book *book = user;
  pthread_mutex_lock(&book->mutex);
  if (book->count < MAX_SEEN) {
    book->seen[book->count++] = *event;
  }
  pthread_mutex_unlock(&book->mutex);
}

static void stop_tracing(void *unused) {
  (void)unused;
  vt_trace_set(NULL, NULL);
}

static void expect_pair(vt_case *c, const trace_book *book, size_t at, vt_trace_kind kind, uint64_t queue_id, uint64_t bytes,
                        uint64_t ticket) {
  for (size_t i = 0; i < 2; i++) {
    const vt_trace_event *e = &book->seen[2 * at + i];
    EXPECT_EQ(c, kind, e->kind);
    EXPECT_EQ(c, i, e->is_end);
    EXPECT_EQ(c, queue_id, e->queue_id);
    EXPECT_EQ(c, bytes, e->bytes);
    EXPECT_EQ(c, ticket, e->sequence);
  }
}

static void every_operation_is_traced_with_begin_and_end(vt_case *c) {
  static trace_book book = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  book.count = 0;
  vt_queue *queue = vt_test_queue(c);
  uint64_t id = vt_queue_get_id(queue);
  unsigned char *block = vt_test_alloc(c, 300);
  _Atomic int32_t calls = 0;
  uint64_t tickets[3] = {0};
  REQUIRE_OK(c, vt_trace_set(take_trace, &book));
  vt_test_defer(c, stop_tracing, NULL);
  EXPECT_OK(c, vt_memset(queue, block, 1, 100));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &tickets[0]));
  EXPECT_OK(c, vt_copy(queue, block + 100, block, 50));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &tickets[1]));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &tickets[2]));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_trace_set(NULL, NULL));
  EXPECT_OK(c, vt_memset(queue, block, 2, 100));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  REQUIRE_EQ(c, 6, book.count);
  expect_pair(c, &book, 0, VT_TRACE_MEMSET, id, 100, tickets[0]);
  expect_pair(c, &book, 1, VT_TRACE_COPY, id, 50, tickets[1]);
  expect_pair(c, &book, 2, VT_TRACE_HOST_CALL, id, 0, tickets[2]);
}

static void a_launch_is_traced_with_its_nodes(vt_case *c) {
  static trace_book book = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  book.count = 0;
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 64);
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, 1, 64));
  EXPECT_OK(c, vt_memset(queue, block, 2, 32));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  REQUIRE_OK(c, vt_trace_set(take_trace, &book));
  vt_test_defer(c, stop_tracing, NULL);
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  vt_graph_release(graph);
  size_t graphs = 0;
  size_t fills = 0;
  for (size_t i = 0; i < book.count; i++) {
    graphs += book.seen[i].kind == VT_TRACE_GRAPH;
    fills += book.seen[i].kind == VT_TRACE_MEMSET;
  }
  EXPECT_EQ(c, 2, graphs);
  EXPECT_EQ(c, 4, fills);
  EXPECT_EQ(c, 6, book.count);
}

const vt_test_case vt_cases_log[] = {
    {"a_misused_release_is_logged", 0, a_misused_release_is_logged},
    {"every_operation_is_traced_with_begin_and_end", NEED_CPU, every_operation_is_traced_with_begin_and_end},
    {"a_launch_is_traced_with_its_nodes", NEED_GRAPH, a_launch_is_traced_with_its_nodes},
    VT_TEST_END};
