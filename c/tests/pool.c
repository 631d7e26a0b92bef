// pool.c: allocation in stream order: who gets which memory when, and what the pool keeps.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "toy_backend.h"

static vt_pool_stats stats_of(vt_case *c, vt_device device) {
  vt_pool_stats stats = VT_POOL_STATS_INIT;
  EXPECT_OK(c, vt_pool_get_stats(device, &stats));
  return stats;
}

static unsigned char *alloc_on(vt_case *c, vt_queue *queue, size_t bytes) {
  void *ptr = NULL;
  EXPECT_OK(c, vt_alloc_async(queue, bytes, &ptr));
  return ptr;
}

// A device whose pool holds nothing, with as little before it as can be.
static vt_device fresh_device(vt_case *c) {
  EXPECT_OK(c, vt_pool_trim(vt_test_device(c), 0));
  return vt_test_device(c);
}

static void pool_blocks_are_aligned_distinct_and_usable(vt_case *c) {
  static const size_t sizes[] = {0, 1, 63, 64, 65, 1024, 1025, 4096, 100000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20};
  enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
  unsigned char *blocks[COUNT];
  vt_queue *queue = vt_test_queue(c);
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < COUNT; i++) {
      blocks[i] = alloc_on(c, queue, sizes[i]);
      REQUIRE_TRUE(c, blocks[i] != NULL);
      EXPECT_EQ(c, 0, (uintptr_t)blocks[i] % 64);
      EXPECT_OK(c, vt_memset(queue, blocks[i], (int)i + 1, sizes[i]));
    }
    EXPECT_OK(c, vt_queue_synchronize(queue));
    for (size_t i = 0; i < COUNT; i++) {
      EXPECT_FILLED(c, (int)i + 1, blocks[i], sizes[i]);
      EXPECT_OK(c, vt_free_async(queue, blocks[i]));
    }
  }
  EXPECT_OK(c, vt_free_async(queue, NULL));
}

static void a_queue_reuses_what_was_freed_on_it_at_once(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  unsigned char *first = alloc_on(c, queue, 5000);
  EXPECT_OK(c, vt_memset(queue, first, 1, 5000));
  EXPECT_OK(c, vt_free_async(queue, first));
  vt_pool_stats before = stats_of(c, vt_test_device(c));
  unsigned char *second = alloc_on(c, queue, 4990);
  vt_pool_stats after = stats_of(c, vt_test_device(c));
  EXPECT_TRUE(c, first == second);
  EXPECT_EQ(c, before.hits + 1, after.hits);
  EXPECT_EQ(c, before.misses, after.misses);
  EXPECT_OK(c, vt_memset(queue, second, 2, 4990));
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 2, second, 4990);
  EXPECT_OK(c, vt_free_async(queue, second));
}

static void another_queue_gets_a_block_when_its_work_is_done(vt_case *c) {
  vt_device device = fresh_device(c);
  vt_queue *first = vt_test_queue(c);
  vt_queue *second = vt_test_queue(c);
  vt_queue *third = vt_test_queue(c);
  vt_event *used = vt_test_event(c, 0);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  // Allocated on the first queue, used and freed on the second one.
  unsigned char *block = alloc_on(c, first, 3 << 20);
  EXPECT_OK(c, vt_queue_host_func(first, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_memset(first, block, 1, 3 << 20));
  EXPECT_OK(c, vt_event_record(used, first));
  EXPECT_OK(c, vt_queue_after_event(second, used));
  EXPECT_OK(c, vt_memset(second, block, 2, 3 << 20));
  EXPECT_OK(c, vt_free_async(second, block));
  unsigned char *other = alloc_on(c, third, 3 << 20);
  unsigned char *another = alloc_on(c, first, 3 << 20);
  EXPECT_TRUE(c, other != block && another != block);
  EXPECT_OK(c, vt_pool_trim(device, 0));
  EXPECT_EQ(c, 3 << 20, stats_of(c, device).cached_bytes);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(second));
  unsigned char *last = alloc_on(c, third, 3 << 20);
  EXPECT_TRUE(c, last == block);
  EXPECT_OK(c, vt_free_async(third, last));
  EXPECT_OK(c, vt_free_async(third, other));
  EXPECT_OK(c, vt_free_async(first, another));
}

