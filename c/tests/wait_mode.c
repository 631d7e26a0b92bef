// wait_mode.c: how a host thread waits: by flag of the event, and by choice of the call.
#include "vt_test.h"

#include <stdlib.h>

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The program's own comes before libc's, for the shared library too: it counts per thread.
static _Thread_local long yields;

__attribute__((visibility("default"))) int sched_yield(void) {
  yields++;
  return (int)syscall(SYS_sched_yield);
}

// What a wait cost its thread.
typedef struct cost {
  uint64_t cpu_ns;
  long sleeps;  // the thread gave up its processor to wait for something
  long yields;
} cost;

static cost cost_so_far(void) {
  struct timespec cpu;
  struct rusage usage;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  getrusage(RUSAGE_THREAD, &usage);
  return (cost){(uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec, usage.ru_nvcsw, yields};
}

// An event of some flags, and how it is waited for.
typedef struct way {
  uint32_t flags;
  vt_wait_mode mode;      // of the call
  vt_wait_mode expected;  // which of the ways it should be
  vt_event *event;
} way;

static way ways[] = {
    {0, VT_WAIT_MODE_DEFAULT, VT_WAIT_MODE_DEFAULT, NULL},
    {0, VT_WAIT_MODE_BLOCK, VT_WAIT_MODE_BLOCK, NULL},
    {0, VT_WAIT_MODE_YIELD, VT_WAIT_MODE_YIELD, NULL},
    {0, VT_WAIT_MODE_SPIN, VT_WAIT_MODE_SPIN, NULL},
    {VT_EVENT_BLOCKING, VT_WAIT_MODE_DEFAULT, VT_WAIT_MODE_BLOCK, NULL},
    {VT_EVENT_YIELDING, VT_WAIT_MODE_DEFAULT, VT_WAIT_MODE_YIELD, NULL},
    {VT_EVENT_SPINNING, VT_WAIT_MODE_DEFAULT, VT_WAIT_MODE_SPIN, NULL},
    {VT_EVENT_SPINNING, VT_WAIT_MODE_BLOCK, VT_WAIT_MODE_BLOCK, NULL},
    {VT_EVENT_BLOCKING, VT_WAIT_MODE_SPIN, VT_WAIT_MODE_SPIN, NULL},
};

#define WAYS ((int32_t)(sizeof(ways) / sizeof(ways[0])))
#define DELAY_NS UINT64_C(1000000000)

typedef struct waiters {
  vt_test_latch gate;
  _Atomic int32_t count;
} waiters;

static void open_after_delay(waiters *all) {
  // acquire: partner is the increment in wait_in_one_way().
  while (atomic_load_explicit(&all->count, memory_order_acquire) < WAYS) {
    vt_test_sleep_ns(1000000);
  }
  vt_test_sleep_ns(DELAY_NS);
  vt_test_latch_open(&all->gate);
}

// Holds on a loaded machine as well: a wait that sleeps costs next to nothing, and one that polls is ready to run all the time. How
// much a spinning one gets depends on the others; a yielding one may get nearly nothing.
static void check_cost(vt_case *c, int32_t index, cost before, cost after) {
  vt_wait_mode expected = ways[index].expected;
  uint64_t cpu_ns = after.cpu_ns - before.cpu_ns;
  long slept = after.sleeps - before.sleeps;
  int polls = expected == VT_WAIT_MODE_SPIN || expected == VT_WAIT_MODE_YIELD;
  int wrong = polls ? slept > 5 : slept == 0 || cpu_ns >= DELAY_NS / 20;
  if (wrong || (expected == VT_WAIT_MODE_SPIN && cpu_ns < DELAY_NS / 100)) {
    FAIL_CASE(c, "way %d took %llu us of CPU time and slept %ld times", (int)index, (unsigned long long)cpu_ns / 1000, slept);
  }
  EXPECT_EQ(c, expected == VT_WAIT_MODE_YIELD, after.yields > before.yields);
}

static void wait_in_one_way(vt_case *c, int32_t index, void *arg) {
  waiters *all = arg;
  if (index == WAYS) {
    open_after_delay(all);
    return;
  }
  // release: partner is the load in open_after_delay().
  atomic_fetch_add_explicit(&all->count, 1, memory_order_release);
  cost before = cost_so_far();
  EXPECT_OK(c, vt_event_wait_by(ways[index].event, ways[index].mode, UINT64_C(50000000000)));
  check_cost(c, index, before, cost_so_far());
}

static void a_host_wait_spins_yields_or_sleeps_as_asked(vt_case *c) {
  const char *preload = getenv("LD_PRELOAD");
  if (preload != NULL && strstr(preload, "vgpreload") != NULL) {
    SKIP_CASE(c, "valgrind runs one thread at a time");
  }
  vt_queue *queue = vt_test_queue(c);
  waiters all = {VT_TEST_LATCH_INIT, 0};
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &all.gate, NULL));
  for (int32_t i = 0; i < WAYS; i++) {
    ways[i].event = vt_test_event(c, ways[i].flags);
    EXPECT_OK(c, vt_event_record(ways[i].event, queue));
  }
  vt_test_threads(c, WAYS + 1, wait_in_one_way, &all);
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

