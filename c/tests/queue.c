// queue.c: making queues, waiting for them, tickets, host functions.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int32_t value_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment on the queue's thread.
  return atomic_load_explicit(counter, memory_order_acquire);
}

static void bad_options_are_refused(vt_case *c) {
  vt_queue *queue = NULL;
  vt_queue_options options = vt_test_queue_options(c);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_queue", vt_queue_create(vt_test_device(c), &options, NULL));
  options.flags = 1u << 9;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "0x200", vt_queue_create(vt_test_device(c), &options, &queue));
  options = vt_test_queue_options(c);
  options.ring_capacity = 65537;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "65537", vt_queue_create(vt_test_device(c), &options, &queue));
  options = vt_test_queue_options(c);
  options.priority = -21;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-21", vt_queue_create(vt_test_device(c), &options, &queue));
  options.priority = 20;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "20", vt_queue_create(vt_test_device(c), &options, &queue));
  options = vt_test_queue_options(c);
  options.struct_size = 2;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 2", vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_TRUE(c, queue == NULL);
}

static void queue_works_with_every_option(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.name = "a-name-longer-than-a-thread-may-have";
  options.ring_capacity = 3;
  options.cpu_mask = 1;
  options.priority = 5;
  vt_queue *queue = vt_test_queue_with(c, &options);
  unsigned char *block = vt_test_alloc(c, 100);
  for (int i = 0; i < 50; i++) {
    EXPECT_OK(c, vt_memset(queue, block, i, 100));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 49, block, 100);
}

static void queue_answers_what_it_is(vt_case *c) {
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  vt_device device = {-1, -1};
  EXPECT_OK(c, vt_queue_get_device(a, &device));
  EXPECT_TRUE(c, device.type == vt_test_device(c).type && device.index == 0);
  EXPECT_EQ(c, vt_test_has(c, NEED_SYNC), vt_queue_is_synchronous(a));
  uint64_t id = vt_queue_get_id(a);
  EXPECT_TRUE(c, id != 0 && vt_queue_get_id(b) > id && vt_queue_get_id(a) == id);
  EXPECT_EQ(c, 0, vt_queue_is_capturing(a));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_device", vt_queue_get_device(a, NULL));
}

// An id is never used again, though the memory of a handle is.
static void queue_ids_grow(vt_case *c) {
  uint64_t last = 0;
  for (int i = 0; i < 50; i++) {
    vt_queue *queue = NULL;
    vt_queue_options options = vt_test_queue_options(c);
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
    EXPECT_TRUE(c, vt_queue_get_id(queue) > last);
    last = vt_queue_get_id(queue);
    vt_queue_release(queue);
  }
}

