// comm_abort.c: ranks that never come, that go, and groups that are aborted: everybody else learns it in time, and no peer touches
// the memory of a call that has returned.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm_rig.h"

#define MS UINT64_C(1000000)

// What a promised bound of `ns` may take here: instrumented programs run on other clocks.
static uint64_t bound(uint64_t ns) {
  return vt_test_is_slow() ? 20 * ns : ns;
}

// Tells what comes at once from what waits for a deadline, which is longer wherever this is asked: on a machine that stands still
// for seconds, too.
#define AT_ONCE (10000 * MS)

// Tries of something that must take less than 100 ms. A busy machine may hold a thread back for longer: some of the tries must be
// in time, and each within AT_ONCE.
#define TRIES 20
#define IN_TIME 2

typedef struct timing {
  int32_t in_time;
  uint64_t worst_ns;
} timing;

static void timing_add(timing *t, uint64_t took_ns) {
  t->in_time += took_ns <= bound(100 * MS);
  t->worst_ns = took_ns > t->worst_ns ? took_ns : t->worst_ns;
}

static void timing_check(vt_case *c, const timing *t) {
  if (t->in_time < IN_TIME || t->worst_ns > bound(AT_ONCE)) {
    FAIL_CASE(c, "%d of %d tries within %.0f ms, the slowest took %.0f ms", t->in_time, TRIES, (double)bound(100 * MS) / 1e6,
              (double)t->worst_ns / 1e6);
  }
}

static vt_status call_op(comm_rig *rig, int32_t rank, vt_comm_op op, int32_t *data, const vt_comm_call *opts) {
  vt_comm *comm = rig->comms[rank];
  vt_queue *queue = rig->queues[rank];
  switch (op) {
    case VT_COMM_OP_ALL_REDUCE:
      return vt_comm_all_reduce(comm, queue, data, data, 1, VT_DTYPE_I32, VT_REDUCE_SUM, opts);
    case VT_COMM_OP_ALL_GATHER:
      return vt_comm_all_gather(comm, queue, data + rank, data, 1, VT_DTYPE_I32, opts);
    case VT_COMM_OP_SEND:
      return vt_comm_send(comm, queue, data, 1, VT_DTYPE_I32, rig->world - 1, opts);
    case VT_COMM_OP_RECV:
      return vt_comm_recv(comm, queue, data, 1, VT_DTYPE_I32, rig->world - 1, opts);
    default:
      return vt_comm_barrier(comm, queue, opts);
  }
}

static vt_status finish_op(comm_rig *rig, int32_t rank, vt_comm_op op, const vt_comm_call *opts) {
  int32_t data[RIG_MAX_WORLD] = {0};
  return rig_finish(rig, rank, call_op(rig, rank, op, data, opts));
}

// The last rank doesn't call.
typedef struct missing_run {
  comm_rig *rig;
  vt_comm_op op;
  uint64_t timeout_ns;  // of the call; 0 = the group's
  uint64_t begin_ns;
} missing_run;

static void missing_rank(vt_case *c, int32_t rank, void *arg) {
  missing_run *run = arg;
  comm_rig *rig = run->rig;
  if (rank == rig->world - 1) {
    return;
  }
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.timeout_ns = run->timeout_ns;
  EXPECT_STATUS(c, VT_ERR_TIMEOUT, finish_op(rig, rank, run->op, &opts));
  char name[32];
  snprintf(name, sizeof name, "rank %d", rig->world - 1);
  EXPECT_MESSAGE(c, name);
  uint64_t took = vt_test_now_ns() - run->begin_ns;
  EXPECT_TRUE(c, took >= 100 * MS);
  EXPECT_TRUE(c, took < bound(AT_ONCE));
}

static void expect_poisoned(comm_rig *rig, vt_status cause, const char *text) {
  vt_case *c = rig->c;
  rig_renew_queues(rig);
  for (int32_t r = 0; r < rig->world; r++) {
    EXPECT_FAILS(c, cause, text, vt_comm_query(rig->comms[r]));
    EXPECT_FAILS(c, cause, text, finish_op(rig, r, VT_COMM_OP_ALL_REDUCE, NULL));
  }
}

