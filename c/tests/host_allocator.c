// host_allocator.c: a program's own allocator serves the library and gets its blocks back.
#include "vt_test.h"

#define WORLD 2

static void *never_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  (void)bytes;
  (void)align;
  return NULL;
}

static void never_free(void *user, void *ptr) {
  (void)user;
  (void)ptr;
}

static void a_host_allocator_that_comes_late_is_refused(vt_case *c) {
  vt_host_allocator late = {sizeof(late), never_alloc, never_free, NULL};
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "set it once, before anything else", vt_host_allocator_set(&late));
  vt_queue *queue = vt_test_queue(c);
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void host_allocators_are_checked(vt_case *c) {
  vt_host_allocator bad = VT_HOST_ALLOCATOR_INIT;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "allocator is NULL", vt_host_allocator_set(NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "both of alloc and free", vt_host_allocator_set(&bad));
  bad.alloc = never_alloc;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "both of alloc and free", vt_host_allocator_set(&bad));
  bad.free = never_free;
  bad.struct_size = sizeof(size_t);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 8 of the host allocator", vt_host_allocator_set(&bad));
}

// One of everything that is given back, at work.
typedef struct things {
  vt_queue *queue;
  vt_event *event;
  vt_graph *graph;
  vt_arena *arena;
  vt_comm_group *group;
  void *block;
  void *pinned;
} things;

static void hook(void *user) {
  (void)user;
}

// Expects that `call` succeeds, and that it asked for memory.
#define EXPECT_ALLOCATES(c, call)                   \
  do {                                              \
    int64_t before = vt_test_alloc_calls();         \
    REQUIRE_OK(c, call);                            \
    EXPECT_TRUE(c, vt_test_alloc_calls() > before); \
  } while (0)

static void make(vt_case *c, things *t) {
  vt_queue_options options = vt_test_queue_options(c);
  EXPECT_ALLOCATES(c, vt_queue_create(vt_test_device(c), &options, &t->queue));
  EXPECT_ALLOCATES(c, vt_queue_on_destroy(t->queue, hook, NULL));
  EXPECT_ALLOCATES(c, vt_event_create(vt_test_device(c), VT_EVENT_TIMING, &t->event));
  EXPECT_ALLOCATES(c, vt_arena_create(vt_test_device(c), 4096, &t->arena));
  EXPECT_ALLOCATES(c, vt_comm_group_create(WORLD, NULL, &t->group));
  EXPECT_ALLOCATES(c, vt_alloc(vt_test_device(c), 64, &t->block));
  EXPECT_ALLOCATES(c, vt_pinned_alloc(vt_test_device(c), 64, &t->pinned));
  EXPECT_ALLOCATES(c, vt_graph_begin_capture(t->queue));
  EXPECT_OK(c, vt_memset(t->queue, t->block, 7, 64));
  REQUIRE_OK(c, vt_graph_end_capture(t->queue, &t->graph));
  EXPECT_OK(c, vt_graph_launch(t->graph, t->queue));
  EXPECT_OK(c, vt_copy(t->queue, t->pinned, t->block, 64));
  EXPECT_OK(c, vt_event_record(t->event, t->queue));
  EXPECT_OK(c, vt_event_synchronize(t->event));
  EXPECT_FILLED(c, 7, t->pinned, 64);
}

static void give_back(vt_case *c, const things *t) {
  size_t queues = vt_handle_get_live_count(VT_HANDLE_QUEUE);
  vt_graph_release(t->graph);
  vt_event_release(t->event);
  vt_arena_release(t->arena);
  vt_comm_group_release(t->group);
  EXPECT_OK(c, vt_queue_destroy(t->queue));
  while (vt_handle_get_live_count(VT_HANDLE_QUEUE) >= queues) {
    vt_test_sleep_ns(100000);  // the worker gives back the ring behind the caller's back
  }
  EXPECT_OK(c, vt_free(vt_test_device(c), t->block));
  EXPECT_OK(c, vt_pinned_free(vt_test_device(c), t->pinned));
}

static void the_host_allocator_gets_every_block_back(vt_case *c) {
  int64_t live = 0;
  for (int round = 0; round < 5; round++) {
    things t = {0};
    make(c, &t);
    VT_TEST_OR_RETURN(vt_test_is_clean(c));
    give_back(c, &t);
    if (round == 0) {
      live = vt_test_alloc_live();  // what is kept for reuse is there from now on
    }
    EXPECT_EQ(c, live, vt_test_alloc_live());
  }
}

static void blocks_are_aligned_as_asked_for(vt_case *c) {
  for (size_t bytes = 0; bytes < 300; bytes += 37) {
    void *block = NULL;
    int64_t calls = vt_test_alloc_calls();
    REQUIRE_OK(c, vt_alloc(vt_test_device(c), bytes, &block));
    EXPECT_EQ(c, 0, (uintptr_t)block % 64);
    EXPECT_TRUE(c, vt_test_alloc_calls() > calls);
    EXPECT_OK(c, vt_free(vt_test_device(c), block));
  }
}

static int answer_nothing(void *unused) {
  (void)unused;
  return 0;
}

