// validate.c: the validation layer: each fault that it must find, beside the same program in order, which it must leave alone.
#include "validate_rig.h"

#include <stdatomic.h>
#include <stdio.h>

static void settle(vt_case *c, const rig *r) {
  EXPECT_OK(c, vt_queue_synchronize(r->a));
  EXPECT_OK(c, vt_queue_synchronize(r->b));
}

// Both call sites, with queue, operation, and the function that made the call; the range; the words.
static void a_race_names_both_calls(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_copy(r.b, r.y, r.x, 100));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_copy", "vt_memset");
  const vt_validate_report *report = vt_test_last_report(c);
  EXPECT_EQ(c, sizeof(*report), report->struct_size);
  EXPECT_EQ(c, VT_SEVERITY_ERROR, report->severity);
  EXPECT_EQ(c, vt_queue_get_id(r.b), report->now.queue_id);
  EXPECT_EQ(c, vt_queue_get_id(r.a), report->before.queue_id);
  EXPECT_EQ(c, 1, report->now.sequence);
  EXPECT_EQ(c, 1, report->before.sequence);
  EXPECT_TRUE(c, report->ptr == r.x && report->bytes == 100);
  EXPECT_TRUE(c, report->now.caller != NULL && report->before.caller != NULL && report->now.caller != report->before.caller);
  EXPECT_TRUE(c, report->now.symbol[0] != '\0' && report->before.symbol[0] != '\0');
  EXPECT_TRUE(c, strstr(report->message, "race: vt_copy (called from ") == report->message);
  EXPECT_TRUE(c, strstr(report->message, "operation 1 reads 100 bytes at 0x") != NULL);
  EXPECT_TRUE(c, strstr(report->message, "vt_memset (called from ") != NULL);
  EXPECT_TRUE(c, strstr(report->message, "which writes 256 bytes at 0x") != NULL);
  settle(c, &r);
}

static void every_mix_of_reads_and_writes_is_judged(vt_case *c) {
  rig r = make_rig(c);
  static const uint32_t modes[] = {VT_TOUCH_READ, VT_TOUCH_WRITE, VT_TOUCH_READ | VT_TOUCH_WRITE};
  for (int first = 0; first < 3; first++) {
    for (int second = 0; second < 3; second++) {
      EXPECT_OK(c, vt_validate_touch(r.a, r.x, 64, modes[first]));
      EXPECT_OK(c, vt_validate_touch(r.b, r.x, 64, modes[second]));
      if (first + second == 0) {
        EXPECT_QUIET(c);  // two reads
      } else {
        EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_validate_touch", "vt_validate_touch");
      }
      settle(c, &r);
    }
  }
}

static void what_is_ordered_is_no_race(vt_case *c) {
  rig r = make_rig(c);
  vt_event *event = vt_test_event(c, 0);
  uint64_t ticket = 0;
  for (int how = 0; how < 6; how++) {
    EXPECT_OK(c, vt_memset(r.a, r.x, how, BYTES));
    switch (how) {
      case 0:
        order(c, r.a, r.b);
        break;
      case 1:
        EXPECT_OK(c, vt_queue_synchronize(r.a));
        break;
      case 2:
        EXPECT_OK(c, vt_queue_get_ticket(r.a, &ticket));
        EXPECT_OK(c, vt_queue_wait_ticket(r.a, ticket, VT_WAIT_FOREVER));
        break;
      case 3:
        while (vt_queue_query(r.a) == VT_NOT_READY) {
          vt_test_sleep_ns(1000);
        }
        break;
      case 4:
        EXPECT_OK(c, vt_event_record(event, r.a));
        EXPECT_OK(c, vt_event_synchronize(event));
        break;
      default:
        EXPECT_OK(c, vt_event_record(event, r.a));
        while (vt_event_query(event) == VT_NOT_READY) {
          vt_test_sleep_ns(1000);
        }
        break;
    }
    EXPECT_OK(c, vt_copy(r.b, r.y, r.x, BYTES));
    EXPECT_TRUE(c, EXPECT_QUIET(c) || FAIL_CASE(c, "way %d", how));
    settle(c, &r);
  }
}

