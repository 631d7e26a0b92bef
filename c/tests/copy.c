// copy.c: batches of copies, and blocks of rows.
#include <stdio.h>
#include <stdlib.h>

#include "toy_backend.h"
#include "vt_test.h"

#define PAGES 300
#define PAGE 64
#define SPARE 32  // slots of the destination that no page goes to

// Pages that go from one block to another one, in an order of their own on each side, and what the destination then holds.
typedef struct pages {
  unsigned char *from;
  unsigned char *to;
  unsigned char expected[(PAGES + SPARE) * PAGE];
  vt_copy_op ops[PAGES];
} pages;

static void shuffle(vt_test_rng *rng, size_t *order, size_t count) {
  for (size_t i = 0; i < count; i++) {
    order[i] = i;
  }
  for (size_t i = count; i > 1; i--) {
    size_t j = vt_test_random_below(rng, i);
    size_t kept = order[i - 1];
    order[i - 1] = order[j];
    order[j] = kept;
  }
}

// Every tenth entry is empty and has no pointers, others have 1 to PAGE bytes.
static void make_pages(pages *p, vt_test_rng *rng, unsigned char *from, unsigned char *to) {
  size_t slots[PAGES + SPARE];
  size_t sources[PAGES];
  shuffle(rng, slots, PAGES + SPARE);
  shuffle(rng, sources, PAGES);
  p->from = from;
  p->to = to;
  memset(p->expected, 0x5e, sizeof(p->expected));
  for (size_t i = 0; i < PAGES; i++) {
    size_t bytes = i % 10 == 9 ? 0 : 1 + vt_test_random_below(rng, PAGE);
    p->ops[i] = (vt_copy_op){NULL, NULL, bytes};
    if (bytes != 0) {
      p->ops[i].dst = to + slots[i] * PAGE;
      p->ops[i].src = from + sources[i] * PAGE;
      memcpy(p->expected + slots[i] * PAGE, from + sources[i] * PAGE, bytes);
    }
  }
}

static pages *make_random_pages(vt_case *c, vt_test_rng *rng) {
  static pages p;
  unsigned char *from = vt_test_alloc(c, PAGES * PAGE);
  unsigned char *to = vt_test_pinned(c, sizeof(p.expected));
  vt_test_random_fill(rng, from, PAGES * PAGE);
  memset(to, 0x5e, sizeof(p.expected));
  make_pages(&p, rng, from, to);
  return &p;
}

static void a_batch_copies_every_entry_and_nothing_else(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  for (int round = 0; round < 20; round++) {
    pages *p = make_random_pages(c, &rng);
    REQUIRE_OK(c, vt_copy_batch(queue, p->ops, PAGES));
    memset(p->ops, 0xee, sizeof(p->ops));  // the caller may use it again at once
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_BYTES(c, p->expected, p->to, sizeof(p->expected));
  }
}

static void batches_run_in_stream_order(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *a = vt_test_alloc(c, 100);
  unsigned char *b = vt_test_alloc(c, 100);
  unsigned char *seen = vt_test_pinned(c, 20 * 100);
  for (int i = 0; i < 20; i++) {
    vt_copy_op ops[] = {{b, a, 50}, {b + 50, a + 50, 50}};
    EXPECT_OK(c, vt_memset(queue, a, i + 1, 100));
    EXPECT_OK(c, vt_copy_batch(queue, ops, 2));
    EXPECT_OK(c, vt_copy_2d(queue, seen + 100 * i, 10, b, 10, 10, 10));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  for (int i = 0; i < 20; i++) {
    EXPECT_FILLED(c, i + 1, seen + 100 * i, 100);
  }
}

static void a_pending_batch_reads_when_it_runs(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *from = vt_test_pinned(c, 200);
  unsigned char *to = vt_test_pinned(c, 200);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  vt_copy_op ops[] = {{to, from, 100}, {to + 100, from + 100, 100}};
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_copy_batch(queue, ops, 2));
  memset(ops, 0, sizeof(ops));
  memset(from, 3, 200);
  EXPECT_FILLED(c, 0, to, 200);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 3, to, 200);
}