// Every way polls, times out, finds the failure of the queue, and takes the record that was there when it began.
static void every_way_to_wait_means_the_same(vt_case *c) {
  for (vt_wait_mode mode = VT_WAIT_MODE_DEFAULT; mode <= VT_WAIT_MODE_SPIN; mode++) {
    vt_queue *queue = vt_test_queue(c);
    vt_event *event = vt_test_event(c, 0);
    vt_test_latch gate = VT_TEST_LATCH_INIT;
    EXPECT_OK(c, vt_event_wait_by(event, mode, VT_WAIT_FOREVER));
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &gate, NULL));
    EXPECT_OK(c, vt_event_record(event, queue));
    EXPECT_STATUS(c, VT_NOT_READY, vt_event_wait_by(event, mode, 0));
    uint64_t begin = vt_test_now_ns();
    EXPECT_FAILS(c, VT_ERR_TIMEOUT, "5000000 ns", vt_event_wait_by(event, mode, 5000000));
    EXPECT_TEXT(c, "vt_event_wait_by", vt_last_error()->function);
    EXPECT_TRUE(c, vt_test_now_ns() - begin >= 5000000);
    vt_test_latch_open(&gate);
    EXPECT_OK(c, vt_event_wait_by(event, mode, VT_WAIT_FOREVER));
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, "broken on purpose", NULL));
    vt_status status = vt_event_record(event, queue);
    EXPECT_TRUE(c, status == VT_OK || status == VT_ERR_INTERNAL);
    if (status == VT_OK) {
      EXPECT_FAILS(c, VT_ERR_INTERNAL, "broken on purpose", vt_event_wait_by(event, mode, VT_WAIT_FOREVER));
    }
  }
}

static vt_status pause_a_while(void *unused) {
  (void)unused;
  vt_test_sleep_ns(1000000);
  return VT_OK;
}

typedef struct recorder {
  vt_queue *queue;
  vt_event *event;
  vt_test_latch behind;  // opens when the event has been recorded behind much work
  _Atomic int32_t over;
} recorder;

// One thread records the event again and again behind work that takes longer than a poll; the other one's wait must still end.
static void record_or_wait(vt_case *c, int32_t index, void *arg) {
  recorder *r = arg;
  // acquire: partner is the store below.
  for (int i = 0; index == 0 && atomic_load_explicit(&r->over, memory_order_acquire) == 0; i++) {
    EXPECT_OK(c, vt_queue_host_func(r->queue, pause_a_while, NULL, NULL));
    EXPECT_OK(c, vt_event_record(r->event, r->queue));
    if (i == 50) {
      vt_test_latch_open(&r->behind);
    }
  }
  if (index == 1) {
    vt_test_latch_wait(&r->behind);
    for (vt_wait_mode mode = VT_WAIT_MODE_DEFAULT; mode <= VT_WAIT_MODE_SPIN; mode++) {
      EXPECT_OK(c, vt_event_wait_by(r->event, mode, UINT64_C(50000000000)));
    }
    // release: partner is the load above.
    atomic_store_explicit(&r->over, 1, memory_order_release);
  }
}