// The host learns that the function has run; what stands before it in the queue is over then.
static void what_a_host_function_told_is_ordered(vt_case *c) {
  rig r = make_rig(c);
  _Atomic int32_t runs = 0;
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_queue_host_func(r.a, vt_test_host_count, &runs, NULL));
  while (atomic_load(&runs) == 0) {
    vt_test_sleep_ns(1000);
  }
  EXPECT_OK(c, vt_copy(r.b, r.y, r.x, BYTES));
  EXPECT_QUIET(c);
  settle(c, &r);
}

static void order_goes_over_a_third_queue(vt_case *c) {
  rig r = make_rig(c);
  vt_queue *middle = vt_test_queue(c);
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  order(c, r.a, middle);
  order(c, middle, r.b);
  EXPECT_OK(c, vt_copy(r.b, r.y, r.x, BYTES));
  EXPECT_QUIET(c);
  // Whoever waits for the last one has waited for all.
  EXPECT_OK(c, vt_queue_synchronize(r.b));
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_WRITE));
  EXPECT_QUIET(c);
}

static void order_covers_only_what_came_before_the_record(vt_case *c) {
  rig r = make_rig(c);
  vt_event *event = vt_test_event(c, 0);
  uint64_t ticket = 0;
  EXPECT_OK(c, vt_event_record(event, r.a));
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_queue_after_event(r.b, event));
  EXPECT_OK(c, vt_memset(r.b, r.x, 2, BYTES));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_memset");
  settle(c, &r);
  // An earlier ticket isn't enough either.
  EXPECT_OK(c, vt_memset(r.a, r.y, 1, BYTES));
  EXPECT_OK(c, vt_queue_get_ticket(r.a, &ticket));
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_queue_wait_ticket(r.a, ticket, VT_WAIT_FOREVER));
  EXPECT_OK(c, vt_validate_host_access(r.y, BYTES, VT_TOUCH_READ));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_validate_host_access", "vt_memset");
  settle(c, &r);
  // Nor is the way back: the first queue knows nothing of the second.
  EXPECT_OK(c, vt_memset(r.b, r.x, 1, BYTES));
  order(c, r.a, r.b);
  EXPECT_OK(c, vt_copy(r.a, r.y, r.x, BYTES));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_copy", "vt_memset");
  settle(c, &r);
}

static void neighbours_do_not_touch(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, 100));
  EXPECT_OK(c, vt_memset(r.b, r.x + 100, 2, 156));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.b, r.x + 99, 2, 1));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_memset");
  settle(c, &r);
}

static void host_memory_of_a_copy_is_followed(vt_case *c) {
  rig r = make_rig(c);
  unsigned char *host = vt_test_guarded_alloc(c, BYTES);
  EXPECT_OK(c, vt_copy(r.a, host, r.x, BYTES));
  EXPECT_OK(c, vt_copy(r.b, r.y, host, BYTES));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_copy", "vt_copy");
  EXPECT_OK(c, vt_validate_host_access(host + 10, 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_validate_host_access", "vt_copy");
  settle(c, &r);
  EXPECT_OK(c, vt_validate_host_access(host, BYTES, VT_TOUCH_WRITE));
  EXPECT_QUIET(c);
}

static void a_read_by_the_host_beside_a_pending_read_is_fine(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_OK(c, vt_copy(r.a, r.y, r.x, BYTES));
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_READ));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES, VT_TOUCH_WRITE));
  EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_validate_host_access", "vt_copy");
  settle(c, &r);
}

