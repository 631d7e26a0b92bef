// memory.c: allocation, copies, fills.
#include "vt_test.h"

typedef vt_status (*alloc_fn)(vt_device device, size_t bytes, void **out_ptr);
typedef vt_status (*free_fn)(vt_device device, void *ptr);

static void expect_good_blocks(vt_case *c, alloc_fn alloc, free_fn give_back) {
  static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000, 3 << 20};
  enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
  void *blocks[COUNT] = {NULL};
  for (size_t i = 0; i < COUNT; i++) {
    REQUIRE_OK(c, alloc(vt_test_device(c), sizes[i], &blocks[i]));
    REQUIRE_TRUE(c, blocks[i] != NULL);
    EXPECT_EQ(c, 0, (uintptr_t)blocks[i] % 64);
    memset(blocks[i], (int)i + 1, sizes[i]);
    for (size_t k = 0; k < i; k++) {
      EXPECT_TRUE(c, blocks[k] != blocks[i]);
    }
  }
  for (size_t i = 0; i < COUNT; i++) {
    EXPECT_FILLED(c, (int)i + 1, blocks[i], sizes[i]);
    EXPECT_OK(c, give_back(vt_test_device(c), blocks[i]));
  }
}

static void blocks_are_aligned_distinct_and_usable(vt_case *c) {
  expect_good_blocks(c, vt_alloc, vt_free);
}

static void pinned_blocks_are_aligned_distinct_and_usable(vt_case *c) {
  expect_good_blocks(c, vt_pinned_alloc, vt_pinned_free);
}

static void free_of_null_is_fine(vt_case *c) {
  EXPECT_OK(c, vt_free(vt_test_device(c), NULL));
  EXPECT_OK(c, vt_pinned_free(vt_test_device(c), NULL));
}

static void double_and_foreign_frees_are_refused(vt_case *c) {
  vt_device device = vt_test_device(c);
  vt_device other = device.type == VT_DEVICE_CPU ? (vt_device){VT_DEVICE_METAL, 0} : (vt_device){VT_DEVICE_CPU, 0};
  char local[64];
  unsigned char *block = vt_test_alloc(c, 256);
  void *pinned = vt_test_pinned(c, 64);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "no live block", vt_free(device, local));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "no live block", vt_free(device, block + 64));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "pinned", vt_free(device, pinned));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "device memory", vt_pinned_free(device, block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, other.type == VT_DEVICE_CPU ? "cpu:0" : "metal:0", vt_free(other, block));
  void *again = NULL;
  REQUIRE_OK(c, vt_alloc(device, 64, &again));
  EXPECT_OK(c, vt_free(device, again));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "freed before", vt_free(device, again));
}

static void blocks_belong_to_their_logical_device(vt_case *c) {
  void *block = NULL;
  REQUIRE_OK(c, vt_alloc((vt_device){VT_DEVICE_CPU, 1}, 64, &block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "cpu:1", vt_free((vt_device){VT_DEVICE_CPU, 2}, block));
  EXPECT_OK(c, vt_free((vt_device){VT_DEVICE_CPU, 1}, block));
}

static void requests_that_do_not_fit_are_out_of_memory(vt_case *c) {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX / 2 + 1};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    void *ptr = NULL;
    EXPECT_STATUS(c, VT_ERR_OUT_OF_MEMORY, vt_alloc(vt_test_device(c), sizes[i], &ptr));
    EXPECT_STATUS(c, VT_ERR_OUT_OF_MEMORY, vt_pinned_alloc(vt_test_device(c), sizes[i], &ptr));
    EXPECT_TRUE(c, ptr == NULL);
  }
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ptr", vt_alloc(vt_test_device(c), 8, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ptr", vt_pinned_alloc(vt_test_device(c), 8, NULL));
}

