// pool_model.c: random use of the pool over queues and threads. Every block is filled with words of its own by each of its users,
// in stream order; a user that finds other words has met somebody who got the block too early.
#include "vt_test.h"

#include <stdlib.h>

enum { QUEUES = 4, THREADS = 3 };

// One use of a block: it holds `expected` (0: anything), then `next`.
typedef struct use {
  vt_case *c;
  uint64_t *words;
  size_t count;
  uint64_t expected;
  uint64_t next;
  uint64_t delay_ns;
} use;

static vt_status run_use(void *user) {
  const use *u = user;
  if (u->delay_ns != 0) {
    vt_test_sleep_ns(u->delay_ns);
  }
  for (size_t i = 0; i < u->count; i++) {
    if (u->expected != 0 && u->words[i] != u->expected) {
      FAIL_CASE(u->c, "word %zu of %zu is %llx, not %llx: somebody else has the block", i, u->count,
                (unsigned long long)u->words[i], (unsigned long long)u->expected);
      return VT_OK;
    }
    u->words[i] = u->next;
  }
  return VT_OK;
}

// What a thread has at hand.
typedef struct actor {
  vt_case *c;
  vt_test_rng rng;
  vt_queue *queues[QUEUES];
  vt_event *event;
  uint64_t last_word;
} actor;

static uint64_t below(actor *a, uint64_t limit) {
  return vt_test_random_below(&a->rng, limit);
}

static uint64_t queue_use(actor *a, vt_queue *queue, uint64_t *words, size_t count, uint64_t expected) {
  use *u = malloc(sizeof(*u));
  if (u == NULL) {
    return expected;
  }
  uint64_t delay_ns = below(a, 8) == 0 ? below(a, 200000) : 0;
  *u = (use){.c = a->c, .words = words, .count = count, .expected = expected, .next = ++a->last_word, .delay_ns = delay_ns};
  uint64_t next = u->next;
  EXPECT_OK(a->c, vt_queue_host_func(queue, run_use, u, free));
  return next;
}

static vt_queue *new_queue(actor *a) {
  vt_queue_options options = vt_test_queue_options(a->c);
  vt_queue *queue = NULL;
  EXPECT_OK(a->c, vt_queue_create(vt_test_device(a->c), &options, &queue));
  return queue;
}

// The block goes back on a queue that failed before it could wait for the last user; the queue goes as well.
static void free_on_a_failed_queue(actor *a, vt_queue *last, void *block) {
  vt_queue *queue = new_queue(a);
  (void)vt_queue_host_func(queue, vt_test_host_fail, "failed on purpose", NULL);
  EXPECT_OK(a->c, vt_event_record(a->event, last));
  (void)vt_queue_after_event(queue, a->event);
  EXPECT_OK(a->c, vt_free_async(queue, block));
  vt_queue_release(queue);
}

static void give_back(actor *a, vt_queue *last, void *block) {
  if (below(a, 16) == 0 && vt_test_has(a->c, NEED_WORKER)) {
    free_on_a_failed_queue(a, last, block);
  } else if (below(a, 16) == 0) {
    EXPECT_OK(a->c, vt_queue_synchronize(last));
    EXPECT_OK(a->c, vt_free(vt_test_device(a->c), block));
  } else {
    EXPECT_OK(a->c, vt_free_async(last, block));
  }
}

// A block is allocated on one queue, used there and on some others, and given back on the last one, all without waiting.
static void live_a_life(actor *a) {
  static const size_t sizes[] = {64, 1000, 5000, 70000, (1 << 20) + 8};
  size_t bytes = sizes[below(a, vt_test_is_slow() ? 4 : 5)];
  vt_queue *queue = a->queues[below(a, QUEUES)];
  void *block = NULL;
  REQUIRE_OK(a->c, vt_alloc_async(queue, bytes, &block));
  uint64_t word = queue_use(a, queue, block, bytes / 8, 0);
  for (uint64_t hops = below(a, 3); hops > 0; hops--) {
    vt_queue *next = a->queues[below(a, QUEUES)];
    EXPECT_OK(a->c, vt_event_record(a->event, queue));
    EXPECT_OK(a->c, vt_queue_after_event(next, a->event));
    word = queue_use(a, next, block, bytes / 8, word);
    queue = next;
  }
  give_back(a, queue, block);
}

static void act(vt_case *c, int32_t index, void *shared) {
  actor a = {.c = c, .rng = vt_test_rng_begin(c, (uint64_t)index), .last_word = ((uint64_t)index + 1) << 48};
  vt_queue **common = shared;
  REQUIRE_OK(c, vt_event_create(vt_test_device(c), 0, &a.event));
  for (int i = 0; i < QUEUES; i++) {
    a.queues[i] = i < QUEUES / 2 ? common[i] : new_queue(&a);
  }
  for (int i = 0; i < (vt_test_is_slow() ? 200 : 500) && vt_test_is_clean(c); i++) {
    live_a_life(&a);
    if (below(&a, 64) == 0) {
      EXPECT_OK(c, vt_pool_trim(vt_test_device(c), below(&a, 1 << 20)));
    }
    if (below(&a, 32) == 0) {
      // The queue goes with all of its work still to do.
      vt_queue_release(a.queues[QUEUES - 1]);
      a.queues[QUEUES - 1] = new_queue(&a);
    }
  }
  for (int i = QUEUES / 2; i < QUEUES; i++) {
    vt_queue_release(a.queues[i]);
  }
  vt_event_release(a.event);
}

static void no_block_is_handed_out_while_pending_work_may_touch_it(vt_case *c) {
  vt_queue *common[QUEUES / 2];
  for (int i = 0; i < QUEUES / 2; i++) {
    common[i] = vt_test_queue(c);
  }
  vt_pool_stats before = VT_POOL_STATS_INIT;
  vt_pool_stats after = VT_POOL_STATS_INIT;
  EXPECT_OK(c, vt_pool_get_stats(vt_test_device(c), &before));
  vt_test_threads(c, THREADS, act, common);
  EXPECT_OK(c, vt_pool_get_stats(vt_test_device(c), &after));
  EXPECT_EQ(c, before.used_bytes, after.used_bytes);
  EXPECT_EQ(c, before.requested_bytes, after.requested_bytes);
  EXPECT_TRUE(c, after.hits - before.hits > 20);  // else nothing was put to the test
}

const vt_test_case vt_cases_pool_model[] = {
    {"no_block_is_handed_out_while_pending_work_may_touch_it", 0, no_block_is_handed_out_while_pending_work_may_touch_it},
    VT_TEST_END};