// A failed queue drops its waits: that it is through says nothing about the queues it was to wait for.
static void a_failed_queue_frees_what_another_one_may_still_use(vt_case *c) {
  fresh_device(c);
  vt_queue *slow = vt_test_queue(c);
  vt_queue *failed = vt_test_queue(c);
  vt_queue *last = vt_test_queue(c);
  vt_event *used = vt_test_event(c, 0);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  unsigned char *block = alloc_on(c, slow, 2 << 20);
  EXPECT_OK(c, vt_queue_host_func(slow, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_memset(slow, block, 1, 2 << 20));
  EXPECT_OK(c, vt_event_record(used, slow));
  EXPECT_OK(c, vt_queue_host_func(failed, vt_test_host_fail, "the failure", NULL));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(failed));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_after_event(failed, used));
  EXPECT_OK(c, vt_free_async(failed, block));
  (void)vt_error_set(VT_ERR_TIMEOUT, VT_DOMAIN_VT, 0, "before", "what was there");
  unsigned char *other = alloc_on(c, last, 2 << 20);
  EXPECT_LAST_ERROR(c, VT_ERR_TIMEOUT, "what was there");
  EXPECT_TRUE(c, other != block);
  vt_queue *young = vt_test_queue(c);
  unsigned char *third = alloc_on(c, young, 2 << 20);
  EXPECT_TRUE(c, third != block);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(slow));
  unsigned char *fourth = alloc_on(c, young, 2 << 20);
  EXPECT_TRUE(c, fourth == block);
  EXPECT_OK(c, vt_free_async(last, other));
  EXPECT_OK(c, vt_free_async(young, third));
  EXPECT_OK(c, vt_free_async(young, fourth));
}

// What a queue hands out at once may still be used by queues that it was to wait for: vt_free() vouches for the new owner only.
static void a_block_reused_at_once_and_freed_by_the_host_waits_for_its_old_owner(vt_case *c) {
  fresh_device(c);
  vt_queue *slow = vt_test_queue(c);
  vt_queue *failing = vt_test_queue(c);
  vt_event *used = vt_test_event(c, 0);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  vt_test_latch failure = VT_TEST_LATCH_INIT;
  unsigned char *block = alloc_on(c, slow, 2 << 20);
  EXPECT_OK(c, vt_queue_host_func(slow, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_memset(slow, block, 1, 2 << 20));
  EXPECT_OK(c, vt_event_record(used, slow));
  EXPECT_OK(c, vt_queue_host_func(failing, vt_test_host_wait, &failure, NULL));
  EXPECT_OK(c, vt_queue_host_func(failing, vt_test_host_fail, "the failure", NULL));
  EXPECT_OK(c, vt_queue_after_event(failing, used));
  EXPECT_OK(c, vt_free_async(failing, block));
  EXPECT_TRUE(c, alloc_on(c, failing, 2 << 20) == block);
  vt_test_latch_open(&failure);
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(failing));
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
  vt_queue *other = vt_test_queue(c);
  unsigned char *second = alloc_on(c, other, 2 << 20);
  EXPECT_TRUE(c, second != block);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(slow));
  unsigned char *third = alloc_on(c, other, 2 << 20);
  EXPECT_TRUE(c, third == block);
  EXPECT_OK(c, vt_free_async(other, second));
  EXPECT_OK(c, vt_free_async(other, third));
}

static void a_queue_that_goes_keeps_its_blocks_until_its_last_work(vt_case *c) {
  fresh_device(c);
  size_t queues = vt_handle_get_live_count(VT_HANDLE_QUEUE);
  vt_queue *last = vt_test_queue(c);
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *gone = NULL;
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &gone));
  unsigned char *block = alloc_on(c, gone, 2 << 20);
  EXPECT_OK(c, vt_queue_host_func(gone, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_memset(gone, block, 1, 2 << 20));
  EXPECT_OK(c, vt_free_async(gone, block));
  vt_queue_release(gone);
  unsigned char *other = alloc_on(c, last, 2 << 20);
  EXPECT_TRUE(c, other != block);
  vt_test_latch_open(&gate);
  while (vt_handle_get_live_count(VT_HANDLE_QUEUE) > queues + 1) {
    vt_test_sleep_ns(100000);
  }
  unsigned char *third = alloc_on(c, last, 2 << 20);
  EXPECT_TRUE(c, third == block);
  EXPECT_OK(c, vt_free_async(last, other));
  EXPECT_OK(c, vt_free_async(last, third));
}