static void statistics_count_live_and_peak(vt_case *c) {
  vt_device device = vt_test_device(c);
  for (int32_t kind = VT_MEMORY_DEVICE; kind <= VT_MEMORY_PINNED; kind++) {
    vt_memory_stats before = VT_MEMORY_STATS_INIT;
    vt_memory_stats during = VT_MEMORY_STATS_INIT;
    vt_memory_stats after = VT_MEMORY_STATS_INIT;
    void *a = NULL;
    void *b = NULL;
    alloc_fn alloc = kind == VT_MEMORY_DEVICE ? vt_alloc : vt_pinned_alloc;
    free_fn give_back = kind == VT_MEMORY_DEVICE ? vt_free : vt_pinned_free;
    REQUIRE_OK(c, vt_memory_get_stats(device, kind, &before));
    REQUIRE_OK(c, alloc(device, 1000, &a));
    REQUIRE_OK(c, alloc(device, 0, &b));
    REQUIRE_OK(c, vt_memory_get_stats(device, kind, &during));
    EXPECT_OK(c, give_back(device, a));
    EXPECT_OK(c, give_back(device, b));
    REQUIRE_OK(c, vt_memory_get_stats(device, kind, &after));
    EXPECT_EQ(c, before.live_bytes + 1000, during.live_bytes);
    EXPECT_EQ(c, before.live_count + 2, during.live_count);
    EXPECT_TRUE(c, during.peak_bytes >= during.live_bytes);
    EXPECT_EQ(c, before.live_bytes, after.live_bytes);
    EXPECT_EQ(c, before.live_count, after.live_count);
    EXPECT_EQ(c, during.peak_bytes, after.peak_bytes);
  }
  vt_memory_stats stats = VT_MEMORY_STATS_INIT;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "kind 2", vt_memory_get_stats(device, 2, &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "kind -1", vt_memory_get_stats(device, -1, &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_stats", vt_memory_get_stats(device, 0, NULL));
  stats.struct_size = 1;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 1", vt_memory_get_stats(device, 0, &stats));
}

static void copies_and_fills_touch_exactly_their_bytes(vt_case *c) {
  static const size_t sizes[] = {0, 1, 7, 64, 1000, 4097, 300000};
  vt_queue *queue = vt_test_queue(c);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    unsigned char *from = vt_test_guarded_alloc_at(c, sizes[i], i);
    unsigned char *to = vt_test_guarded_alloc_at(c, sizes[i], 2 * i);
    unsigned char *fill = vt_test_guarded_alloc_at(c, sizes[i], 3 * i);
    vt_test_random_fill(&rng, from, sizes[i]);
    EXPECT_OK(c, vt_copy(queue, to, from, sizes[i]));
    EXPECT_OK(c, vt_memset(queue, fill, 0xa0 + (int32_t)i, sizes[i]));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_BYTES(c, from, to, sizes[i]);
    EXPECT_FILLED(c, 0xa0 + (int)i, fill, sizes[i]);
  }
}

static void copies_run_in_stream_order(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *device = vt_test_alloc(c, 1000);
  unsigned char *first = vt_test_pinned(c, 1000);
  unsigned char *second = vt_test_pinned(c, 1000);
  EXPECT_OK(c, vt_memset(queue, device, 0, 1000));
  EXPECT_OK(c, vt_memset(queue, device, 255, 1000));
  EXPECT_OK(c, vt_copy(queue, first, device, 1000));
  EXPECT_OK(c, vt_memset(queue, device, 7, 500));
  EXPECT_OK(c, vt_copy(queue, second, device, 1000));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 255, first, 1000);
  EXPECT_FILLED(c, 7, second, 500);
  EXPECT_FILLED(c, 255, second + 500, 500);
}