static void a_wait_ends_with_the_record_it_began_with(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.ring_capacity = 64;
  recorder r = {.queue = vt_test_queue_with(c, &options), .event = vt_test_event(c, 0), .behind = VT_TEST_LATCH_INIT};
  vt_test_threads(c, 2, record_or_wait, &r);
  EXPECT_OK(c, vt_queue_synchronize(r.queue));
}

static void bad_ways_to_wait_are_refused(vt_case *c) {
  vt_event *event = NULL;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "two ways",
               vt_event_create(vt_test_device(c), VT_EVENT_SPINNING | VT_EVENT_YIELDING, &event));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "0x7", vt_event_create(vt_test_device(c), 7, &event));
  event = vt_test_event(c, 0);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "wait mode 4", vt_event_wait_by(event, 4, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "wait mode -1", vt_event_wait_by(event, -1, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event is NULL", vt_event_wait_by(NULL, VT_WAIT_MODE_SPIN, 1));
}

// A backend without the method: what it can't do is refused by name, what the flag gives works.
static void a_backend_that_can_not_wait_in_a_way_says_so(vt_case *c) {
  vt_event *event = NULL;
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "mode 3", vt_event_create(vt_test_device(c), VT_EVENT_SPINNING, &event));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "mode 2", vt_event_create(vt_test_device(c), VT_EVENT_YIELDING, &event));
  event = vt_test_event(c, 0);
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "mode 1", vt_event_wait_by(event, VT_WAIT_MODE_BLOCK, 1));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "mode 3", vt_event_wait_by(event, VT_WAIT_MODE_SPIN, 0));
  EXPECT_OK(c, vt_event_wait_by(event, VT_WAIT_MODE_DEFAULT, 1));
  EXPECT_OK(c, vt_event_wait_by(vt_test_event(c, VT_EVENT_BLOCKING), VT_WAIT_MODE_BLOCK, 1));
}

static void come_late_or_wait(vt_case *c, int32_t rank, void *arg) {
  vt_comm *comm = NULL;
  vt_queue *queue = ((vt_queue **)arg)[rank];
  vt_comm_group *group = ((vt_comm_group **)arg)[2];
  REQUIRE_OK(c, vt_comm_group_get_comm(group, rank, &comm));
  if (rank == 0) {
    vt_test_sleep_ns(DELAY_NS / 2);
  }
  uint64_t begin = vt_test_now_ns();
  cost before = cost_so_far();
  EXPECT_OK(c, vt_comm_barrier(comm, queue, NULL));
  cost after = cost_so_far();
  // Of a wait this long. The share may be large by chance: a virtual machine charges a thread with what the host took meanwhile.
  uint64_t took = vt_test_now_ns() - begin;
  if (took > DELAY_NS / 4) {
    EXPECT_TRUE(c, after.cpu_ns - before.cpu_ns < took / 2);
  }
}

static void a_rank_that_waits_for_its_peer_leaves_the_cpu_to_others(vt_case *c) {
  void *arg[] = {vt_test_queue(c), vt_test_queue(c), vt_test_group(c, 2, NULL)};
  vt_test_threads(c, 2, come_late_or_wait, arg);
}

const vt_test_case vt_cases_wait_mode[] = {
    {"a_host_wait_spins_yields_or_sleeps_as_asked", NEED_WORKER, a_host_wait_spins_yields_or_sleeps_as_asked},
    {"every_way_to_wait_means_the_same", NEED_WORKER | REPORTS, every_way_to_wait_means_the_same},
    {"a_wait_ends_with_the_record_it_began_with", NEED_WORKER, a_wait_ends_with_the_record_it_began_with},
    {"a_rank_that_waits_for_its_peer_leaves_the_cpu_to_others", NEED_COMM | NEED_SYNC,
     a_rank_that_waits_for_its_peer_leaves_the_cpu_to_others},
    {"bad_ways_to_wait_are_refused", 0, bad_ways_to_wait_are_refused},
    {"a_backend_that_can_not_wait_in_a_way_says_so", NEED_TOY | REPORTS, a_backend_that_can_not_wait_in_a_way_says_so},
    VT_TEST_END};