// The same as for a queue that failed: its end says nothing about the queues it was to wait for.
static void a_failed_queue_that_goes_leaves_what_another_one_may_still_use(vt_case *c) {
  fresh_device(c);
  size_t queues = vt_handle_get_live_count(VT_HANDLE_QUEUE);
  vt_queue *slow = vt_test_queue(c);
  vt_queue *last = vt_test_queue(c);
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *gone = NULL;
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &gone));
  unsigned char *block = alloc_on(c, slow, 2 << 20);
  EXPECT_OK(c, vt_queue_host_func(slow, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_memset(slow, block, 1, 2 << 20));
  EXPECT_OK(c, vt_queue_host_func(gone, vt_test_host_fail, "the failure", NULL));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(gone));
  EXPECT_OK(c, vt_free_async(gone, block));
  vt_queue_release(gone);
  while (vt_handle_get_live_count(VT_HANDLE_QUEUE) > queues + 2) {
    vt_test_sleep_ns(100000);
  }
  unsigned char *other = alloc_on(c, last, 2 << 20);
  EXPECT_TRUE(c, other != block);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(slow));
  unsigned char *third = alloc_on(c, last, 2 << 20);
  EXPECT_TRUE(c, third == block);
  EXPECT_OK(c, vt_free_async(last, other));
  EXPECT_OK(c, vt_free_async(last, third));
}

typedef struct pool_user {
  vt_queue *queue;
  int32_t calls;
  vt_status status;
} pool_user;

static void use_the_pool(void *arg) {
  pool_user *user = arg;
  void *block = NULL;
  user->calls++;
  user->status = vt_alloc_async(user->queue, 5 << 20, &block);
  if (user->status == VT_OK) {
    user->status = vt_free_async(user->queue, block);
  }
}

// The pool asks how far the queues are, and one of them is ending.
static void the_end_hook_of_a_queue_may_use_the_pool(vt_case *c) {
  fresh_device(c);
  size_t queues = vt_handle_get_live_count(VT_HANDLE_QUEUE);
  pool_user user = {.queue = vt_test_queue(c), .status = VT_NOT_READY};
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *gone = NULL;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &gone));
  EXPECT_OK(c, vt_free_async(gone, alloc_on(c, gone, 2 << 20)));
  EXPECT_OK(c, vt_queue_on_destroy(gone, use_the_pool, &user));
  vt_queue_release(gone);
  while (vt_handle_get_live_count(VT_HANDLE_QUEUE) > queues + 1) {
    vt_test_sleep_ns(100000);
  }
  EXPECT_EQ(c, 1, user.calls);
  EXPECT_OK(c, user.status);
}

static void a_block_outlives_its_queue(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *gone = NULL;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &gone));
  unsigned char *freed_elsewhere = alloc_on(c, gone, 1000);
  unsigned char *freed_by_host = alloc_on(c, gone, 1000);
  EXPECT_OK(c, vt_memset(gone, freed_elsewhere, 1, 1000));
  EXPECT_OK(c, vt_memset(gone, freed_by_host, 2, 1000));
  EXPECT_OK(c, vt_queue_retain(gone));
  EXPECT_OK(c, vt_queue_destroy(gone));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "was destroyed", vt_free_async(gone, freed_elsewhere));
  void *ptr = NULL;
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "was destroyed", vt_alloc_async(gone, 8, &ptr));
  vt_queue_release(gone);
  EXPECT_FILLED(c, 1, freed_elsewhere, 1000);
  EXPECT_FILLED(c, 2, freed_by_host, 1000);
  EXPECT_OK(c, vt_free_async(vt_test_queue(c), freed_elsewhere));
  EXPECT_OK(c, vt_free(vt_test_device(c), freed_by_host));
}

static void bad_stream_ordered_calls_are_refused(vt_case *c) {
  vt_device device = vt_test_device(c);
  vt_device other = device.type == VT_DEVICE_CPU ? (vt_device){VT_DEVICE_METAL, 0} : (vt_device){VT_DEVICE_CPU, 0};
  vt_queue *queue = vt_test_queue(c);
  unsigned char *plain = vt_test_alloc(c, 256);
  void *pinned = vt_test_pinned(c, 64);
  char local[64];
  void *ptr = NULL;
  unsigned char *block = alloc_on(c, queue, 256);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_alloc_async(NULL, 8, &ptr));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ptr is NULL", vt_alloc_async(queue, 8, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_free_async(NULL, block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "no live block", vt_free_async(queue, local));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "no live block", vt_free_async(queue, block + 64));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "vt_alloc()", vt_free_async(queue, plain));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "vt_pinned_alloc()", vt_free_async(queue, pinned));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "not of", vt_free_async(vt_test_queue_on(c, other), block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "not of", vt_free(other, block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "not pinned memory", vt_pinned_free(device, block));
  EXPECT_OK(c, vt_free_async(queue, block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "was freed before", vt_free_async(queue, block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "was freed before", vt_free(device, block));
  char address[32];
  snprintf(address, sizeof(address), "%p", (void *)block);
  EXPECT_MESSAGE(c, address);
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, ((size_t)1 << 46) + 1};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    EXPECT_STATUS(c, VT_ERR_OUT_OF_MEMORY, vt_alloc_async(queue, sizes[i], &ptr));
    EXPECT_TRUE(c, ptr == NULL);
  }
  vt_pool_stats stats = VT_POOL_STATS_INIT;
  stats.struct_size = 8;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 8", vt_pool_get_stats(device, &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_stats", vt_pool_get_stats(device, NULL));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "cuda:15", vt_pool_trim((vt_device){VT_DEVICE_CUDA, 15}, 0));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "cuda:15", vt_pool_set_limit((vt_device){VT_DEVICE_CUDA, 15}, 0));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "index 16", vt_pool_get_stats((vt_device){VT_DEVICE_CPU, 16}, &stats));
}