static uint64_t ticket_of(vt_case *c, vt_queue *queue) {
  uint64_t ticket = 0;
  EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
  return ticket;
}

static void a_batch_is_one_operation(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  pages *p = make_random_pages(c, &rng);
  uint64_t before = ticket_of(c, queue);
  EXPECT_OK(c, vt_copy_batch(queue, p->ops, PAGES));
  EXPECT_EQ(c, before + 1, ticket_of(c, queue));
  EXPECT_OK(c, vt_copy_2d(queue, p->to, 8, p->from, 16, 8, 9));
  EXPECT_EQ(c, before + 2, ticket_of(c, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

// A device of the plug-in backend whose table lacks the optional methods.
static vt_device device_without_batches(vt_case *c) {
  vt_device device = {VT_DEVICE_METAL, 2};
  static vt_backend_ops ops;
  ops = *vt_toy_get_ops();
  ops.copy_batch = NULL;
  ops.copy_2d = NULL;
  EXPECT_OK(c, vt_backend_register(device, "toy without batches", &ops, vt_toy_get_self()));
  return device;
}

static void backends_without_the_methods_copy_one_by_one(vt_case *c) {
  vt_queue *queue = vt_test_queue_on(c, device_without_batches(c));
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  pages *p = make_random_pages(c, &rng);
  uint64_t before = ticket_of(c, queue);
  EXPECT_OK(c, vt_copy_batch(queue, p->ops, PAGES));
  EXPECT_EQ(c, before + PAGES - PAGES / 10, ticket_of(c, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_BYTES(c, p->expected, p->to, sizeof(p->expected));
  EXPECT_OK(c, vt_copy_2d(queue, p->to, 8, p->from, 16, 4, 9));
  EXPECT_EQ(c, before + PAGES - PAGES / 10 + 9, ticket_of(c, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  for (size_t row = 0; row < 9; row++) {
    EXPECT_BYTES(c, p->from + 16 * row, p->to + 8 * row, 4);
    EXPECT_BYTES(c, p->expected + 8 * row + 4, p->to + 8 * row + 4, 4);
  }
}

static void batches_without_bytes_are_nothing(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 64);
  vt_copy_op empty[] = {{NULL, NULL, 0}, {block, block, 0}};
  uint64_t before = ticket_of(c, queue);
  EXPECT_OK(c, vt_copy_batch(queue, NULL, 0));
  EXPECT_OK(c, vt_copy_batch(queue, empty, 0));
  EXPECT_OK(c, vt_copy_batch(queue, empty, 2));
  EXPECT_OK(c, vt_copy_2d(queue, NULL, 0, NULL, 0, 0, 7));
  EXPECT_OK(c, vt_copy_2d(queue, NULL, 0, NULL, 0, 7, 0));
  EXPECT_EQ(c, before, ticket_of(c, queue));
}

static void a_failed_queue_takes_no_batch(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 64);
  vt_copy_op ops[] = {{block, block + 32, 16}, {block + 16, block + 48, 16}};
  static char text[] = "no more";
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, text, NULL));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(queue));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, "no more", vt_copy_batch(queue, ops, 2));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, "no more", vt_copy_batch(queue, NULL, 0));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, "no more", vt_copy_2d(queue, block, 16, block + 32, 16, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INTERNAL, "no more", vt_copy_2d(queue, block, 16, block + 32, 16, 0, 2));
}