static void bad_copies_and_fills_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *bytes = vt_test_alloc(c, 256);
  memset(bytes, 1, 256);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "dst is NULL", vt_copy(queue, NULL, bytes, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "src is NULL", vt_copy(queue, bytes, NULL, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "ptr is NULL", vt_memset(queue, NULL, 0, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "256", vt_memset(queue, bytes, 256, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-1", vt_memset(queue, bytes, -1, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap", vt_copy(queue, bytes + 63, bytes, 64));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap", vt_copy(queue, bytes, bytes + 63, 64));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap", vt_copy(queue, bytes, bytes, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_copy(NULL, bytes, bytes + 128, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_memset(NULL, bytes, 0, 1));
  // Nothing to move: any pointers will do; ranges that only touch are no overlap.
  EXPECT_OK(c, vt_copy(queue, NULL, NULL, 0));
  EXPECT_OK(c, vt_copy(queue, bytes, bytes, 0));
  EXPECT_OK(c, vt_memset(queue, NULL, 0, 0));
  EXPECT_OK(c, vt_copy(queue, bytes + 64, bytes, 64));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, bytes, 256);
}

// What a copy reads is what stands there when it runs, not when it was submitted: host memory may not change before it has run.
static void a_pending_copy_reads_when_it_runs(vt_case *c) {
  static const size_t counts[] = {10, 10000, 1 << 20};
  vt_queue *queue = vt_test_queue(c);
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
    size_t bytes = counts[i] * sizeof(float);
    unsigned char *pinned = vt_test_pinned(c, bytes);
    unsigned char *device = vt_test_alloc(c, bytes);
    unsigned char *back = vt_test_pinned(c, bytes);
    vt_test_latch gate = VT_TEST_LATCH_INIT;
    memset(pinned, 1, bytes);
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
    EXPECT_OK(c, vt_copy(queue, device, pinned, bytes));
    EXPECT_OK(c, vt_copy(queue, back, device, bytes));
    memset(pinned, 2, bytes);
    vt_test_latch_open(&gate);
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_FILLED(c, 2, back, bytes);
    // With the event awaited first, the owner may reuse the source.
    vt_event *event = vt_test_event(c, 0);
    EXPECT_OK(c, vt_copy(queue, device, pinned, bytes));
    EXPECT_OK(c, vt_event_record(event, queue));
    EXPECT_OK(c, vt_event_synchronize(event));
    memset(pinned, 3, bytes);
    EXPECT_OK(c, vt_copy(queue, back, device, bytes));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_FILLED(c, 2, back, bytes);
  }
}

// On a synchronous queue the source may change as soon as the call has returned.
static void a_synchronous_copy_has_run_when_it_returns(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char from[100];
  unsigned char to[100];
  memset(from, 5, sizeof(from));
  EXPECT_OK(c, vt_copy(queue, to, from, sizeof(from)));
  memset(from, 6, sizeof(from));
  EXPECT_FILLED(c, 5, to, sizeof(to));
  EXPECT_OK(c, vt_memset(queue, to, 9, sizeof(to)));
  EXPECT_FILLED(c, 9, to, sizeof(to));
  EXPECT_OK(c, vt_queue_query(queue));
}

static void allocate_and_free(vt_case *c, int32_t index, void *unused) {
  (void)unused;
  vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)index);
  void *kept[16] = {NULL};
  for (int i = 0; i < 400; i++) {
    size_t k = vt_test_random_below(&rng, 16);
    EXPECT_OK(c, vt_free(vt_test_device(c), kept[k]));
    REQUIRE_OK(c, vt_alloc(vt_test_device(c), vt_test_random_below(&rng, 5000), &kept[k]));
  }
  for (size_t k = 0; k < 16; k++) {
    EXPECT_OK(c, vt_free(vt_test_device(c), kept[k]));
  }
}

static void threads_allocate_at_once(vt_case *c) {
  vt_test_threads(c, 4, allocate_and_free, NULL);
}

const vt_test_case vt_cases_memory[] = {
    {"blocks_are_aligned_distinct_and_usable", 0, blocks_are_aligned_distinct_and_usable},
    {"pinned_blocks_are_aligned_distinct_and_usable", 0, pinned_blocks_are_aligned_distinct_and_usable},
    {"free_of_null_is_fine", 0, free_of_null_is_fine},
    {"double_and_foreign_frees_are_refused", 0, double_and_foreign_frees_are_refused},
    {"blocks_belong_to_their_logical_device", NEED_DEVICES, blocks_belong_to_their_logical_device},
    {"requests_that_do_not_fit_are_out_of_memory", 0, requests_that_do_not_fit_are_out_of_memory},
    {"statistics_count_live_and_peak", 0, statistics_count_live_and_peak},
    {"copies_and_fills_touch_exactly_their_bytes", 0, copies_and_fills_touch_exactly_their_bytes},
    {"copies_run_in_stream_order", 0, copies_run_in_stream_order},
    {"bad_copies_and_fills_are_refused", 0, bad_copies_and_fills_are_refused},
    {"a_pending_copy_reads_when_it_runs", NEED_WORKER, a_pending_copy_reads_when_it_runs},
    {"a_synchronous_copy_has_run_when_it_returns", NEED_SYNC, a_synchronous_copy_has_run_when_it_returns},
    {"threads_allocate_at_once", 0, threads_allocate_at_once},
    VT_TEST_END};