static void a_rank_that_never_comes_is_named_when_the_calls_deadline_passes(vt_case *c) {
  for (vt_comm_op op = VT_COMM_OP_ALL_REDUCE; op <= VT_COMM_OP_BARRIER; op++) {
    vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
    options.timeout_ns = 60000 * MS;
    missing_run run = {rig_begin(c, 3, &options), op, 100 * MS, vt_test_now_ns()};
    EXPECT_OK(c, vt_comm_query(run.rig->comms[0]));
    rig_run(run.rig, missing_rank, &run);
    expect_poisoned(run.rig, VT_ERR_TIMEOUT, "rank 2");
  }
}

static void the_groups_deadline_holds_for_calls_that_name_none(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = 100 * MS;
  missing_run run = {rig_begin(c, 2, &options), VT_COMM_OP_ALL_REDUCE, 0, vt_test_now_ns()};
  rig_run(run.rig, missing_rank, &run);
  expect_poisoned(run.rig, VT_ERR_TIMEOUT, "rank 1");
}

static void patient_rank(vt_case *c, int32_t rank, void *arg) {
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.timeout_ns = 30000 * MS;
  if (rank == 1) {
    vt_test_sleep_ns(300 * MS);
  }
  EXPECT_OK(c, finish_op(arg, rank, VT_COMM_OP_ALL_REDUCE, &opts));
}

static void a_calls_longer_deadline_holds_over_the_groups(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = 50 * MS;
  comm_rig *rig = rig_begin(c, 2, &options);
  rig_run(rig, patient_rank, rig);
}

// The clock of a deadline starts when the operation reaches the head of its queue.
static void late_head_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  static vt_test_latch door = VT_TEST_LATCH_INIT;
  int32_t value = 1;
  if (rank == 0) {
    door.open = 0;
    EXPECT_OK(c, vt_queue_host_func(rig->queues[0], vt_test_host_wait, &door, NULL));
    EXPECT_OK(c, call_op(rig, 0, VT_COMM_OP_ALL_REDUCE, &value, NULL));
    vt_test_sleep_ns(1000 * MS);
    vt_test_latch_open(&door);
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[0]));
  } else {
    vt_test_sleep_ns(1000 * MS);
    EXPECT_OK(c, rig_finish(rig, 1, call_op(rig, 1, VT_COMM_OP_ALL_REDUCE, &value, NULL)));
  }
  EXPECT_EQ(c, 2, value);
}

static void a_deadline_counts_from_the_head_of_the_queue(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = 800 * MS;
  comm_rig *rig = rig_begin(c, 2, &options);
  rig_run(rig, late_head_rank, rig);
}

// A group of our own, whose ranks are released one by one.
typedef struct lost_run {
  comm_rig *rig;
  vt_comm_group *group;
  int32_t queued;  // operations that the leaving rank has submitted before
} lost_run;

static void lost_rank(vt_case *c, int32_t rank, void *arg) {
  lost_run *run = arg;
  comm_rig *rig = run->rig;
  int32_t value[2] = {rank + 1, rank + 1};
  if (rank == 1) {
    for (int32_t i = 0; i < run->queued; i++) {
      EXPECT_OK(c, call_op(rig, 1, VT_COMM_OP_ALL_REDUCE, &value[i], NULL));
    }
    vt_comm_release(rig->comms[1]);
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[1]));
  } else {
    vt_test_sleep_ns(run->queued != 0 ? 50 * MS : 0);
    for (int32_t i = 0; i < run->queued; i++) {
      EXPECT_OK(c, rig_finish(rig, 0, call_op(rig, 0, VT_COMM_OP_ALL_REDUCE, &value[i], NULL)));
    }
    uint64_t begin = vt_test_now_ns();
    EXPECT_FAILS(c, VT_ERR_PEER_LOST, "rank 1", finish_op(rig, 0, VT_COMM_OP_ALL_REDUCE, NULL));
    EXPECT_TRUE(c, vt_test_now_ns() - begin < AT_ONCE);
    vt_comm_release(rig->comms[0]);
  }
  for (int32_t i = 0; i < run->queued; i++) {
    EXPECT_EQ(c, 3, value[i]);
  }
}