static void bad_batches_are_refused_wholly_and_by_their_entries(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *b = vt_test_alloc(c, 256);
  const struct {
    vt_copy_op ops[3];
    const char *part;
  } bad[] = {
      {{{b, b + 128, 8}, {NULL, b + 136, 8}, {b + 8, b + 144, 8}}, "ops[1].dst is NULL, with 8 bytes"},
      {{{b, b + 128, 8}, {b + 8, b + 136, 8}, {b + 16, NULL, 9}}, "ops[2].src is NULL, with 9 bytes"},
      {{{b, b + 128, 8}, {b + 8, b + 136, SIZE_MAX}, {b + 16, b + 144, 8}}, "ops[1].bytes is 18446744073709551615: that goes past"},
      {{{b, b + 128, 8}, {b + 16, b + 136, 8}, {b + 7, b + 144, 8}}, "ops[0].dst"},
      {{{b, b + 128, 8}, {b + 128, b + 64, 8}, {b + 16, b + 144, 8}}, "ops[1].dst"},
      {{{b, b + 128, 8}, {b + 8, b + 136, 8}, {b + 64, b + 60, 5}}, "ops[2].src"},
      {{{b + 16, b + 128, 1}, {b, b + 136, 64}, {b + 63, b + 200, 2}}, "(64 bytes)"},
  };
  EXPECT_OK(c, vt_memset(queue, b, 1, 256));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "ops is NULL, with a count of 3", vt_copy_batch(queue, NULL, 3));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_copy_batch(NULL, bad[0].ops, 0));
  uint64_t before = ticket_of(c, queue);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, bad[i].part, vt_copy_batch(queue, bad[i].ops, 3));
  }
  EXPECT_EQ(c, before, ticket_of(c, queue));
  // Sources may overlap, and ranges may touch.
  vt_copy_op fine[] = {{b + 64, b + 128, 64}, {b, b + 130, 32}, {b + 32, b + 129, 32}};
  EXPECT_OK(c, vt_copy_batch(queue, fine, 3));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, b, 256);
}

static int share_a_byte(const void *a, const void *b, size_t a_bytes, size_t b_bytes) {
  const char *x = a;
  const char *y = b;
  return a_bytes != 0 && b_bytes != 0 && x < y + b_bytes && y < x + a_bytes;
}

static int is_legal(const vt_copy_op *ops, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < count; j++) {
      if ((i != j && share_a_byte(ops[i].dst, ops[j].dst, ops[i].bytes, ops[j].bytes)) ||
          share_a_byte(ops[i].dst, ops[j].src, ops[i].bytes, ops[j].bytes)) {
        return 0;
      }
    }
  }
  return 1;
}

// Against a comparison of each range with each other one, in places so narrow that about every second batch has an overlap.
static void overlaps_in_a_batch_are_found_and_no_others(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 1024);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  int legal = 0;
  for (int round = 0; round < 3000; round++) {
    vt_copy_op ops[12];
    size_t count = 1 + vt_test_random_below(&rng, 12);
    size_t begin = round % 2 == 0 ? 0 : 256;  // of the sources: among the destinations, or apart from them
    for (size_t i = 0; i < count; i++) {
      ops[i].bytes = vt_test_random_below(&rng, 120 / (count * count) + 2);
      ops[i].dst = block + vt_test_random_below(&rng, 200);
      ops[i].src = block + begin + vt_test_random_below(&rng, 200);
    }
    int expected = is_legal(ops, count);
    legal += expected;
    EXPECT_STATUS(c, expected ? VT_OK : VT_ERR_INVALID_ARGUMENT, vt_copy_batch(queue, ops, count));
  }
  EXPECT_TRUE(c, legal > 500 && legal < 2500);
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void rows_are_copied_and_what_lies_between_is_left_alone(vt_case *c) {
  static unsigned char expected[4096];
  vt_queue *queue = vt_test_queue(c);
  unsigned char *from = vt_test_alloc(c, 4096);
  unsigned char *to = vt_test_pinned(c, 4096);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  vt_test_random_fill(&rng, from, 4096);
  for (int round = 0; round < 100; round++) {
    size_t width = 1 + vt_test_random_below(&rng, 64);
    size_t rows = 1 + vt_test_random_below(&rng, 20);
    size_t dst_pitch = width + vt_test_random_below(&rng, 3) * 40;
    size_t src_pitch = width + vt_test_random_below(&rng, 3) * 40;
    memset(expected, 0x5e, sizeof(expected));
    memset(to, 0x5e, sizeof(expected));
    for (size_t row = 0; row < rows; row++) {
      memcpy(expected + row * dst_pitch, from + row * src_pitch, width);
    }
    EXPECT_OK(c, vt_copy_2d(queue, to, dst_pitch, from, src_pitch, width, rows));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_BYTES(c, expected, to, sizeof(expected));
  }
}