static void memory_with_pending_work_is_not_to_be_freed(vt_case *c) {
  rig r = make_rig(c);
  for (int waits = 0; waits < 2; waits++) {
    void *block = NULL;
    REQUIRE_OK(c, vt_alloc(vt_test_device(c), BYTES, &block));
    EXPECT_OK(c, vt_memset(r.a, block, 1, BYTES));
    if (waits) {
      EXPECT_OK(c, vt_queue_synchronize(r.a));
    }
    EXPECT_QUIET(c);
    // The layer keeps the block, so the pending fill does no harm here.
    EXPECT_OK(c, vt_free(vt_test_device(c), block));
    if (waits) {
      EXPECT_QUIET(c);
    } else {
      EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_free", "vt_memset");
    }
  }
  settle(c, &r);
}

static void use_after_free_names_the_free(vt_case *c) {
  rig r = make_rig(c);
  void *block = NULL;
  void *again = NULL;
  REQUIRE_OK(c, vt_alloc(vt_test_device(c), BYTES, &block));
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
  EXPECT_OK(c, vt_memset(r.a, (char *)block + 100, 1, 10));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_FREE, "vt_memset", "vt_free");
  EXPECT_OK(c, vt_validate_host_access(block, 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_FREE, "vt_validate_host_access", "vt_free");
  // What is allocated now is another block, wherever it lies.
  REQUIRE_OK(c, vt_alloc(vt_test_device(c), BYTES, &again));
  EXPECT_OK(c, vt_memset(r.a, again, 1, BYTES));
  settle(c, &r);
  EXPECT_OK(c, vt_free(vt_test_device(c), again));
  REQUIRE_OK(c, vt_pinned_alloc(vt_test_device(c), BYTES, &block));
  EXPECT_OK(c, vt_pinned_free(vt_test_device(c), block));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_copy(r.a, r.x, block, 1));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_FREE, "vt_copy", "vt_pinned_free");
  settle(c, &r);
}

// Blocks that are too many or too large to be kept are forgotten: their addresses may mean something else soon.
static void what_was_freed_long_ago_is_forgotten(vt_case *c) {
  vt_test_validate(c);
  vt_device device = vt_test_device(c);
  for (int i = 0; i < 3000; i++) {
    void *block = NULL;
    REQUIRE_OK(c, vt_alloc(device, (size_t)(i % 50) * 4000, &block));
    EXPECT_OK(c, vt_free(device, block));
  }
  for (int i = 0; i < 5; i++) {
    void *block = NULL;
    REQUIRE_OK(c, vt_alloc(device, (size_t)40 << 20, &block));
    EXPECT_OK(c, vt_free(device, block));
    vt_queue *queue = vt_test_queue(c);
    REQUIRE_OK(c, vt_alloc(device, (size_t)40 << 20, &block));
    EXPECT_OK(c, vt_memset(queue, block, 1, 100));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_OK(c, vt_free(device, block));
  }
  EXPECT_QUIET(c);
}