static void the_last_release_of_a_rank_is_told_after_its_queued_work(vt_case *c) {
  for (int32_t queued = 0; queued <= 2; queued += 2) {
    lost_run run = {.rig = rig_begin(c, 2, NULL), .queued = queued};
    vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
    options.timeout_ns = 20000 * MS;
    REQUIRE_OK(c, vt_comm_group_create(2, &options, &run.group));
    vt_test_watch_group(c, run.group);
    for (int32_t r = 0; r < 2; r++) {
      EXPECT_OK(c, vt_comm_group_get_comm(run.group, r, &run.rig->comms[r]));
      EXPECT_OK(c, vt_comm_retain(run.rig->comms[r]));
    }
    vt_comm_group_release(run.group);
    rig_run(run.rig, lost_rank, &run);
  }
}

// Rank 1 lives and hasn't come yet; rank 2 will never come.
static void a_rank_that_went_is_told_while_another_one_is_awaited(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = 20000 * MS;
  vt_comm_group *group = NULL;
  REQUIRE_OK(c, vt_comm_group_create(3, &options, &group));
  vt_test_watch_group(c, group);
  for (int32_t r = 0; r < 3; r++) {
    EXPECT_OK(c, vt_comm_group_get_comm(group, r, &rig->comms[r]));
    EXPECT_OK(c, vt_comm_retain(rig->comms[r]));
  }
  vt_comm_group_release(group);
  vt_comm_release(rig->comms[2]);
  uint64_t begin = vt_test_now_ns();
  EXPECT_FAILS(c, VT_ERR_PEER_LOST, "rank 2 has gone", rig_finish(rig, 0, vt_comm_barrier(rig->comms[0], rig->queues[0], NULL)));
  EXPECT_TRUE(c, vt_test_now_ns() - begin < AT_ONCE);
  vt_comm_release(rig->comms[0]);
  vt_comm_release(rig->comms[1]);
}

// A thread that ends inside the data phase.
static void end_thread(void *user, int32_t rank, uint64_t sequence, size_t chunk) {
  (void)user;
  (void)sequence;
  (void)chunk;
  if (rank == 1) {
    pthread_exit(NULL);
  }
}

typedef struct large_run {
  comm_rig *rig;
  float *data[RIG_MAX_WORLD];
} large_run;

#define LARGE_COUNT ((size_t)1024 * 1024)

static void *ending_thread(void *arg) {
  large_run *run = arg;
  (void)vt_comm_all_reduce(run->rig->comms[1], run->rig->queues[1], run->data[1], run->data[1], LARGE_COUNT, VT_DTYPE_F32,
                           VT_REDUCE_SUM, NULL);
  return arg;
}

static void a_thread_that_ends_inside_an_operation_is_lost(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.chunk_hook = end_thread;
  large_run run = {.rig = rig_begin(c, 2, &options)};
  for (int32_t r = 0; r < 2; r++) {
    run.data[r] = vt_test_guarded_alloc(c, LARGE_COUNT * sizeof(float));
  }
  pthread_t thread;
  REQUIRE_TRUE(c, pthread_create(&thread, NULL, ending_thread, &run) == 0);
  uint64_t begin = vt_test_now_ns();
  EXPECT_FAILS(c, VT_ERR_PEER_LOST, "rank 1",
               vt_comm_all_reduce(run.rig->comms[0], run.rig->queues[0], run.data[0], run.data[0], LARGE_COUNT, VT_DTYPE_F32,
                                  VT_REDUCE_SUM, NULL));
  EXPECT_TRUE(c, vt_test_now_ns() - begin < AT_ONCE);
  void *result = &run;
  pthread_join(thread, &result);
  EXPECT_TRUE(c, result == NULL);
  expect_poisoned(run.rig, VT_ERR_PEER_LOST, "rank 1");
}

// Rank 1 has two threads: one is in a barrier, the other one waits for its turn and ends there. ThreadSanitizer loses track of a
// thread that is cancelled.
typedef struct turn_run {
  comm_rig *rig;
  vt_queue *second;
  vt_test_latch door;
} turn_run;