static void bad_blocks_of_rows_are_refused(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *b = vt_test_alloc(c, 256);
  uint64_t before = ticket_of(c, queue);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue is NULL", vt_copy_2d(NULL, b, 8, b + 128, 8, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "dst is NULL", vt_copy_2d(queue, NULL, 8, b, 8, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "src is NULL", vt_copy_2d(queue, b, 8, NULL, 8, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "dst_pitch is 7, less than the width of 8", vt_copy_2d(queue, b, 7, b + 128, 8, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "src_pitch is 7, less than the width of 8", vt_copy_2d(queue, b, 8, b + 128, 7, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "5 rows with a dst_pitch of 9223372036854775808 go past",
               vt_copy_2d(queue, b, SIZE_MAX / 2 + 1, b + 128, 8, 8, 5));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "2 rows with a src_pitch of 18446744073709551615 go past",
               vt_copy_2d(queue, b, 8, b + 128, SIZE_MAX, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "2 rows with a src_pitch of 18446744073709551600 go past",
               vt_copy_2d(queue, b, 8, b + 128, SIZE_MAX - 15, 8, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap: 2 rows of 8 bytes", vt_copy_2d(queue, b, 16, b + 23, 16, 8, 2));
  EXPECT_EQ(c, before, ticket_of(c, queue));
}

static int rows_share_a_byte(const vt_copy_op *block, size_t dst_pitch, size_t src_pitch, size_t rows) {
  for (size_t i = 0; i < rows; i++) {
    for (size_t j = 0; j < rows; j++) {
      if (share_a_byte((char *)block->dst + i * dst_pitch, (const char *)block->src + j * src_pitch, block->bytes, block->bytes)) {
        return 1;
      }
    }
  }
  return 0;
}

// Columns of one matrix may be moved beside each other, though the blocks lie in each other's extent.
static void overlapping_rows_are_found_and_no_others(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 1024);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  int legal = 0;
  for (int round = 0; round < 3000; round++) {
    size_t width = 1 + vt_test_random_below(&rng, 8);
    size_t rows = 1 + vt_test_random_below(&rng, 12);
    size_t dst_pitch = width + vt_test_random_below(&rng, 24);
    size_t src_pitch = round % 2 == 0 ? dst_pitch : width + vt_test_random_below(&rng, 24);
    vt_copy_op ends = {block + vt_test_random_below(&rng, 400), block + vt_test_random_below(&rng, 400), width};
    int expected = !rows_share_a_byte(&ends, dst_pitch, src_pitch, rows);
    legal += expected;
    EXPECT_STATUS(c, expected ? VT_OK : VT_ERR_INVALID_ARGUMENT,
                  vt_copy_2d(queue, ends.dst, dst_pitch, ends.src, src_pitch, width, rows));
  }
  EXPECT_TRUE(c, legal > 500 && legal < 2900);
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void release_graph(void *graph) {
  vt_graph_release(graph);
}

static void a_captured_batch_is_one_node_with_its_entries_baked_in(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *from = vt_test_alloc(c, 300);
  unsigned char *to = vt_test_alloc(c, 300);
  vt_graph *graph = NULL;
  size_t nodes = 0;
  vt_copy_op ops[] = {{to, from, 100}, {to + 100, from + 200, 100}};
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_copy_batch(queue, ops, 2));
  memset(ops, 0xee, sizeof(ops));
  EXPECT_OK(c, vt_copy_2d(queue, to + 200, 10, from + 100, 20, 5, 5));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  vt_test_defer(c, release_graph, graph);
  EXPECT_FILLED(c, 0, to, 300);
  if (vt_test_has(c, NEED_CPU)) {
    EXPECT_OK(c, vt_graph_get_node_count(graph, &nodes));
    EXPECT_EQ(c, 2, nodes);
  }
  for (int replay = 1; replay < 5; replay++) {
    memset(from, replay, 300);
    EXPECT_OK(c, vt_graph_launch(graph, queue));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_FILLED(c, replay, to, 205);
    EXPECT_FILLED(c, 0, to + 205, 5);
  }
}