static void a_capture_refuses_stream_ordered_allocation(vt_case *c) {
  vt_device device = vt_test_device(c);
  vt_queue *queue = vt_test_queue(c);
  vt_queue *other = vt_test_queue(c);
  unsigned char *block = alloc_on(c, other, 100);
  void *ptr = NULL;
  // On another queue the calls are refused and the capture goes on; on the capturing one they fail it.
  vt_graph *graph = NULL;
  REQUIRE_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_alloc_async", vt_alloc_async(other, 100, &ptr));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_free_async", vt_free_async(other, block));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_pool_trim", vt_pool_trim(device, 0));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "vt_pool_set_limit", vt_pool_set_limit(device, 0));
  EXPECT_OK(c, vt_graph_end_capture(queue, &graph));
  vt_graph_release(graph);
  for (int way = 0; way < 2; way++) {
    REQUIRE_OK(c, vt_graph_begin_capture(queue));
    EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, way == 0 ? vt_alloc_async(queue, 100, &ptr) : vt_free_async(queue, block));
    EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, way == 0 ? "vt_alloc_async" : "vt_free_async", vt_graph_end_capture(queue, &graph));
  }
  EXPECT_TRUE(c, ptr == NULL);
  EXPECT_OK(c, vt_free_async(queue, block));
}

static void allocate_beside_a_capture(vt_case *c, int32_t index, void *queue) {
  (void)index;
  unsigned char *block = alloc_on(c, queue, 5 << 20);
  EXPECT_OK(c, vt_free_async(queue, block));
  EXPECT_OK(c, vt_pool_trim(vt_test_device(c), 0));
}

static void another_thread_allocates_while_this_one_captures(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *other = vt_test_queue(c);
  vt_graph *graph = NULL;
  unsigned char *block = alloc_on(c, queue, 100);
  EXPECT_OK(c, vt_free_async(queue, block));
  REQUIRE_OK(c, vt_graph_begin_capture(queue));
  vt_test_threads(c, 2, allocate_beside_a_capture, other);
  EXPECT_OK(c, vt_graph_end_capture(queue, &graph));
  vt_graph_release(graph);
}

// The bytes that one request adds to what the device holds.
static uint64_t held_for(vt_case *c, vt_queue *queue, size_t bytes, unsigned char **out_block) {
  uint64_t before = stats_of(c, vt_test_device(c)).used_bytes;
  *out_block = alloc_on(c, queue, bytes);
  return stats_of(c, vt_test_device(c)).used_bytes - before;
}

static void sizes_are_rounded_by_a_sixteenth_at_most(vt_case *c) {
  fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  for (int i = 0; i < 2000; i++) {
    size_t bytes = (size_t)1 << vt_test_random_below(&rng, 23);
    bytes += i % 2 == 0 ? vt_test_random_below(&rng, bytes) : (size_t)(i % 3) - 1;
    unsigned char *block = NULL;
    uint64_t held = held_for(c, queue, bytes, &block);
    uint64_t most = bytes <= 1024 ? (bytes == 0 ? 64 : (bytes + 63) / 64 * 64) : bytes + bytes / 16;
    if (held < bytes || held > most || held % 64 != 0) {
      FAIL_CASE(c, "%zu bytes hold %llu", bytes, (unsigned long long)held);
    }
    EXPECT_OK(c, vt_free_async(queue, block));
  }
}

// The largest power of two that is half of this machine's memory at most: the system may refuse more at once.
static uint32_t largest_power(void) {
  uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  uint32_t power = vt_test_is_slow() ? 26 : 33;
  while ((uint64_t)2 << power > memory) {
    power--;
  }
  return power;
}