static void ranges_stay_in_their_block(vt_case *c) {
  rig r = make_rig(c);
  unsigned char host[2 * BYTES] = {0};
  EXPECT_OK(c, vt_validate_touch(r.a, r.x + 200, 57, VT_TOUCH_WRITE));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", "vt_alloc");
  EXPECT_OK(c, vt_validate_touch(r.a, r.x - 1, 2, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", "vt_alloc");
  settle(c, &r);
  EXPECT_OK(c, vt_validate_host_access(r.x, BYTES + 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_host_access", "vt_alloc");
  EXPECT_OK(c, vt_validate_touch(r.a, r.x + 200, 56, VT_TOUCH_WRITE));
  EXPECT_OK(c, vt_copy(r.a, host, r.x, BYTES));
  EXPECT_OK(c, vt_memset(r.a, r.x + BYTES, 0, 0));
  EXPECT_QUIET(c);
  settle(c, &r);
}

static void arenas_are_followed(vt_case *c) {
  rig r = make_rig(c);
  vt_arena *arena = vt_test_arena(c, 1024);
  void *first = NULL;
  void *second = NULL;
  void *third = NULL;
  vt_arena_mark mark;
  REQUIRE_OK(c, vt_arena_alloc(arena, 100, &first));
  REQUIRE_OK(c, vt_arena_get_mark(arena, &mark));
  REQUIRE_OK(c, vt_arena_alloc(arena, 100, &second));
  EXPECT_OK(c, vt_memset(r.a, second, 1, 100));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_touch(r.a, first, 101, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", "vt_arena_alloc");
  EXPECT_OK(c, vt_validate_touch(r.a, (char *)second + 200, 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", "vt_arena_alloc");
  EXPECT_OK(c, vt_arena_rewind(arena, mark));
  EXPECT_OK(c, vt_memset(r.a, first, 1, 100));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.a, second, 1, 100));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_RESET, "vt_memset", "vt_arena_rewind");
  EXPECT_OK(c, vt_arena_reset(arena));
  EXPECT_OK(c, vt_copy(r.a, r.x, first, 100));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_RESET, "vt_copy", "vt_arena_reset");
  // The next step takes the same bytes: fine on the same queue, a race on another one.
  REQUIRE_OK(c, vt_arena_alloc(arena, 100, &third));
  EXPECT_OK(c, vt_memset(r.a, third, 1, 100));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_memset(r.b, third, 1, 100));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_memset", "vt_memset");
  settle(c, &r);
}

static void an_arena_goes_when_its_work_is_over(vt_case *c) {
  rig r = make_rig(c);
  vt_arena *arena = NULL;
  void *part = NULL;
  REQUIRE_OK(c, vt_arena_create(vt_test_device(c), 256, &arena));
  REQUIRE_OK(c, vt_arena_alloc_elements(arena, 16, VT_DTYPE_F32, &part));
  EXPECT_OK(c, vt_memset(r.a, part, 1, 64));
  EXPECT_QUIET(c);
  vt_arena_release(arena);
  EXPECT_REPORT(c, VT_VALIDATE_PENDING, "vt_arena_release", "vt_memset");
  EXPECT_OK(c, vt_memset(r.a, part, 1, 64));
  EXPECT_REPORT(c, VT_VALIDATE_USE_AFTER_FREE, "vt_memset", "vt_arena_release");
  settle(c, &r);
}

static void a_wait_for_an_unrecorded_event_is_a_notice(vt_case *c) {
  rig r = make_rig(c);
  vt_event *event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_OK(c, vt_event_wait(event, 0));
  EXPECT_QUIET(c);  // asking is no waiting
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_REPORT(c, VT_VALIDATE_UNRECORDED_EVENT, "vt_event_synchronize", NULL);
  EXPECT_EQ(c, VT_SEVERITY_NOTICE, vt_test_last_report(c)->severity);
  EXPECT_OK(c, vt_event_wait(event, 1000));
  EXPECT_REPORT(c, VT_VALIDATE_UNRECORDED_EVENT, "vt_event_wait", NULL);
  EXPECT_OK(c, vt_queue_after_event(r.a, event));
  EXPECT_REPORT(c, VT_VALIDATE_UNRECORDED_EVENT, "vt_queue_after_event", NULL);
  EXPECT_OK(c, vt_event_record(event, r.b));
  EXPECT_OK(c, vt_queue_after_event(r.a, event));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_QUIET(c);
}

static void work_that_failed_is_over(vt_case *c) {
  rig r = make_rig(c);
  static char text[] = "on purpose";
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_queue_host_func(r.a, vt_test_host_fail, text, NULL));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(r.a));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_memset(r.a, r.x, 1, BYTES));  // not taken: no use
  EXPECT_OK(c, vt_memset(r.b, r.x, 2, BYTES));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_queue_synchronize(r.b));
}

static void synchronous_queues_are_like_the_host(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_copy(r.b, r.y, r.x, BYTES));
  EXPECT_OK(c, vt_memset(r.a, r.y, 1, BYTES));
  EXPECT_OK(c, vt_validate_host_access(r.y, BYTES, VT_TOUCH_WRITE));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_touch(r.a, r.x, BYTES + 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", "vt_alloc");
}