static void a_bad_batch_fails_the_capture(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 64);
  vt_graph *graph = NULL;
  vt_copy_op ops[] = {{block, block + 32, 16}, {block + 8, block + 48, 16}};
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap", vt_copy_batch(queue, ops, 2));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "overlap", vt_graph_end_capture(queue, &graph));
  EXPECT_OK(c, vt_copy_batch(queue, ops, 1));
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void a_batch_that_finds_the_ring_full_leaves_nothing(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.flags |= VT_QUEUE_FAIL_FULL;
  options.ring_capacity = 4;
  vt_queue *queue = vt_test_queue_with(c, &options);
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  unsigned char *block = vt_test_alloc(c, 64);
  vt_copy_op ops[] = {{block, block + 32, 16}, {block + 16, block + 48, 16}};
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
  vt_test_latch_await_waiter(&gate);
  vt_status status = VT_OK;
  for (int i = 0; i < 100 && status == VT_OK; i++) {
    status = vt_copy_batch(queue, ops, 2);
  }
  EXPECT_EQ(c, VT_NOT_READY, status);
  int64_t live = vt_test_alloc_live();
  uint64_t before = ticket_of(c, queue);
  for (int i = 0; i < 100; i++) {
    EXPECT_STATUS(c, VT_NOT_READY, vt_copy_batch(queue, ops, 2));
    EXPECT_STATUS(c, VT_NOT_READY, vt_copy_2d(queue, block, 8, block + 32, 16, 8, 2));
  }
  EXPECT_EQ(c, before, ticket_of(c, queue));
  EXPECT_TRUE(c, vt_test_alloc_live() <= live + 1);
  vt_test_latch_open(&gate);
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void copy_in_rounds(vt_case *c, vt_queue *queue, const pages *p, int rounds) {
  for (int i = 0; i < rounds; i++) {
    EXPECT_OK(c, vt_copy_batch(queue, p->ops, PAGES));
    EXPECT_OK(c, vt_queue_synchronize(queue));
  }
}

static void a_thousand_batches_allocate_nothing(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  pages *p = make_random_pages(c, &rng);
  copy_in_rounds(c, queue, p, 2);
  int64_t before = vt_test_alloc_calls();
  copy_in_rounds(c, queue, p, 1000);
  EXPECT_EQ(c, before, vt_test_alloc_calls());
  EXPECT_BYTES(c, p->expected, p->to, sizeof(p->expected));
}

static void copy_on_a_thread(vt_case *c, int32_t index, void *unused) {
  (void)unused;
  pages *p = calloc(1, sizeof(*p));
  unsigned char *memory = calloc(1, (2 * PAGES + SPARE) * PAGE);
  vt_queue *queue = vt_test_queue(c);
  vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)index);
  vt_test_random_fill(&rng, memory, PAGES * PAGE);
  for (int round = 0; round < 30; round++) {
    unsigned char *to = memory + PAGES * PAGE;
    make_pages(p, &rng, memory, to);
    memset(to, 0x5e, sizeof(p->expected));
    EXPECT_OK(c, vt_copy_batch(queue, p->ops, PAGES));
    EXPECT_OK(c, vt_queue_synchronize(queue));
    EXPECT_BYTES(c, p->expected, to, sizeof(p->expected));
  }
  free(memory);
  free(p);
}

static void threads_queue_batches_at_once(vt_case *c) {
  vt_test_threads(c, 4, copy_on_a_thread, NULL);
}

typedef struct trace_book {
  pthread_mutex_t mutex;
  size_t count;
  vt_trace_event seen[8];
  char names[8][16];
} trace_book;

