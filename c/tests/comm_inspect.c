// comm_inspect.c: what can be seen of a communicator: the flight recorder, the description of a group, traces; and what a call
// costs in memory: nothing.
#include <stdatomic.h>
#include <stdio.h>

#include "comm_rig.h"

#define KEPT 256

static void numbered_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t value[400] = {0};
  for (size_t i = 1; i <= 300; i++) {
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], value, value, i, VT_DTYPE_I32, VT_REDUCE_MAX, NULL));
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
  }
}

static void the_flight_recorder_keeps_the_last_256_operations_newest_first(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, numbered_rank, rig);
  static vt_comm_record records[400];
  for (int32_t r = 0; r < 2; r++) {
    size_t count = 0;
    REQUIRE_OK(c, vt_comm_get_records(rig->comms[r], records, 400, &count));
    REQUIRE_EQ(c, KEPT, count);
    for (size_t i = 0; i < count; i++) {
      EXPECT_EQ(c, 300 - i, records[i].sequence);
      EXPECT_EQ(c, 300 - i, records[i].count);
      EXPECT_EQ(c, VT_COMM_OP_ALL_REDUCE, records[i].op);
      EXPECT_EQ(c, VT_DTYPE_I32, records[i].dtype);
      EXPECT_EQ(c, VT_REDUCE_MAX, records[i].reduce_op);
      EXPECT_EQ(c, -1, records[i].peer);
      EXPECT_EQ(c, VT_COMM_STATE_FINISHED, records[i].state);
      EXPECT_EQ(c, VT_OK, records[i].status);
      EXPECT_TRUE(c, records[i].start_ticks <= records[i].end_ticks);
      EXPECT_TRUE(c, i == 0 || records[i].start_ticks <= records[i - 1].start_ticks);
    }
    REQUIRE_OK(c, vt_comm_get_records(rig->comms[r], records, 2, &count));
    EXPECT_EQ(c, 2, count);
    EXPECT_EQ(c, 300, records[0].sequence);
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_comm_get_records(rig->comms[r], NULL, 1, &count));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_comm_get_records(rig->comms[r], records, 1, NULL));
  }
}

// Thread 2 is a message of rank 0 that is still in progress when more operations than are kept have come after it.
typedef struct overtaken_run {
  comm_rig *rig;
  vt_queue *third;
  vt_test_latch finished;  // opened when rank 1 has made its calls: an abort would end its last one
} overtaken_run;

static void overtaken_rank(vt_case *c, int32_t index, void *arg) {
  overtaken_run *run = arg;
  comm_rig *rig = run->rig;
  if (index == 2) {
    int32_t value = 0;
    vt_status status = vt_comm_recv(rig->comms[0], run->third, &value, 1, VT_DTYPE_I32, 1, NULL);
    EXPECT_STATUS(c, VT_ERR_ABORTED, status != VT_OK ? status : vt_queue_synchronize(run->third));
    return;
  }
  vt_comm_record record;
  size_t count = 0;
  while (count == 0) {
    REQUIRE_OK(c, vt_comm_get_records(rig->comms[0], &record, 1, &count));
  }
  for (size_t i = 1; i <= KEPT; i++) {
    EXPECT_OK(c, rig_finish(rig, index, vt_comm_barrier(rig->comms[index], rig->queues[index], NULL)));
  }
  if (index == 1) {
    vt_test_latch_open(&run->finished);
    return;
  }
  vt_test_latch_wait(&run->finished);
  EXPECT_OK(c, vt_comm_abort(rig->comms[0], "enough"));
}

static void an_operation_that_was_overtaken_changes_no_other_record(vt_case *c) {
  overtaken_run run = {rig_begin(c, 2, NULL), vt_test_queue(c), VT_TEST_LATCH_INIT};
  static vt_comm_record records[KEPT];
  size_t count = 0;
  vt_test_threads(c, 3, overtaken_rank, &run);
  REQUIRE_OK(c, vt_comm_get_records(run.rig->comms[0], records, KEPT, &count));
  REQUIRE_EQ(c, KEPT, count);
  for (size_t i = 0; i < count; i++) {
    EXPECT_EQ(c, VT_COMM_OP_BARRIER, records[i].op);
    EXPECT_EQ(c, KEPT - i, records[i].sequence);
    EXPECT_EQ(c, VT_COMM_STATE_FINISHED, records[i].state);
    EXPECT_EQ(c, VT_OK, records[i].status);
  }
}