static void *waiting_thread(void *arg) {
  turn_run *run = arg;
  int32_t value = 1;
  // So that the thread has had an operation with a number already.
  (void)vt_comm_all_reduce(run->rig->comms[1], run->second, &value, &value, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL);
  // A cancellation that comes before the call takes effect inside it.
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  vt_test_latch_wait(&run->door);
  (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  (void)vt_comm_barrier(run->rig->comms[1], run->second, NULL);
  return arg;
}

static void await_record(vt_case *c, vt_comm *comm, vt_comm_op op, vt_comm_state state) {
  vt_comm_record record = {0};
  size_t count = 0;
  while (record.op != op || record.state != state) {
    REQUIRE_OK(c, vt_comm_get_records(comm, &record, 1, &count));
    vt_test_sleep_ns(MS);
  }
}

static void end_waiting_thread(vt_case *c, turn_run *run) {
  pthread_t thread;
  REQUIRE_TRUE(c, pthread_create(&thread, NULL, waiting_thread, run) == 0);
  await_record(c, run->rig->comms[1], VT_COMM_OP_BARRIER, VT_COMM_STATE_WAITING);
  vt_test_latch_open(&run->door);
  vt_test_sleep_ns(200 * MS);
  pthread_cancel(thread);
  void *result = NULL;
  pthread_join(thread, &result);
  EXPECT_TRUE(c, result == PTHREAD_CANCELED);
}

static void turn_thread(vt_case *c, int32_t index, void *arg) {
  turn_run *run = arg;
  comm_rig *rig = run->rig;
  int32_t value = 1;
  if (index == 0) {
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[0], rig->queues[0], &value, &value, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  } else if (index == 1) {
    await_record(c, rig->comms[1], VT_COMM_OP_ALL_REDUCE, VT_COMM_STATE_FINISHED);
    EXPECT_FAILS(c, VT_ERR_PEER_LOST, "rank 1 has gone: its thread ended inside barrier",
                 vt_comm_barrier(rig->comms[1], rig->queues[1], NULL));
    EXPECT_TRUE(c, strstr(vt_last_error()->message, "number") == NULL);
  } else {
    end_waiting_thread(c, run);
  }
}

static void a_thread_that_ends_before_its_turn_names_no_number(vt_case *c) {
  turn_run run = {rig_begin(c, 2, NULL), vt_test_queue(c), VT_TEST_LATCH_INIT};
  vt_test_threads(c, 3, turn_thread, &run);
  expect_poisoned(run.rig, VT_ERR_PEER_LOST, "rank 1");
}

// Ranks 0 and 1 wait for rank 2, which aborts instead.
typedef struct abort_run {
  comm_rig *rig;
  vt_comm_op op;
  _Atomic uint64_t aborted_ns;
  uint64_t slowest_ns;
  pthread_mutex_t mutex;
} abort_run;

static void abort_rank(vt_case *c, int32_t rank, void *arg) {
  abort_run *run = arg;
  if (rank == 2) {
    vt_test_sleep_ns(150 * MS);
    // relaxed: read by threads that the abort wakes.
    atomic_store_explicit(&run->aborted_ns, vt_test_now_ns(), memory_order_relaxed);
    EXPECT_OK(c, vt_comm_abort(run->rig->comms[2], "the kettle boils"));
    return;
  }
  EXPECT_STATUS(c, VT_ERR_ABORTED, finish_op(run->rig, rank, run->op, NULL));
  uint64_t took = vt_test_now_ns() - atomic_load_explicit(&run->aborted_ns, memory_order_relaxed);
  EXPECT_MESSAGE(c, "the kettle boils");
  pthread_mutex_lock(&run->mutex);
  run->slowest_ns = took > run->slowest_ns ? took : run->slowest_ns;
  pthread_mutex_unlock(&run->mutex);
}

static void an_abort_wakes_everybody_within_100_ms(vt_case *c) {
  for (vt_comm_op op = VT_COMM_OP_ALL_REDUCE; op <= VT_COMM_OP_BARRIER; op++) {
    timing t = {0};
    for (int32_t attempt = 0; attempt < TRIES && t.in_time < IN_TIME; attempt++) {
      abort_run run = {.rig = rig_begin(c, 3, NULL), .op = op, .mutex = PTHREAD_MUTEX_INITIALIZER};
      rig_run(run.rig, abort_rank, &run);
      timing_add(&t, run.slowest_ns);
      expect_poisoned(run.rig, VT_ERR_ABORTED, "the kettle boils");
    }
    timing_check(c, &t);
  }
}

static void the_first_cause_stays(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  EXPECT_OK(c, vt_comm_abort(rig->comms[0], "first"));
  EXPECT_OK(c, vt_comm_abort(rig->comms[1], "second"));
  EXPECT_OK(c, vt_comm_abort(rig->comms[1], NULL));
  expect_poisoned(rig, VT_ERR_ABORTED, "first");
}

// Memory with an inaccessible page on either side.
typedef struct fenced {
  unsigned char *map;
  size_t whole;
  unsigned char *data;
} fenced;

static fenced fenced_alloc(vt_case *c, size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  fenced f = {.whole = bytes + 2 * page};
  f.map = mmap(NULL, f.whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (f.map == MAP_FAILED || mprotect(f.map + page, bytes, PROT_READ | PROT_WRITE) != 0) {
    FAIL_CASE(c, "no memory");
    abort();
  }
  f.data = f.map + page;
  return f;
}

// Rank 1 is held in the middle of its slice while the call of rank 0 fails.
typedef struct paused_run {
  comm_rig *rig;
  vt_test_latch door;
  _Atomic int32_t pauses;
  _Atomic int32_t paused;  // rank 1 came to the door; a busy machine may let the deadline pass before
  int32_t pause_at;
  vt_comm_op op;
  uint64_t timeout_ns;  // of rank 0's call; 0: it is aborted
  fenced send, recv;    // of rank 0
  fenced other;         // of rank 1: large enough for any operation
  unsigned char *copy;
  _Atomic int32_t returned;
  _Atomic uint64_t opened_ns;
  uint64_t took_ns;
} paused_run;

static void pause_rank_1(void *user, int32_t rank, uint64_t sequence, size_t chunk) {
  (void)sequence;
  (void)chunk;
  paused_run *run = user;
  // relaxed: only this rank's thread counts.
  if (rank == 1 && atomic_fetch_add_explicit(&run->pauses, 1, memory_order_relaxed) == run->pause_at) {
    // relaxed: read by who has seen the door's waiter, or has joined.
    atomic_store_explicit(&run->paused, 1, memory_order_relaxed);
    vt_test_latch_wait(&run->door);
  }
}

static vt_status paused_call(paused_run *run, int32_t rank, const vt_comm_call *opts) {
  comm_rig *rig = run->rig;
  vt_comm *comm = rig->comms[rank];
  vt_queue *queue = rig->queues[rank];
  void *send = rank == 0 ? run->send.data : run->other.data;
  void *recv = rank == 0 ? run->recv.data : run->other.data + sizeof(float) * LARGE_COUNT;
  switch (run->op) {
    case VT_COMM_OP_ALL_REDUCE:
      return vt_comm_all_reduce(comm, queue, send, recv, LARGE_COUNT, VT_DTYPE_F32, VT_REDUCE_SUM, opts);
    case VT_COMM_OP_ALL_GATHER:
      return vt_comm_all_gather(comm, queue, send, recv, LARGE_COUNT, VT_DTYPE_F32, opts);
    default:
      return rank == 0 ? vt_comm_send(comm, queue, send, LARGE_COUNT, VT_DTYPE_F32, 1, opts)
                       : vt_comm_recv(comm, queue, recv, LARGE_COUNT, VT_DTYPE_F32, 0, opts);
  }
}

// Rank 0 gives its memory away as soon as its call has returned; a peer that still used it would fault.
static void paused_rank_0(vt_case *c, paused_run *run) {
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.timeout_ns = run->timeout_ns;
  vt_status status = rig_finish(run->rig, 0, paused_call(run, 0, &opts));
  uint64_t now = vt_test_now_ns();
  munmap(run->send.map, run->send.whole);
  munmap(run->recv.map, run->recv.whole);
  EXPECT_STATUS(c, run->timeout_ns != 0 ? VT_ERR_TIMEOUT : VT_ERR_ABORTED, status);
  // relaxed: times of one clock.
  run->took_ns = now - atomic_load_explicit(&run->opened_ns, memory_order_relaxed);
  // release: partner is the load before the door opens.
  atomic_store_explicit(&run->returned, 1, memory_order_release);
}

static void paused_rank(vt_case *c, int32_t rank, void *arg) {
  paused_run *run = arg;
  if (rank == 0) {
    paused_rank_0(c, run);
  } else if (rank == 1) {
    vt_status status = rig_finish(run->rig, 1, paused_call(run, 1, NULL));
    EXPECT_STATUS(c, run->timeout_ns != 0 ? VT_ERR_TIMEOUT : VT_ERR_ABORTED, status);
    vt_test_latch_open(&run->door);  // where it never came to the door
  } else {
    vt_test_latch_await_waiter(&run->door);
    if (atomic_load_explicit(&run->paused, memory_order_relaxed) == 0) {
      return;
    }
    if (run->timeout_ns == 0) {
      EXPECT_OK(c, vt_comm_abort(run->rig->comms[0], "enough"));
    }
    vt_test_sleep_ns(200 * MS + run->timeout_ns);
    // On a machine with much else to do, rank 0 may not have looked at the time yet.
    for (int i = 0; i < 20000 && vt_comm_query(run->rig->comms[0]) == VT_OK; i++) {
      vt_test_sleep_ns(MS);
    }
    // acquire: partner is the store behind rank 0's call.
    EXPECT_EQ(c, 0, atomic_load_explicit(&run->returned, memory_order_acquire));
    atomic_store_explicit(&run->opened_ns, vt_test_now_ns(), memory_order_relaxed);
    vt_test_latch_open(&run->door);
  }
}

// Adds how long rank 0's call took to return after rank 1 was let go, if rank 1 was held at all.
static void run_paused(vt_case *c, vt_comm_op op, uint64_t timeout_ns, int32_t pause_at, timing *t) {
  size_t bytes = sizeof(float) * LARGE_COUNT;
  paused_run run = {.op = op, .timeout_ns = timeout_ns, .pause_at = pause_at, .door = VT_TEST_LATCH_INIT};
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.chunk_hook = pause_rank_1;
  options.chunk_user = &run;
  run.rig = rig_begin(c, 2, &options);
  run.send = fenced_alloc(c, bytes);
  run.recv = fenced_alloc(c, 2 * bytes);
  run.other = fenced_alloc(c, 3 * bytes);
  vt_test_threads(c, 3, paused_rank, &run);
  // Rank 1 looked at the gate before it went on: it came to no further chunk, or to one.
  EXPECT_TRUE(c, atomic_load_explicit(&run.pauses, memory_order_relaxed) <= pause_at + 2);
  munmap(run.other.map, run.other.whole);
  if (atomic_load_explicit(&run.paused, memory_order_relaxed) != 0) {
    timing_add(t, run.took_ns);
  }
}

static void quiesce_within_100_ms(vt_case *c, uint64_t timeout_ns) {
  static const vt_comm_op ops[] = {VT_COMM_OP_ALL_REDUCE, VT_COMM_OP_ALL_GATHER, VT_COMM_OP_SEND};
  for (size_t i = 0; i < 3; i++) {
    timing t = {0};
    for (int32_t attempt = 0; attempt < TRIES && t.in_time < IN_TIME; attempt++) {
      run_paused(c, ops[i], timeout_ns, attempt % 2 == 0 ? 2 : 0, &t);
    }
    timing_check(c, &t);
  }
}

static void an_aborted_call_returns_only_when_no_peer_can_touch_its_memory(vt_case *c) {
  quiesce_within_100_ms(c, 0);
}

static void a_call_whose_deadline_passed_returns_only_when_no_peer_can_touch_its_memory(vt_case *c) {
  quiesce_within_100_ms(c, (vt_test_is_slow() ? 900 : 300) * MS);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_abort[] = {
    ROW(a_rank_that_never_comes_is_named_when_the_calls_deadline_passes, 0),
    ROW(the_groups_deadline_holds_for_calls_that_name_none, 0),
    ROW(a_calls_longer_deadline_holds_over_the_groups, 0),
    ROW(a_deadline_counts_from_the_head_of_the_queue, NEED_WORKER),
    ROW(the_last_release_of_a_rank_is_told_after_its_queued_work, 0),
    ROW(a_rank_that_went_is_told_while_another_one_is_awaited, 0),
    ROW(a_thread_that_ends_inside_an_operation_is_lost, NEED_SYNC),
    ROW(a_thread_that_ends_before_its_turn_names_no_number, NEED_SYNC | NEED_NO_TSAN),
    ROW(an_abort_wakes_everybody_within_100_ms, 0),
    ROW(the_first_cause_stays, 0),
    ROW(an_aborted_call_returns_only_when_no_peer_can_touch_its_memory, 0),
    ROW(a_call_whose_deadline_passed_returns_only_when_no_peer_can_touch_its_memory, 0),
    VT_TEST_END,
};