static void take_trace(void *user, const vt_trace_event *event) {
  trace_book *book = user;
  pthread_mutex_lock(&book->mutex);
  if (book->count < 8) {
    snprintf(book->names[book->count], 16, "%s", event->name);
    book->seen[book->count++] = *event;
  }
  pthread_mutex_unlock(&book->mutex);
}

static void stop_tracing(void *unused) {
  (void)unused;
  vt_trace_set(NULL, NULL);
}

static void a_batch_is_one_operation_of_the_trace(vt_case *c) {
  static trace_book book = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  book.count = 0;
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 256);
  vt_copy_op ops[] = {{block, block + 128, 16}, {NULL, NULL, 0}, {block + 16, block + 144, 17}};
  REQUIRE_OK(c, vt_trace_set(take_trace, &book));
  vt_test_defer(c, stop_tracing, NULL);
  EXPECT_OK(c, vt_copy_batch(queue, ops, 3));
  uint64_t ticket = ticket_of(c, queue);
  EXPECT_OK(c, vt_copy_2d(queue, block, 16, block + 128, 16, 5, 3));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_trace_set(NULL, NULL));
  REQUIRE_EQ(c, 4, book.count);
  for (size_t i = 0; i < 4; i++) {
    EXPECT_EQ(c, VT_TRACE_COPY, book.seen[i].kind);
    EXPECT_TEXT(c, i < 2 ? "copy batch" : "copy rows", book.names[i]);
    EXPECT_EQ(c, i % 2, book.seen[i].is_end);
    EXPECT_EQ(c, i < 2 ? 33 : 15, book.seen[i].bytes);
    EXPECT_EQ(c, ticket + i / 2, book.seen[i].sequence);
  }
}

const vt_test_case vt_cases_copy[] = {
    {"a_batch_copies_every_entry_and_nothing_else", 0, a_batch_copies_every_entry_and_nothing_else},
    {"batches_run_in_stream_order", 0, batches_run_in_stream_order},
    {"a_pending_batch_reads_when_it_runs", NEED_WORKER, a_pending_batch_reads_when_it_runs},
    {"a_batch_is_one_operation", NEED_CPU, a_batch_is_one_operation},
    {"a_batch_is_one_operation_of_the_plug_in", NEED_TOY, a_batch_is_one_operation},
    {"backends_without_the_methods_copy_one_by_one", NEED_TOY, backends_without_the_methods_copy_one_by_one},
    {"batches_without_bytes_are_nothing", 0, batches_without_bytes_are_nothing},
    {"a_failed_queue_takes_no_batch", NEED_ASYNC, a_failed_queue_takes_no_batch},
    {"bad_batches_are_refused_wholly_and_by_their_entries", 0, bad_batches_are_refused_wholly_and_by_their_entries},
    {"overlaps_in_a_batch_are_found_and_no_others", 0, overlaps_in_a_batch_are_found_and_no_others},
    {"rows_are_copied_and_what_lies_between_is_left_alone", 0, rows_are_copied_and_what_lies_between_is_left_alone},
    {"bad_blocks_of_rows_are_refused", 0, bad_blocks_of_rows_are_refused},
    {"overlapping_rows_are_found_and_no_others", 0, overlapping_rows_are_found_and_no_others},
    {"a_captured_batch_is_one_node_with_its_entries_baked_in", NEED_GRAPH, a_captured_batch_is_one_node_with_its_entries_baked_in},
    {"a_bad_batch_fails_the_capture", NEED_GRAPH | REPORTS, a_bad_batch_fails_the_capture},
    {"a_batch_that_finds_the_ring_full_leaves_nothing", NEED_CPU | NEED_WORKER, a_batch_that_finds_the_ring_full_leaves_nothing},
    {"a_thousand_batches_allocate_nothing", NEED_CPU, a_thousand_batches_allocate_nothing},
    {"threads_queue_batches_at_once", 0, threads_queue_batches_at_once},
    {"a_batch_is_one_operation_of_the_trace", NEED_CPU, a_batch_is_one_operation_of_the_trace},
    VT_TEST_END};