// Waits until the newest record of `rank` is of this operation, in this state.
static void await_state(vt_case *c, comm_rig *rig, int32_t rank, vt_comm_op op, vt_comm_state state) {
  vt_comm_record record = {0};
  uint64_t begin = vt_test_now_ns();
  size_t count = 0;
  do {
    EXPECT_OK(c, vt_comm_get_records(rig->comms[rank], &record, 1, &count));
    vt_test_sleep_ns(1000000);
  } while ((count == 0 || record.op != op || record.state != state) && vt_test_now_ns() - begin < UINT64_C(10000000000));
  EXPECT_EQ(c, 1, count);
  EXPECT_EQ(c, state, record.state);
  EXPECT_EQ(c, op, record.op);
}

static void states_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t value = 4;
  if (rank == 0) {
    EXPECT_OK(c, rig_finish(rig, 0, vt_comm_send(rig->comms[0], rig->queues[0], &value, 1, VT_DTYPE_I32, 1, NULL)));
    EXPECT_STATUS(c, VT_ERR_ABORTED, rig_finish(rig, 0, vt_comm_barrier(rig->comms[0], rig->queues[0], NULL)));
    return;
  }
  await_state(c, rig, 0, VT_COMM_OP_SEND, VT_COMM_STATE_WAITING);
  EXPECT_OK(c, rig_finish(rig, 1, vt_comm_recv(rig->comms[1], rig->queues[1], &value, 1, VT_DTYPE_I32, 0, NULL)));
  await_state(c, rig, 1, VT_COMM_OP_RECV, VT_COMM_STATE_FINISHED);
  await_state(c, rig, 0, VT_COMM_OP_BARRIER, VT_COMM_STATE_WAITING);
  char text[2048];
  size_t length = vt_comm_group_describe(rig->group, text, sizeof text);
  EXPECT_EQ(c, strlen(text), length);
  EXPECT_TRUE(c, strstr(text, "rank 0") != NULL && strstr(text, "rank 1") != NULL && strstr(text, "barrier") != NULL);
  char small[8] = "1234567";
  EXPECT_EQ(c, length, vt_comm_group_describe(rig->group, small, 4));
  EXPECT_EQ(c, 0, small[3]);
  EXPECT_EQ(c, '5', small[4]);
  EXPECT_OK(c, vt_comm_abort(rig->comms[1], "done"));
  await_state(c, rig, 0, VT_COMM_OP_BARRIER, VT_COMM_STATE_FAILED);
}

static void states_can_be_watched_from_outside(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, states_rank, rig);
  vt_comm_record records[4];
  size_t count = 0;
  EXPECT_OK(c, vt_comm_get_records(rig->comms[0], records, 4, &count));
  REQUIRE_EQ(c, 2, count);
  EXPECT_EQ(c, VT_ERR_ABORTED, records[0].status);
  EXPECT_EQ(c, VT_COMM_OP_SEND, records[1].op);
  EXPECT_EQ(c, 1, records[1].peer);
  EXPECT_EQ(c, 1, records[1].count);
}

static void a_group_is_described_with_a_line_per_rank(vt_case *c) {
  comm_rig *rig = rig_begin(c, 5, NULL);
  rig_expect_usable(rig);
  char text[4096];
  vt_comm_group_describe(rig->group, text, sizeof text);
  int32_t lines = 0;
  for (const char *at = text; *at != 0; at++) {
    lines += *at == '\n' || at[1] == 0;
  }
  EXPECT_TRUE(c, lines >= 5);
  for (int32_t r = 0; r < 5; r++) {
    char name[32];
    snprintf(name, sizeof name, "rank %d", r);
    EXPECT_TRUE(c, strstr(text, name) != NULL);
  }
}

// Counts begins and ends of host calls on the queues of the rig.
typedef struct trace_count {
  uint64_t queue_id;
  _Atomic int32_t begins;
  _Atomic int32_t ends;
} trace_count;

static trace_count traced[2];

static void count_trace(void *user, const vt_trace_event *event) {
  (void)user;
  for (int32_t i = 0; i < 2; i++) {
    if (event->kind == VT_TRACE_HOST_CALL && event->queue_id == traced[i].queue_id) {
      // relaxed: read after the queues were waited for.
      atomic_fetch_add_explicit(event->is_end ? &traced[i].ends : &traced[i].begins, 1, memory_order_relaxed);
    }
  }
}