static void tickets_grow_and_can_be_waited_for(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 64);
  uint64_t last = 99;
  EXPECT_OK(c, vt_queue_get_ticket(queue, &last));
  EXPECT_EQ(c, 0, last);
  EXPECT_OK(c, vt_queue_wait_ticket(queue, 0, VT_WAIT_FOREVER));
  for (int i = 1; i <= 20; i++) {
    uint64_t ticket = 0;
    EXPECT_OK(c, vt_memset(queue, block, i, 64));
    EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
    EXPECT_TRUE(c, ticket > last && (i > 1 || ticket >= 1));
    last = ticket;
  }
  EXPECT_OK(c, vt_queue_wait_ticket(queue, last, VT_WAIT_FOREVER));
  EXPECT_FILLED(c, 20, block, 64);
  EXPECT_OK(c, vt_queue_wait_ticket(queue, last, 0));
  EXPECT_OK(c, vt_queue_wait_ticket(queue, 1, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "not given out", vt_queue_wait_ticket(queue, last + 1, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "not given out", vt_queue_wait_ticket(queue, UINT64_MAX, VT_WAIT_FOREVER));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ticket", vt_queue_get_ticket(queue, NULL));
}

typedef struct order {
  int32_t next;
  int32_t seen[32];
} order;

typedef struct step {
  order *log;
  int32_t number;
} step;

static vt_status note_step(void *user) {
  step *s = user;
  s->log->seen[s->log->next++] = s->number;
  return VT_OK;
}

static void host_functions_run_in_stream_order_and_are_dropped_once(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  order log = {0};
  step steps[32];
  _Atomic int32_t drops = 0;
  _Atomic int32_t calls = 0;
  for (int32_t i = 0; i < 32; i++) {
    steps[i] = (step){&log, i};
    EXPECT_OK(c, vt_queue_host_func(queue, note_step, &steps[i], NULL));
  }
  for (int i = 0; i < 10; i++) {
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 32, log.next);
  for (int32_t i = 0; i < 32; i++) {
    EXPECT_EQ(c, i, log.seen[i]);
  }
  EXPECT_EQ(c, 10, value_of(&calls));
  EXPECT_EQ(c, 20, value_of(&drops));
}

static void refused_host_functions_are_dropped_too(vt_case *c) {
  _Atomic int32_t drops = 0;
  vt_queue *queue = vt_test_queue(c);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "fn is NULL", vt_queue_host_func(queue, NULL, &drops, vt_test_drop_count));
  EXPECT_EQ(c, 1, value_of(&drops));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL",
               vt_queue_host_func(NULL, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_EQ(c, 2, value_of(&drops));
}

typedef struct caller {
  vt_queue *queue;
  vt_event *event;
  vt_status status[8];
  char message[VT_ERROR_MESSAGE_MAX];
} caller;

static vt_status call_the_runtime(void *user) {
  caller *k = user;
  char byte = 0;
  void *ptr;
  k->status[0] = vt_queue_synchronize(k->queue);
  snprintf(k->message, sizeof(k->message), "%s", vt_last_error()->message);
  k->status[1] = vt_memset(k->queue, &byte, 0, 1);
  k->status[2] = vt_event_record(k->event, k->queue);
  k->status[3] = vt_event_wait(k->event, 0);
  k->status[4] = vt_alloc((vt_device){VT_DEVICE_CPU, 0}, 8, &ptr);
  k->status[5] = vt_queue_host_func(k->queue, vt_test_host_wait, NULL, NULL);
  k->status[6] = vt_queue_after_event(k->queue, k->event);
  k->status[7] = vt_comm_batch_begin();
  return VT_OK;
}

static void callbacks_may_not_call_the_runtime(vt_case *c) {
  caller k = {.queue = vt_test_queue(c), .event = vt_test_event(c, 0)};
  EXPECT_OK(c, vt_queue_host_func(k.queue, call_the_runtime, &k, NULL));
  EXPECT_OK(c, vt_queue_synchronize(k.queue));
  for (size_t i = 0; i < 8; i++) {
    if (k.status[i] != VT_ERR_FAILED_PRECONDITION) {
      FAIL_CASE(c, "call %zu from a callback answered %s", i, vt_status_get_name(k.status[i]));
    }
  }
  if (strstr(k.message, "from a callback") == NULL) {
    FAIL_CASE(c, "the message was \"%s\"", k.message);
  }
  // The thread is as it was.
  char byte = 0;
  EXPECT_OK(c, vt_memset(k.queue, &byte, 1, 1));
  EXPECT_OK(c, vt_queue_synchronize(k.queue));
}

// What the owner of per-queue scratch does: its block goes with the queue, through a call of the runtime.

typedef struct ending {
  vt_device device;
  void *scratch;
  order *log;
  int32_t number;
  vt_status status;
  _Atomic int32_t over;
} ending;

static void end_scratch(void *user) {
  ending *e = user;
  e->log->seen[e->log->next++] = e->number;
  e->status = vt_free(e->device, e->scratch);
  // release: partner is the acquire load of the case.
  atomic_store_explicit(&e->over, 1, memory_order_release);
}

static void await_ending(ending *e) {
  while (value_of(&e->over) == 0) {
    vt_test_sleep_ns(100000);
  }
}

static void end_hooks_run_last_and_in_reverse(vt_case *c) {
  for (int way = 0; way < 2; way++) {
    vt_queue_options options = vt_test_queue_options(c);
    vt_queue *queue = NULL;
    order log = {0};
    step work = {&log, 7};
    ending first = {.device = vt_test_device(c), .log = &log, .number = 1, .status = VT_NOT_READY};
    ending second = {.device = vt_test_device(c), .log = &log, .number = 2, .status = VT_NOT_READY};
    REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
    REQUIRE_OK(c, vt_alloc(vt_test_device(c), 100, &first.scratch));
    REQUIRE_OK(c, vt_alloc(vt_test_device(c), 100, &second.scratch));
    EXPECT_OK(c, vt_queue_on_destroy(queue, end_scratch, &first));
    EXPECT_OK(c, vt_queue_on_destroy(queue, end_scratch, &second));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "fn is NULL", vt_queue_on_destroy(queue, NULL, NULL));
    EXPECT_OK(c, vt_memset(queue, first.scratch, 1, 100));
    EXPECT_OK(c, vt_queue_host_func(queue, note_step, &work, NULL));
    if (way == 0) {
      vt_queue_release(queue);
    } else {
      EXPECT_OK(c, vt_queue_destroy(queue));
    }
    await_ending(&first);
    EXPECT_EQ(c, 3, log.next);
    EXPECT_EQ(c, 7, log.seen[0]);
    EXPECT_EQ(c, 2, log.seen[1]);
    EXPECT_EQ(c, 1, log.seen[2]);
    EXPECT_OK(c, first.status);
    EXPECT_OK(c, second.status);
  }
}