static void large_requests_are_rounded_to_pages_and_go_back(vt_case *c) {
  vt_device device = fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  vt_pool_stats before = stats_of(c, device);
  EXPECT_OK(c, vt_pool_set_limit(device, SIZE_MAX));
  for (uint32_t power = 12; power <= largest_power(); power++) {
    size_t bytes = ((size_t)1 << power) + 1;
    unsigned char *block = NULL;
    uint64_t held = held_for(c, queue, bytes, &block);
    EXPECT_TRUE(c, bytes < 1 << 20 || held == (bytes + 4095) / 4096 * 4096);
    if (bytes > 1 << 20 && held * 100 > bytes * (uint64_t)105) {
      FAIL_CASE(c, "%zu bytes hold %llu", bytes, (unsigned long long)held);
    }
    EXPECT_OK(c, vt_free_async(queue, block));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_TRUE(c, stats_of(c, device).cached_bytes > before.cached_bytes);
  EXPECT_OK(c, vt_pool_trim(device, 0));
  EXPECT_EQ(c, 0, stats_of(c, device).cached_bytes);
  EXPECT_EQ(c, before.used_bytes, stats_of(c, device).used_bytes);
  EXPECT_OK(c, vt_pool_set_limit(device, VT_POOL_DEFAULT_LIMIT));
}

static void statistics_tell_what_the_pool_holds(vt_case *c) {
  vt_device device = fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  vt_memory_stats memory = VT_MEMORY_STATS_INIT;
  vt_memory_stats during = VT_MEMORY_STATS_INIT;
  vt_pool_stats before = stats_of(c, device);
  EXPECT_OK(c, vt_memory_get_stats(device, VT_MEMORY_DEVICE, &memory));
  unsigned char *a = alloc_on(c, queue, 1000);
  unsigned char *b = alloc_on(c, queue, 2 << 20);
  vt_pool_stats full = stats_of(c, device);
  EXPECT_OK(c, vt_memory_get_stats(device, VT_MEMORY_DEVICE, &during));
  EXPECT_EQ(c, before.requested_bytes + 1000 + (2 << 20), full.requested_bytes);
  EXPECT_EQ(c, before.used_bytes + 1024 + (2 << 20), full.used_bytes);
  EXPECT_EQ(c, before.cached_bytes, full.cached_bytes);
  EXPECT_TRUE(c, full.peak_bytes >= full.used_bytes + full.cached_bytes);
  EXPECT_EQ(c, before.misses + 2, full.misses);
  EXPECT_EQ(c, memory.live_bytes + 1000 + (2 << 20), during.live_bytes);
  EXPECT_EQ(c, memory.live_count + 2, during.live_count);
  EXPECT_TRUE(c, during.peak_bytes >= during.live_bytes);
  EXPECT_OK(c, vt_free_async(queue, a));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_free(device, b));
  vt_pool_stats after = stats_of(c, device);
  EXPECT_OK(c, vt_memory_get_stats(device, VT_MEMORY_DEVICE, &during));
  EXPECT_EQ(c, before.requested_bytes, after.requested_bytes);
  EXPECT_EQ(c, before.used_bytes, after.used_bytes);
  EXPECT_EQ(c, before.cached_bytes + 1024 + (2 << 20), after.cached_bytes);
  EXPECT_EQ(c, full.peak_bytes, after.peak_bytes);
  EXPECT_EQ(c, memory.live_bytes, during.live_bytes);
  EXPECT_EQ(c, memory.live_count, during.live_count);
  EXPECT_TRUE(c, alloc_on(c, queue, 1000) == a);
  EXPECT_TRUE(c, alloc_on(c, queue, 2 << 20) == b);
  EXPECT_EQ(c, after.hits + 2, stats_of(c, device).hits);
  EXPECT_OK(c, vt_free_async(queue, a));
  EXPECT_OK(c, vt_free_async(queue, b));
}