static void the_trace_hook_sees_begin_and_end_of_a_collective(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_expect_usable(rig);
  for (int32_t i = 0; i < 2; i++) {
    traced[i].queue_id = vt_queue_get_id(rig->queues[i]);
    atomic_store_explicit(&traced[i].begins, 0, memory_order_relaxed);
    atomic_store_explicit(&traced[i].ends, 0, memory_order_relaxed);
  }
  REQUIRE_OK(c, vt_trace_set(count_trace, NULL));
  int32_t value[2] = {1, 2};
  EXPECT_OK(c, vt_comm_batch_begin());
  for (int32_t i = 0; i < 2; i++) {
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[i], rig->queues[i], &value[i], &value[i], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  }
  EXPECT_OK(c, vt_comm_batch_end());
  // An end is reported behind the operation: later work on the queue orders it.
  for (int32_t i = 0; i < 2; i++) {
    EXPECT_OK(c, vt_memset(rig->queues[i], &value[i], 0, sizeof value[i]));
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[i]));
  }
  EXPECT_OK(c, vt_trace_set(NULL, NULL));
  for (int32_t i = 0; i < 2; i++) {
    EXPECT_EQ(c, 1, atomic_load_explicit(&traced[i].begins, memory_order_relaxed));
    EXPECT_EQ(c, 1, atomic_load_explicit(&traced[i].ends, memory_order_relaxed));
  }
}

static void every_collective_takes_a_ticket_of_its_queue(vt_case *c) {
  comm_rig *rig = rig_begin(c, 1, NULL);
  uint64_t before = 0;
  uint64_t after = 0;
  for (int32_t batch = 0; batch < 2; batch++) {
    EXPECT_OK(c, vt_queue_get_ticket(rig->queues[0], &before));
    EXPECT_OK(c, batch ? vt_comm_batch_begin() : VT_OK);
    EXPECT_OK(c, vt_comm_barrier(rig->comms[0], rig->queues[0], NULL));
    EXPECT_OK(c, batch ? vt_comm_batch_end() : VT_OK);
    EXPECT_OK(c, vt_queue_get_ticket(rig->queues[0], &after));
    EXPECT_TRUE(c, after > before);
    EXPECT_OK(c, vt_queue_wait_ticket(rig->queues[0], after, VT_WAIT_FOREVER));
  }
}

static void busy_round(vt_case *c, comm_rig *rig, int32_t rank, size_t count) {
  static float large[2][8192];
  static float all[2][16384];
  vt_comm *comm = rig->comms[rank];
  vt_queue *queue = rig->queues[rank];
  EXPECT_OK(c, vt_comm_all_reduce(comm, queue, large[rank], large[rank], count, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_gather(comm, queue, large[rank], all[rank], count, VT_DTYPE_F32, NULL));
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_send(comm, queue, large[rank], count, VT_DTYPE_F32, 1 - rank, NULL));
  EXPECT_OK(c, vt_comm_recv(comm, queue, all[rank], count, VT_DTYPE_F32, 1 - rank, NULL));
  EXPECT_OK(c, vt_comm_batch_end());
  EXPECT_OK(c, vt_comm_barrier(comm, queue, NULL));
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

// What is allocated: handles, device memory, and what any thread has asked the host allocator for.
typedef struct usage {
  int64_t calls;
  size_t handles;
  uint64_t blocks;
} usage;

static usage usage_read(vt_case *c) {
  vt_memory_stats stats = VT_MEMORY_STATS_INIT;
  EXPECT_OK(c, vt_memory_get_stats(vt_test_device(c), VT_MEMORY_DEVICE, &stats));
  usage now = {.calls = vt_test_alloc_calls(), .blocks = stats.live_count};
  for (int32_t kind = 0; kind < VT_HANDLE_KIND_COUNT; kind++) {
    now.handles += vt_handle_get_live_count(kind);
  }
  return now;
}

static void busy_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  usage before = {0};
  for (int32_t i = 0; i < 220; i++) {
    if (i == 20) {  // warm: the peer is at work, but in no other place than ours
      before = usage_read(c);
    }
    busy_round(c, rig, rank, i % 2 == 0 ? 8 : 8192);
  }
  usage after = usage_read(c);
  EXPECT_OK(c, rig_finish(rig, rank, vt_comm_barrier(rig->comms[rank], rig->queues[rank], NULL)));
  EXPECT_EQ(c, before.calls, after.calls);
  EXPECT_EQ(c, before.handles, after.handles);
  EXPECT_EQ(c, before.blocks, after.blocks);
}

static void a_thousand_calls_on_a_warm_group_allocate_nothing(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, busy_rank, rig);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_inspect[] = {
    ROW(the_flight_recorder_keeps_the_last_256_operations_newest_first, 0),
    ROW(an_operation_that_was_overtaken_changes_no_other_record, 0),
    ROW(states_can_be_watched_from_outside, 0),
    ROW(a_group_is_described_with_a_line_per_rank, 0),
    ROW(the_trace_hook_sees_begin_and_end_of_a_collective, 0),
    ROW(every_collective_takes_a_ticket_of_its_queue, 0),
    ROW(a_thousand_calls_on_a_warm_group_allocate_nothing, 0),
    VT_TEST_END,
};