static void release_last_reference(void *queue) {
  vt_queue_release(queue);
}

static vt_status do_nothing(void *unused) {
  (void)unused;
  return VT_OK;
}

// A queue that has run something or not, with a hook that gives `e` its memory back.
static vt_queue *queue_with_hook(vt_case *c, ending *e, order *log, int used) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  *e = (ending){.device = vt_test_device(c), .log = log, .number = 1, .status = VT_NOT_READY};
  EXPECT_OK(c, vt_queue_create(e->device, &options, &queue));
  EXPECT_OK(c, vt_alloc(e->device, 100, &e->scratch));
  EXPECT_OK(c, vt_queue_on_destroy(queue, end_scratch, e));
  if (used) {
    EXPECT_OK(c, vt_queue_host_func(queue, do_nothing, NULL, NULL));
    EXPECT_OK(c, vt_queue_synchronize(queue));
  }
  return queue;
}

static void end_hooks_may_call_the_runtime_where_the_releasing_callback_may_not(vt_case *c) {
  vt_queue *other = vt_test_queue(c);
  for (int used = 0; used < 2; used++) {
    order log = {0};
    ending e;
    vt_queue *queue = queue_with_hook(c, &e, &log, used);
    EXPECT_OK(c, vt_queue_host_func(other, do_nothing, queue, release_last_reference));
    EXPECT_OK(c, vt_queue_synchronize(other));
    await_ending(&e);
    EXPECT_OK(c, e.status);
    EXPECT_EQ(c, 1, log.next);
  }
  char byte = 0;
  EXPECT_OK(c, vt_memset(other, &byte, 1, 1));
  EXPECT_OK(c, vt_queue_synchronize(other));
}

static void end_hooks_may_call_the_runtime_while_their_thread_captures(vt_case *c) {
  vt_queue *capturing = vt_test_queue(c);
  for (int used = 0; used < 2; used++) {
    order log = {0};
    ending e;
    void *ptr = NULL;
    vt_queue *queue = queue_with_hook(c, &e, &log, used);
    EXPECT_OK(c, vt_graph_begin_capture(capturing));
    vt_queue_release(queue);
    await_ending(&e);
    EXPECT_OK(c, e.status);
    // The thread is capturing as before.
    EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "capture", vt_alloc(vt_test_device(c), 8, &ptr));
    EXPECT_OK(c, vt_graph_abort_capture(capturing));
    EXPECT_OK(c, vt_alloc(vt_test_device(c), 8, &ptr));
    EXPECT_OK(c, vt_free(vt_test_device(c), ptr));
  }
}