static void without_memory_calls_say_so_and_leave_nothing(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  void *block = NULL;
  int64_t live = vt_test_alloc_live();
  vt_test_alloc_step_in(answer_nothing, NULL);
  vt_status queue_status = vt_queue_create(vt_test_device(c), &options, &queue);
  vt_status block_status = vt_alloc(vt_test_device(c), 100, &block);
  vt_test_alloc_step_in(NULL, NULL);
  EXPECT_EQ(c, VT_ERR_OUT_OF_MEMORY, queue_status);
  EXPECT_EQ(c, VT_ERR_OUT_OF_MEMORY, block_status);
  EXPECT_TRUE(c, queue == NULL && block == NULL);
  EXPECT_EQ(c, live, vt_test_alloc_live());
}

// Makes one thing of each kind and gives it back.
enum { QUEUE, EVENT, ARENA, GROUP, GRAPH, BLOCK, THINGS };

static vt_status make_graph(vt_queue *queue, void *block) {
  vt_graph *graph = NULL;
  vt_status status = vt_graph_begin_capture(queue);
  if (status == VT_OK) {
    (void)vt_memset(queue, block, 1, 64);
    status = vt_graph_end_capture(queue, &graph);
  }
  vt_graph_release(graph);
  return status;
}

static vt_status make_and_give_back(vt_case *c, int kind, vt_queue *queue, void *block) {
  vt_device device = vt_test_device(c);
  vt_queue_options options = vt_test_queue_options(c);
  things t = {0};
  vt_status status = kind == QUEUE   ? vt_queue_create(device, &options, &t.queue)
                     : kind == EVENT ? vt_event_create(device, 0, &t.event)
                     : kind == ARENA ? vt_arena_create(device, 100, &t.arena)
                     : kind == GROUP ? vt_comm_group_create(WORLD, NULL, &t.group)
                     : kind == GRAPH ? make_graph(queue, block)
                                     : vt_alloc(device, 100, &t.block);
  vt_queue_release(t.queue);
  vt_event_release(t.event);
  vt_arena_release(t.arena);
  vt_comm_group_release(t.group);
  EXPECT_OK(c, vt_free(device, t.block));
  return status;
}

static int spend(void *left) {
  return (*(int *)left)-- > 0;
}

static void whichever_allocation_fails_nothing_is_left(vt_case *c) {
  if (vt_validate_is_enabled()) {
    SKIP_CASE(c, "the validation layer allocates as well, and goes on without memory");
  }
  vt_queue *queue = vt_test_queue(c);
  void *block = vt_test_alloc(c, 64);
  for (int kind = 0; kind < THINGS; kind++) {
    REQUIRE_OK(c, make_and_give_back(c, kind, queue, block));
    vt_status status = VT_ERR_OUT_OF_MEMORY;
    for (int n = 0; n < 20 && status != VT_OK; n++) {
      int left = n;
      int64_t live = vt_test_alloc_live();
      vt_test_alloc_step_in(spend, &left);
      status = make_and_give_back(c, kind, queue, block);
      vt_test_alloc_step_in(NULL, NULL);
      EXPECT_EQ(c, left < 0 ? VT_ERR_OUT_OF_MEMORY : VT_OK, status);
      EXPECT_EQ(c, live, vt_test_alloc_live());
    }
    EXPECT_OK(c, status);
  }
}

static void blocks_that_were_not_given_keep_no_place(vt_case *c) {
  void *block = vt_test_alloc(c, 8);  // so there is a table
  int64_t calls = vt_test_alloc_calls();
  for (int i = 0; i < 5000; i++) {
    EXPECT_STATUS(c, VT_ERR_OUT_OF_MEMORY, vt_alloc(vt_test_device(c), SIZE_MAX - 64, &block));
  }
  EXPECT_EQ(c, calls, vt_test_alloc_calls());
}

static int use_the_runtime(void *status) {
  vt_queue *queue = NULL;
  *(vt_status *)status = vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, NULL, &queue);
  return 1;
}

static void a_host_allocator_may_not_call_the_runtime(vt_case *c) {
  vt_status inner = VT_OK;
  void *block = NULL;
  vt_test_alloc_step_in(use_the_runtime, &inner);
  EXPECT_OK(c, vt_alloc(vt_test_device(c), 100, &block));
  vt_test_alloc_step_in(NULL, NULL);
  EXPECT_EQ(c, VT_ERR_FAILED_PRECONDITION, inner);
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
}

const vt_test_case vt_cases_host_allocator[] = {
    {"a_host_allocator_that_comes_late_is_refused", ONCE, a_host_allocator_that_comes_late_is_refused},
    {"host_allocators_are_checked", ONCE, host_allocators_are_checked},
    {"the_host_allocator_gets_every_block_back", NEED_CPU, the_host_allocator_gets_every_block_back},
    {"blocks_are_aligned_as_asked_for", NEED_CPU, blocks_are_aligned_as_asked_for},
    {"without_memory_calls_say_so_and_leave_nothing", NEED_CPU, without_memory_calls_say_so_and_leave_nothing},
    {"whichever_allocation_fails_nothing_is_left", NEED_CPU, whichever_allocation_fails_nothing_is_left},
    {"blocks_that_were_not_given_keep_no_place", NEED_CPU, blocks_that_were_not_given_keep_no_place},
    {"a_host_allocator_may_not_call_the_runtime", NEED_CPU, a_host_allocator_may_not_call_the_runtime},
    VT_TEST_END};
