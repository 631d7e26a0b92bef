// comm_wait.c: how ranks wait for each other: by the group's mode or the call's, idle at next to no cost, on one processor too.
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "comm_rig.h"

#define MS UINT64_C(1000000)
#define MODES 4  // VT_WAIT_MODE_DEFAULT to VT_WAIT_MODE_SPIN

static void a_wait_mode_that_there_is_not_is_refused(vt_case *c) {
  static const vt_wait_mode unknown[] = {-1, MODES, INT32_MAX};
  static const char *const texts[] = {"wait mode -1 is unknown", "wait mode 4 is unknown", "wait mode 2147483647 is unknown"};
  for (size_t i = 0; i < 3; i++) {
    vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
    vt_comm_group *group = NULL;
    options.wait = unknown[i];
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, texts[i], vt_comm_group_create(1, &options, &group));
    comm_rig *rig = rig_begin(c, 1, NULL);
    vt_comm_call opts = VT_COMM_CALL_INIT;
    opts.wait = unknown[i];
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, texts[i], vt_comm_barrier(rig->comms[0], rig->queues[0], &opts));
    rig_expect_usable(rig);
  }
}

// What a run of sums does, the same on every rank but for the waits.
typedef struct sums_run {
  comm_rig *rig;
  int32_t rounds;
  uint64_t longest_delay_ns;  // before a call
  int32_t processor;          // all ranks are bound to it; -1 = none
} sums_run;

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static void sum_once(vt_case *c, comm_rig *rig, int32_t rank, int32_t round, vt_wait_mode mode) {
  enum { COUNT = 700 };  // more than what travels with a publication
  int32_t data[COUNT];
  size_t count = round % 3 == 0 ? COUNT : 1;
  for (size_t i = 0; i < count; i++) {
    data[i] = round * (rank + 1);
  }
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.wait = mode;
  vt_comm *comm = rig->comms[rank];
  EXPECT_OK(
      c, rig_finish(rig, rank, vt_comm_all_reduce(comm, rig->queues[rank], data, data, count, VT_DTYPE_I32, VT_REDUCE_SUM, &opts)));
  EXPECT_EQ(c, round * rig->world * (rig->world + 1) / 2, data[count - 1]);
}

static void sums_rank(vt_case *c, int32_t rank, void *arg) {
  const sums_run *run = arg;
  uint64_t random = (uint64_t)rank;
  if (run->processor >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)run->processor, &one);
    EXPECT_EQ(c, 0, sched_setaffinity(0, sizeof one, &one));
  }
  for (int32_t round = 0; round < run->rounds; round++) {
    if (run->longest_delay_ns > 0 && next_random(&random) % 4 == 0) {
      vt_test_sleep_ns(next_random(&random) % run->longest_delay_ns);
    }
    // Not without end where all share one processor: that would hold the others up for whole time slices.
    vt_wait_mode mode = (vt_wait_mode)(next_random(&random) % (run->processor < 0 ? MODES : VT_WAIT_MODE_SPIN));
    sum_once(c, run->rig, rank, round, mode);
  }
}

static void each_rank_may_wait_in_another_mode(vt_case *c) {
  for (vt_wait_mode mode = 0; mode < MODES; mode++) {
    vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
    options.wait = mode;
    // The longest delays send every mode that sleeps to sleep.
    sums_run run = {.rig = rig_begin(c, 4, &options), .rounds = 15, .longest_delay_ns = MS, .processor = -1};
    rig_run(run.rig, sums_rank, &run);
  }
}

static void ranks_bound_to_one_processor_go_on(vt_case *c) {
  cpu_set_t allowed;
  REQUIRE_EQ(c, 0, sched_getaffinity(0, sizeof allowed, &allowed));
  int32_t first = 0;
  while (!CPU_ISSET((size_t)first, &allowed)) {
    first++;
  }
  sums_run run = {.rig = rig_begin(c, 4, NULL), .rounds = 60, .processor = first};
  rig_run(run.rig, sums_rank, &run);
}

static uint64_t cpu_ns(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * UINT64_C(1000000000) +
         ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

typedef struct idle_run {
  comm_rig *rig;
  vt_wait_mode mode;  // of the call
} idle_run;

// Rank 1 comes late.
static void idle_rank(vt_case *c, int32_t rank, void *arg) {
  const idle_run *run = arg;
  comm_rig *rig = run->rig;
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.wait = run->mode;
  if (rank == 1) {
    vt_test_sleep_ns(1500 * MS);
  }
  uint64_t cpu_before = cpu_ns();
  uint64_t before = vt_test_now_ns();
  EXPECT_OK(c, rig_finish(rig, rank, vt_comm_barrier(rig->comms[rank], rig->queues[rank], &opts)));
  uint64_t waited = vt_test_now_ns() - before;
  uint64_t used = cpu_ns() - cpu_before;
  // A tenth of a processor after the first 100 ms.
  if (rank == 0 && waited > 100 * MS && used > 100 * MS + (waited - 100 * MS) / 10) {
    FAIL_CASE(c, "a wait of %.0f ms used the processor for %.0f ms", (double)waited / 1e6, (double)used / 1e6);
  }
}

static void a_rank_that_waits_for_long_leaves_its_processor_to_others(vt_case *c) {
  for (vt_wait_mode mode = VT_WAIT_MODE_DEFAULT; mode <= VT_WAIT_MODE_BLOCK; mode++) {
    vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
    options.wait = mode;
    idle_run run = {.rig = rig_begin(c, 2, &options)};
    rig_run(run.rig, idle_rank, &run);
  }
}

// What the call says goes before what the group was told.
static void a_call_waits_as_it_says(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.wait = VT_WAIT_MODE_SPIN;
  idle_run run = {.rig = rig_begin(c, 2, &options), .mode = VT_WAIT_MODE_BLOCK};
  rig_run(run.rig, idle_rank, &run);
}

static void the_process_may_use_some_processors(vt_case *c) {
  cpu_set_t allowed;
  REQUIRE_EQ(c, 0, sched_getaffinity(0, sizeof allowed, &allowed));
  EXPECT_TRUE(c, vt_host_concurrency() >= 1);
  EXPECT_TRUE(c, vt_host_concurrency() <= (uint32_t)CPU_COUNT(&allowed));
  EXPECT_EQ(c, vt_host_concurrency(), vt_host_concurrency());
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_wait[] = {
    ROW(a_wait_mode_that_there_is_not_is_refused, NEED_SYNC),
    ROW(each_rank_may_wait_in_another_mode, 0),
    ROW(ranks_bound_to_one_processor_go_on, NEED_SYNC),
    ROW(a_rank_that_waits_for_long_leaves_its_processor_to_others, NEED_SYNC),
    ROW(a_call_waits_as_it_says, NEED_SYNC),
    ROW(the_process_may_use_some_processors, 0),
    VT_TEST_END,
};