static void destroy_waits_and_other_references_refuse_work(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  unsigned char *block = vt_test_alloc(c, 1000);
  vt_event *event = vt_test_event(c, 0);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  REQUIRE_OK(c, vt_queue_retain(queue));
  for (int i = 0; i < 20; i++) {
    EXPECT_OK(c, vt_memset(queue, block, i, 1000));
  }
  EXPECT_OK(c, vt_queue_destroy(queue));
  EXPECT_FILLED(c, 19, block, 1000);
  _Atomic int32_t drops = 0;
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "destroyed", vt_memset(queue, block, 0, 1000));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "destroyed", vt_copy(queue, block, block + 500, 100));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "destroyed", vt_event_record(event, queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "destroyed", vt_queue_after_event(queue, event));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "destroyed",
               vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  EXPECT_EQ(c, 1, value_of(&drops));
  EXPECT_FILLED(c, 19, block, 1000);
  EXPECT_TRUE(c, vt_queue_get_id(queue) != 0);
  vt_queue_release(queue);
}

// A released queue still runs what it holds.
static void released_queues_run_what_they_hold(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  unsigned char *block = vt_test_alloc(c, 1000);
  _Atomic int32_t calls = 0;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  for (int i = 1; i <= 100; i++) {
    EXPECT_OK(c, vt_memset(queue, block, i, 1000));
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  }
  vt_queue_release(queue);
  while (value_of(&calls) < 100) {
    vt_test_sleep_ns(100000);
  }
  EXPECT_FILLED(c, 100, block, 1000);
}

typedef struct shared_queue {
  vt_queue *queue;
  _Atomic int32_t *calls;
} shared_queue;

static void submit_many(vt_case *c, int32_t index, void *arg) {
  shared_queue *shared = arg;
  (void)index;
  for (int i = 0; i < 200; i++) {
    EXPECT_OK(c, vt_queue_host_func(shared->queue, vt_test_host_count, shared->calls, NULL));
    if (i % 50 == 49) {
      EXPECT_OK(c, vt_queue_synchronize(shared->queue));
    }
  }
}

static void threads_may_share_a_queue(vt_case *c) {
  _Atomic int32_t calls = 0;
  shared_queue shared = {vt_test_queue(c), &calls};
  vt_test_threads(c, 4, submit_many, &shared);
  EXPECT_OK(c, vt_queue_synchronize(shared.queue));
  EXPECT_EQ(c, 800, value_of(&calls));
}

const vt_test_case vt_cases_queue[] = {
    {"bad_options_are_refused", 0, bad_options_are_refused},
    {"queue_works_with_every_option", 0, queue_works_with_every_option},
    {"queue_answers_what_it_is", 0, queue_answers_what_it_is},
    {"queue_ids_grow", 0, queue_ids_grow},
    {"tickets_grow_and_can_be_waited_for", 0, tickets_grow_and_can_be_waited_for},
    {"host_functions_run_in_stream_order_and_are_dropped_once", 0, host_functions_run_in_stream_order_and_are_dropped_once},
    {"refused_host_functions_are_dropped_too", 0, refused_host_functions_are_dropped_too},
    {"callbacks_may_not_call_the_runtime", 0, callbacks_may_not_call_the_runtime},
    {"end_hooks_run_last_and_in_reverse", 0, end_hooks_run_last_and_in_reverse},
    {"end_hooks_may_call_the_runtime_where_the_releasing_callback_may_not", 0,
     end_hooks_may_call_the_runtime_where_the_releasing_callback_may_not},
    {"end_hooks_may_call_the_runtime_while_their_thread_captures", NEED_GRAPH | REPORTS,
     end_hooks_may_call_the_runtime_while_their_thread_captures},
    {"destroy_waits_and_other_references_refuse_work", 0, destroy_waits_and_other_references_refuse_work},
    {"released_queues_run_what_they_hold", 0, released_queues_run_what_they_hold},
    {"threads_may_share_a_queue", 0, threads_may_share_a_queue},
    VT_TEST_END};
