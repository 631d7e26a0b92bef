// toy.c: the plug-in backend defers, and everything that should make its work appear does.
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>

#include "toy_backend.h"

static int32_t value_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment on the thread that ran the work.
  return atomic_load_explicit(counter, memory_order_acquire);
}

static void the_plug_in_was_registered_before_main(vt_case *c) {
  EXPECT_OK(c, vt_suite_init());
  const vt_backend *backend = NULL;
  REQUIRE_OK(c, vt_backend_get(vt_test_device(c), &backend));
  EXPECT_TEXT(c, "toy", vt_backend_get_name(backend));
}

static void work_appears_when_the_device_is_flushed(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *from = vt_test_alloc(c, 100);
  unsigned char *to = vt_test_alloc(c, 100);
  _Atomic int32_t calls = 0;
  memset(from, 6, 100);
  EXPECT_OK(c, vt_copy(queue, to, from, 100));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_FILLED(c, 0, to, 100);
  EXPECT_EQ(c, 0, value_of(&calls));
  EXPECT_OK(c, vt_device_flush(vt_test_device(c)));
  EXPECT_FILLED(c, 6, to, 100);
  EXPECT_EQ(c, 1, value_of(&calls));
}

// Each way to ask about a queue runs its work, and only up to what was asked for.
static void work_appears_when_it_is_asked_for(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  unsigned char *block = vt_test_alloc(c, 8);
  for (int way = 1; way <= 6; way++) {
    uint64_t ticket = 0;
    EXPECT_OK(c, vt_memset(queue, block, way, 4));
    EXPECT_OK(c, vt_event_record(event, queue));
    EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
    EXPECT_OK(c, vt_memset(queue, block + 4, way, 4));
    EXPECT_FILLED(c, way - 1, block, 8);
    vt_status status = way == 1   ? vt_queue_synchronize(queue)
                       : way == 2 ? vt_queue_query(queue)
                       : way == 3 ? vt_queue_wait_ticket(queue, ticket, 0)
                       : way == 4 ? vt_queue_wait_ticket(queue, ticket, VT_WAIT_FOREVER)
                       : way == 5 ? vt_event_query(event)
                                  : vt_event_synchronize(event);
    EXPECT_EQ(c, VT_OK, status);
    EXPECT_FILLED(c, way, block, 4);
    EXPECT_FILLED(c, way <= 2 ? way : way - 1, block + 4, 4);
    EXPECT_OK(c, vt_queue_synchronize(queue));
  }
}

static void waiting_for_another_queue_runs_that_queue_first(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  unsigned char *block = vt_test_alloc(c, 30);
  EXPECT_OK(c, vt_memset(a, block, 1, 10));
  EXPECT_OK(c, vt_event_record(event, a));
  EXPECT_OK(c, vt_memset(a, block + 20, 2, 10));
  EXPECT_OK(c, vt_queue_after_event(b, event));
  EXPECT_OK(c, vt_copy(b, block + 10, block, 10));
  EXPECT_OK(c, vt_queue_synchronize(b));
  EXPECT_FILLED(c, 1, block + 10, 10);
  EXPECT_FILLED(c, 0, block + 20, 10);
}

static vt_status never_run(void *payload) {
  (void)payload;
  return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "never_run", "ran behind a failure");
}

static void keep_message(void *payload) {
  char *text;
  memcpy(&text, payload, sizeof(text));
  snprintf(text, VT_ERROR_MESSAGE_MAX, "%s", vt_last_error()->message);
}

static void a_cancelled_call_finds_the_failure_in_the_record(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  char message[VT_ERROR_MESSAGE_MAX] = "";
  char *text = message;
  char failure[] = "the first failure";
  vt_host_call call = {.run = never_run, .cancel = keep_message};
  memcpy(call.payload, &text, sizeof(text));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, failure, NULL));
  EXPECT_OK(c, vt_toy_get_ops()->queue_host_call(vt_toy_get_self(), vt_queue_get_native(queue), &call));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_wait_ticket(queue, 1, VT_WAIT_FOREVER));
  EXPECT_TEXT(c, "", message);
  (void)vt_error_set(VT_ERR_TIMEOUT, VT_DOMAIN_VT, 0, "another", "another failure of this thread");
  EXPECT_OK(c, vt_device_flush(vt_test_device(c)));
  EXPECT_TEXT(c, failure, message);
}

const vt_test_case vt_cases_toy[] = {
    {"the_plug_in_was_registered_before_main", NEED_TOY, the_plug_in_was_registered_before_main},
    {"work_appears_when_the_device_is_flushed", NEED_TOY, work_appears_when_the_device_is_flushed},
    {"work_appears_when_it_is_asked_for", NEED_TOY, work_appears_when_it_is_asked_for},
    {"waiting_for_another_queue_runs_that_queue_first", NEED_TOY, waiting_for_another_queue_runs_that_queue_first},
    {"a_cancelled_call_finds_the_failure_in_the_record", NEED_TOY, a_cancelled_call_finds_the_failure_in_the_record},
    VT_TEST_END};