static void the_pool_keeps_no_more_than_its_limit(vt_case *c) {
  vt_device device = fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *blocks[8];
  EXPECT_EQ(c, VT_POOL_DEFAULT_LIMIT, stats_of(c, device).limit_bytes);
  EXPECT_OK(c, vt_pool_set_limit(device, 3 << 20));
  for (int i = 0; i < 8; i++) {
    blocks[i] = alloc_on(c, queue, 1 << 20);
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  for (int i = 0; i < 8; i++) {
    EXPECT_OK(c, vt_free_async(queue, blocks[i]));
    EXPECT_TRUE(c, stats_of(c, device).cached_bytes <= 3 << 20);
  }
  EXPECT_EQ(c, 3 << 20, stats_of(c, device).cached_bytes);
  EXPECT_OK(c, vt_pool_trim(device, (2 << 20) + 1));
  EXPECT_EQ(c, 2 << 20, stats_of(c, device).cached_bytes);
  EXPECT_OK(c, vt_pool_set_limit(device, 1 << 20));
  EXPECT_EQ(c, 1 << 20, stats_of(c, device).cached_bytes);
  EXPECT_OK(c, vt_pool_set_limit(device, 0));
  EXPECT_EQ(c, 0, stats_of(c, device).cached_bytes);
  EXPECT_OK(c, vt_pool_set_limit(device, VT_POOL_DEFAULT_LIMIT));
}

// Whether these still hold bytes of 1. Their addresses may have been given away again, so they are read without touching them.
static int holds_ones(unsigned char *block, size_t bytes) {
  unsigned char ones[64];
  unsigned char seen[64];
  memset(ones, 1, sizeof ones);
  struct iovec to = {seen, sizeof seen};
  struct iovec from = {block + bytes / 2, sizeof seen};
  ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  return got == (ssize_t)sizeof seen && memcmp(seen, ones, sizeof ones) == 0;
}

static void trimmed_memory_goes_back_to_the_system(vt_case *c) {
  if (vt_test_is_slow()) {
    SKIP_CASE(c, "sanitizers keep freed memory");
  }
  vt_device device = fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  // More than libc keeps of its heap, so that it comes from the system and goes back there.
  size_t bytes = 160 << 20;
  unsigned char *block = alloc_on(c, queue, bytes);
  EXPECT_OK(c, vt_memset(queue, block, 1, bytes));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_free_async(queue, block));
  EXPECT_TRUE(c, holds_ones(block, bytes));
  EXPECT_OK(c, vt_pool_trim(device, 0));
  EXPECT_TRUE(c, !holds_ones(block, bytes));
}

// A small device that counts what it gave, and may refuse to take it back.

static const vt_device small = {VT_DEVICE_XPU, 5};
static _Atomic size_t small_used;
static _Atomic int32_t small_refuses;
enum { SMALL_BYTES = 1 << 20 };

static vt_status small_alloc(void *self, size_t bytes, void **out_ptr) {
  // relaxed, here and below: the cases use the device from one thread.
  if (atomic_load_explicit(&small_used, memory_order_relaxed) + bytes > SMALL_BYTES) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "alloc", "the small device is full");
  }
  unsigned char *base = NULL;
  vt_status status = vt_toy_get_ops()->alloc(self, bytes + 64, (void **)&base);
  if (status == VT_OK) {
    memcpy(base, &bytes, sizeof(bytes));
    atomic_fetch_add_explicit(&small_used, bytes, memory_order_relaxed);
    *out_ptr = base + 64;
  }
  return status;
}

static vt_status small_free(void *self, void *ptr) {
  if (atomic_load_explicit(&small_refuses, memory_order_relaxed) != 0) {
    return vt_error_set(VT_ERR_DEVICE_LOST, VT_DOMAIN_VT, 0, "free", "the small device is gone");
  }
  size_t bytes;
  memcpy(&bytes, (unsigned char *)ptr - 64, sizeof(bytes));
  atomic_fetch_sub_explicit(&small_used, bytes, memory_order_relaxed);
  return vt_toy_get_ops()->free(self, (unsigned char *)ptr - 64);
}

static vt_queue *small_queue(vt_case *c) {
  static vt_backend_ops ops;
  static vt_status registered = VT_NOT_READY;
  if (registered != VT_OK) {
    ops = *vt_toy_get_ops();
    ops.alloc = small_alloc;
    ops.free = small_free;
    registered = vt_backend_register(small, "small", &ops, vt_toy_get_self());
  }
  EXPECT_OK(c, registered);
  return vt_test_queue_on(c, small);
}