static void a_synchronous_queue_races_with_an_asynchronous_one(vt_case *c) {
  rig r = make_rig(c);
  vt_queue *sync = NULL;
  vt_event *event = vt_test_event(c, 0);
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), NULL, &sync));
  EXPECT_OK(c, vt_memset(r.a, r.x, 1, BYTES));
  EXPECT_OK(c, vt_event_record(event, r.a));
  EXPECT_OK(c, vt_copy(sync, r.y, r.x, BYTES));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_copy", "vt_memset");
  EXPECT_OK(c, vt_queue_after_event(sync, event));
  EXPECT_OK(c, vt_copy(sync, r.y, r.x, BYTES));
  EXPECT_OK(c, vt_memset(r.a, r.y, 1, BYTES));
  EXPECT_QUIET(c);
  settle(c, &r);
  vt_queue_release(sync);
}

static void bad_touches_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  char byte = 0;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "mode 0x0", vt_validate_touch(queue, &byte, 1, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "mode 0x4", vt_validate_touch(queue, &byte, 1, 4));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "ptr is NULL", vt_validate_touch(queue, NULL, 1, VT_TOUCH_READ));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_validate_touch(NULL, &byte, 1, VT_TOUCH_READ));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "mode 0x8", vt_validate_host_access(&byte, 1, 8));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "ptr is NULL", vt_validate_host_access(NULL, 1, VT_TOUCH_READ));
  EXPECT_OK(c, vt_validate_touch(queue, NULL, 0, VT_TOUCH_READ));
  EXPECT_OK(c, vt_validate_host_access(NULL, 0, VT_TOUCH_READ));
}

static void kinds_have_names_and_counters(vt_case *c) {
  rig r = make_rig(c);
  EXPECT_TEXT(c, "race", vt_validate_kind_get_name(VT_VALIDATE_RACE));
  for (vt_validate_kind kind = 0; kind < VT_VALIDATE_KIND_COUNT; kind++) {
    EXPECT_TRUE(c, vt_validate_kind_get_name(kind) != NULL);
  }
  EXPECT_TEXT(c, NULL, vt_validate_kind_get_name(-1));
  EXPECT_TEXT(c, NULL, vt_validate_kind_get_name(VT_VALIDATE_KIND_COUNT));
  EXPECT_EQ(c, 0, vt_validate_get_count(-1));
  EXPECT_EQ(c, 0, vt_validate_get_count(VT_VALIDATE_KIND_COUNT));
  uint64_t before = vt_validate_get_count(VT_VALIDATE_OUT_OF_BOUNDS);
  uint64_t races = vt_validate_get_count(VT_VALIDATE_RACE);
  EXPECT_OK(c, vt_validate_touch(r.a, r.x, BYTES + 1, VT_TOUCH_READ));
  EXPECT_EQ(c, before + 1, vt_validate_get_count(VT_VALIDATE_OUT_OF_BOUNDS));
  EXPECT_EQ(c, races, vt_validate_get_count(VT_VALIDATE_RACE));
}

typedef struct logged {
  int errors;
  int others;
  char text[1024];
} logged;

static void on_log(void *user, vt_log_level level, const char *message) {
  logged *log = user;
  log->errors += level == VT_LOG_ERROR;
  log->others += level == VT_LOG_INFO;
  snprintf(log->text, sizeof(log->text), "%s", message);
}

static void reports_go_to_the_log(vt_case *c) {
  rig r = make_rig(c);
  static logged log;
  log = (logged){0};
  REQUIRE_OK(c, vt_log_set(on_log, &log, VT_LOG_DEBUG));
  EXPECT_OK(c, vt_validate_touch(r.a, r.x, BYTES + 1, VT_TOUCH_READ));
  EXPECT_EQ(c, 1, log.errors);
  EXPECT_TRUE(c, strstr(log.text, "validation: out of bounds: vt_validate_touch") == log.text);
  EXPECT_OK(c, vt_event_synchronize(vt_test_event(c, 0)));
  EXPECT_EQ(c, 1, log.others);
  EXPECT_TRUE(c, strstr(log.text, "validation: unrecorded event: vt_event_synchronize") == log.text);
  REQUIRE_OK(c, vt_log_set(NULL, NULL, VT_LOG_OFF));
}