static void a_full_device_gets_back_what_is_kept(vt_case *c) {
  vt_queue *queue = small_queue(c);
  unsigned char *quarters[4];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 4; i++) {
      quarters[i] = alloc_on(c, queue, SMALL_BYTES / 4);
    }
    for (int i = 0; i < 4; i++) {
      EXPECT_OK(c, vt_free_async(queue, quarters[i]));
    }
    EXPECT_EQ(c, SMALL_BYTES, small_used);
    (void)vt_error_set(VT_ERR_TIMEOUT, VT_DOMAIN_VT, 0, "before", "what was there");
    // Neither the pool's nor the device's own allocation is in the way of the other.
    void *whole = NULL;
    EXPECT_OK(c, round == 0 ? vt_alloc_async(queue, SMALL_BYTES, &whole) : vt_alloc(small, SMALL_BYTES, &whole));
    EXPECT_LAST_ERROR(c, VT_ERR_TIMEOUT, "what was there");
    void *more = NULL;
    EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "the small device is full", vt_alloc_async(queue, 64, &more));
    EXPECT_MESSAGE(c, round == 0 ? "no room for 64 bytes on xpu:5, whose pool has 1048576 bytes in use and keeps 0"
                                 : "no room for 64 bytes on xpu:5, whose pool has 0 bytes in use and keeps 0");
    EXPECT_OK(c, vt_free(small, whole));
  }
  EXPECT_OK(c, vt_pool_trim(small, 0));
  EXPECT_EQ(c, 0, small_used);
}

static void what_the_device_does_not_take_back_stays(vt_case *c) {
  vt_queue *queue = small_queue(c);
  unsigned char *block = alloc_on(c, queue, 1000);
  EXPECT_OK(c, vt_free_async(queue, block));
  small_refuses = 1;
  EXPECT_FAILS(c, VT_ERR_DEVICE_LOST, "the small device is gone", vt_pool_trim(small, 0));
  EXPECT_EQ(c, 1024, stats_of(c, small).cached_bytes);
  EXPECT_TRUE(c, alloc_on(c, queue, 1000) == block);
  EXPECT_OK(c, vt_free_async(queue, block));
  small_refuses = 0;
  EXPECT_OK(c, vt_pool_trim(small, 0));
  EXPECT_EQ(c, 0, stats_of(c, small).cached_bytes);
  EXPECT_EQ(c, 0, small_used);
}

static void every_device_allocates_in_stream_order(vt_case *c) {
  vt_device_info info = VT_DEVICE_INFO_INIT;
  EXPECT_OK(c, vt_device_get_info(vt_test_device(c), &info));
  EXPECT_TRUE(c, (info.caps & VT_CAP_STREAM_ALLOC) != 0);
}

static void churn(vt_case *c, int32_t index, void *queue) {
  vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)index);
  unsigned char *kept[16] = {NULL};
  size_t sizes[16] = {0};
  for (int i = 0; i < 500; i++) {
    size_t k = vt_test_random_below(&rng, 16);
    if (kept[k] != NULL) {
      EXPECT_OK(c, vt_free_async(queue, kept[k]));
    }
    sizes[k] = 64 + vt_test_random_below(&rng, 3000);
    kept[k] = alloc_on(c, queue, sizes[k]);
    EXPECT_OK(c, vt_memset(queue, kept[k], index, sizes[k]));
  }
  for (size_t k = 0; k < 16; k++) {
    EXPECT_OK(c, vt_free_async(queue, kept[k]));
  }
}

static void threads_share_a_queue_and_its_pool(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  uint64_t used = stats_of(c, vt_test_device(c)).used_bytes;
  vt_test_threads(c, 4, churn, queue);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, used, stats_of(c, vt_test_device(c)).used_bytes);
}

static void a_warm_pool_allocates_nothing(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  int64_t before = 0;
  for (int i = 0; i < 1000; i++) {
    if (i == 8) {
      before = vt_test_alloc_calls();
    }
    unsigned char *a = alloc_on(c, queue, 3000);
    unsigned char *b = alloc_on(c, queue, 2 << 20);
    EXPECT_OK(c, vt_memset(queue, a, i % 256, 3000));
    EXPECT_OK(c, vt_free_async(queue, a));
    EXPECT_OK(c, vt_free_async(queue, b));
  }
  if (!vt_validate_is_enabled()) {  // which notes every block
    EXPECT_EQ(c, before, vt_test_alloc_calls());
  }
}

// Lets `arg` allocations of this thread succeed.
static int fail_later(void *arg) {
  int *left = arg;
  return (*left)-- > 0;
}