// Turning it on is knowing nothing of earlier work, and of earlier blocks only their bounds.
static void earlier_work_is_not_judged(vt_case *c) {
  if (vt_validate_is_enabled()) {
    SKIP_CASE(c, "validation is on for the whole run");
  }
  vt_queue *a = vt_test_queue(c);
  vt_queue *b = vt_test_queue(c);
  unsigned char *x = vt_test_alloc(c, BYTES);
  vt_event *event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_memset(a, x, 1, BYTES));
  EXPECT_OK(c, vt_event_record(event, a));
  vt_test_validate(c);
  EXPECT_EQ(c, 1, vt_validate_is_enabled());
  EXPECT_OK(c, vt_queue_after_event(b, event));
  EXPECT_OK(c, vt_memset(b, x, 2, BYTES));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_validate_touch(b, x, BYTES + 1, VT_TOUCH_READ));
  EXPECT_REPORT(c, VT_VALIDATE_OUT_OF_BOUNDS, "vt_validate_touch", NULL);
  EXPECT_OK(c, vt_validate_disable());
  EXPECT_EQ(c, 0, vt_validate_is_enabled());
  EXPECT_OK(c, vt_validate_touch(a, x, BYTES + 1, VT_TOUCH_READ));
  EXPECT_OK(c, vt_validate_enable());
  EXPECT_OK(c, vt_memset(a, x, 3, BYTES));
  EXPECT_QUIET(c);
  EXPECT_OK(c, vt_queue_synchronize(a));
  EXPECT_OK(c, vt_queue_synchronize(b));
}

static void use_everything(vt_case *c, int32_t index, void *arg) {
  rig *r = arg;
  vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)index);
  vt_queue *queue = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  for (int i = 0; i < 300; i++) {
    void *block = NULL;
    REQUIRE_OK(c, vt_alloc(vt_test_device(c), 1 + vt_test_random_below(&rng, 5000), &block));
    EXPECT_OK(c, vt_memset(queue, block, 1, 1));
    EXPECT_OK(c, vt_validate_touch(queue, r->x + index * 8, 8, VT_TOUCH_WRITE));
    EXPECT_OK(c, vt_event_record(event, queue));
    if (i % 2 == 0) {
      EXPECT_OK(c, vt_queue_after_event(r->a, event));
      EXPECT_OK(c, vt_event_synchronize(event));
    } else {
      EXPECT_OK(c, vt_queue_synchronize(queue));
    }
    EXPECT_OK(c, vt_free(vt_test_device(c), block));
  }
}

static void threads_are_followed_at_once(vt_case *c) {
  rig r = make_rig(c);
  vt_test_threads(c, 4, use_everything, &r);
  EXPECT_QUIET(c);
  settle(c, &r);
}

static void toggle(vt_case *c, int32_t index, void *arg) {
  rig *r = arg;
  for (int i = 0; i < 100; i++) {
    if (index == 0) {
      EXPECT_OK(c, vt_validate_disable());
      EXPECT_OK(c, vt_validate_enable());
    } else {
      void *block = NULL;
      vt_queue *queue = index == 1 ? r->a : r->b;
      REQUIRE_OK(c, vt_alloc(vt_test_device(c), 100, &block));
      EXPECT_OK(c, vt_memset(queue, block, 1, 100));
      EXPECT_OK(c, vt_queue_synchronize(queue));
      EXPECT_OK(c, vt_free(vt_test_device(c), block));
    }
  }
}

static void it_may_be_turned_on_and_off_under_load(vt_case *c) {
  rig r = make_rig(c);
  vt_test_threads(c, 3, toggle, &r);
  EXPECT_QUIET(c);
}