static void a_request_that_runs_out_of_host_memory_leaves_the_pool_as_it_was(vt_case *c) {
  vt_device device = fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *kept = alloc_on(c, queue, 100);
  vt_status status = VT_ERR_OUT_OF_MEMORY;
  int failures = 0;
  for (; status == VT_ERR_OUT_OF_MEMORY && failures < 100; failures++) {
    void *block = NULL;
    int left = failures;
    vt_pool_stats before = stats_of(c, device);
    vt_test_alloc_step_in(fail_later, &left);
    status = vt_alloc_async(queue, 3 << 20, &block);
    vt_test_alloc_step_in(NULL, NULL);
    vt_pool_stats after = stats_of(c, device);
    if (status == VT_OK) {
      EXPECT_OK(c, vt_free_async(queue, block));
    } else {
      EXPECT_EQ(c, before.used_bytes, after.used_bytes);
      EXPECT_EQ(c, before.cached_bytes, after.cached_bytes);
      EXPECT_TRUE(c, block == NULL);
    }
  }
  EXPECT_OK(c, status);
  EXPECT_TRUE(c, failures > 1);  // it has asked
  EXPECT_OK(c, vt_free_async(queue, kept));
}

static void giving_back_needs_no_host_memory(vt_case *c) {
  fresh_device(c);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = alloc_on(c, queue, 3 << 20);
  int left = 0;
  EXPECT_OK(c, vt_memset(queue, block, 1, 3 << 20));
  vt_test_alloc_step_in(fail_later, &left);
  vt_status status = vt_free_async(queue, block);
  vt_test_alloc_step_in(NULL, NULL);
  EXPECT_OK(c, status);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_TRUE(c, alloc_on(c, queue, 3 << 20) == block);
  EXPECT_OK(c, vt_free_async(queue, block));
}

const vt_test_case vt_cases_pool[] = {
    {"pool_blocks_are_aligned_distinct_and_usable", 0, pool_blocks_are_aligned_distinct_and_usable},
    {"a_queue_reuses_what_was_freed_on_it_at_once", NEED_WORKER, a_queue_reuses_what_was_freed_on_it_at_once},
    {"another_queue_gets_a_block_when_its_work_is_done", NEED_WORKER, another_queue_gets_a_block_when_its_work_is_done},
    {"a_failed_queue_frees_what_another_one_may_still_use", NEED_WORKER, a_failed_queue_frees_what_another_one_may_still_use},
    {"a_block_reused_at_once_and_freed_by_the_host_waits_for_its_old_owner", NEED_WORKER,
     a_block_reused_at_once_and_freed_by_the_host_waits_for_its_old_owner},
    {"a_queue_that_goes_keeps_its_blocks_until_its_last_work", NEED_WORKER, a_queue_that_goes_keeps_its_blocks_until_its_last_work},
    {"a_failed_queue_that_goes_leaves_what_another_one_may_still_use", NEED_WORKER,
     a_failed_queue_that_goes_leaves_what_another_one_may_still_use},
    {"the_end_hook_of_a_queue_may_use_the_pool", NEED_WORKER, the_end_hook_of_a_queue_may_use_the_pool},
    {"a_block_outlives_its_queue", 0, a_block_outlives_its_queue},
    {"bad_stream_ordered_calls_are_refused", 0, bad_stream_ordered_calls_are_refused},
    {"a_capture_refuses_stream_ordered_allocation", NEED_GRAPH | REPORTS, a_capture_refuses_stream_ordered_allocation},
    {"another_thread_allocates_while_this_one_captures", NEED_GRAPH, another_thread_allocates_while_this_one_captures},
    {"sizes_are_rounded_by_a_sixteenth_at_most", 0, sizes_are_rounded_by_a_sixteenth_at_most},
    {"large_requests_are_rounded_to_pages_and_go_back", 0, large_requests_are_rounded_to_pages_and_go_back},
    {"statistics_tell_what_the_pool_holds", 0, statistics_tell_what_the_pool_holds},
    {"the_pool_keeps_no_more_than_its_limit", 0, the_pool_keeps_no_more_than_its_limit},
    {"trimmed_memory_goes_back_to_the_system", NEED_CPU, trimmed_memory_goes_back_to_the_system},
    {"a_full_device_gets_back_what_is_kept", ONCE, a_full_device_gets_back_what_is_kept},
    {"what_the_device_does_not_take_back_stays", ONCE, what_the_device_does_not_take_back_stays},
    {"every_device_allocates_in_stream_order", 0, every_device_allocates_in_stream_order},
    {"a_warm_pool_allocates_nothing", 0, a_warm_pool_allocates_nothing},
    {"a_request_that_runs_out_of_host_memory_leaves_the_pool_as_it_was", REPORTS,
     a_request_that_runs_out_of_host_memory_leaves_the_pool_as_it_was},
    {"giving_back_needs_no_host_memory", REPORTS, giving_back_needs_no_host_memory},
    {"threads_share_a_queue_and_its_pool", 0, threads_share_a_queue_and_its_pool},
    VT_TEST_END};