// More than is kept: something may be missed, nothing is made up, and a notice says so.
static void a_full_table_is_a_notice(vt_case *c) {
  rig r = make_rig(c);
  enum { USES = 5000 };
  unsigned char *large = vt_test_alloc(c, USES * 8);
  for (size_t i = 0; i < USES; i++) {
    EXPECT_OK(c, vt_validate_touch(r.a, large + 8 * i, 4, VT_TOUCH_WRITE));
  }
  EXPECT_REPORT(c, VT_VALIDATE_LIMIT, NULL, NULL);
  EXPECT_EQ(c, VT_SEVERITY_NOTICE, vt_test_last_report(c)->severity);
  EXPECT_OK(c, vt_validate_touch(r.b, large + 8 * (USES - 1), 4, VT_TOUCH_WRITE));
  EXPECT_REPORT(c, VT_VALIDATE_RACE, "vt_validate_touch", "vt_validate_touch");
  settle(c, &r);
}

// Cases whose queues really race are not for ThreadSanitizer, which would find that.
const vt_test_case vt_cases_validate[] = {
    {"a_race_names_both_calls", NEED_ASYNC | NEED_NO_TSAN, a_race_names_both_calls},
    {"every_mix_of_reads_and_writes_is_judged", NEED_ASYNC, every_mix_of_reads_and_writes_is_judged},
    {"what_is_ordered_is_no_race", NEED_ASYNC, what_is_ordered_is_no_race},
    {"what_a_host_function_told_is_ordered", NEED_WORKER, what_a_host_function_told_is_ordered},
    {"order_goes_over_a_third_queue", NEED_ASYNC, order_goes_over_a_third_queue},
    {"order_covers_only_what_came_before_the_record", NEED_ASYNC | NEED_NO_TSAN, order_covers_only_what_came_before_the_record},
    {"neighbours_do_not_touch", NEED_ASYNC | NEED_NO_TSAN, neighbours_do_not_touch},
    {"host_memory_of_a_copy_is_followed", NEED_ASYNC | NEED_NO_TSAN, host_memory_of_a_copy_is_followed},
    {"a_read_by_the_host_beside_a_pending_read_is_fine", NEED_ASYNC, a_read_by_the_host_beside_a_pending_read_is_fine},
    {"memory_with_pending_work_is_not_to_be_freed", NEED_WORKER, memory_with_pending_work_is_not_to_be_freed},
    {"use_after_free_names_the_free", NEED_CPU, use_after_free_names_the_free},
    {"what_was_freed_long_ago_is_forgotten", 0, what_was_freed_long_ago_is_forgotten},
    {"ranges_stay_in_their_block", 0, ranges_stay_in_their_block},
    {"arenas_are_followed", NEED_ASYNC | NEED_NO_TSAN, arenas_are_followed},
    {"an_arena_goes_when_its_work_is_over", NEED_WORKER, an_arena_goes_when_its_work_is_over},
    {"a_wait_for_an_unrecorded_event_is_a_notice", 0, a_wait_for_an_unrecorded_event_is_a_notice},
    {"work_that_failed_is_over", NEED_ASYNC, work_that_failed_is_over},
    {"synchronous_queues_are_like_the_host", NEED_SYNC, synchronous_queues_are_like_the_host},
    {"a_synchronous_queue_races_with_an_asynchronous_one", NEED_WORKER | NEED_NO_TSAN,
     a_synchronous_queue_races_with_an_asynchronous_one},
    {"bad_touches_are_refused", 0, bad_touches_are_refused},
    {"kinds_have_names_and_counters", 0, kinds_have_names_and_counters},
    {"reports_go_to_the_log", 0, reports_go_to_the_log},
    {"earlier_work_is_not_judged", NEED_ASYNC | NEED_NO_TSAN, earlier_work_is_not_judged},
    {"threads_are_followed_at_once", 0, threads_are_followed_at_once},
    {"it_may_be_turned_on_and_off_under_load", REPORTS, it_may_be_turned_on_and_off_under_load},
    {"a_full_table_is_a_notice", NEED_ASYNC, a_full_table_is_a_notice},
    VT_TEST_END};
