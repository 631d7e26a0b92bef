// comm_refusal.c: calls that are refused, cancelled or dropped tell the peers and wait for nobody.
#include "comm_rig.h"

#define REFUSALS 20

// A group whose deadline is so long that a wait for a peer shows.
static comm_rig *patient_rig(vt_case *c, int32_t world) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = UINT64_C(20000000000);
  return rig_begin(c, world, &options);
}

static void expect_quick(vt_case *c, uint64_t begin_ns) {
  EXPECT_TRUE(c, vt_test_now_ns() - begin_ns < UINT64_C(10000000000));
}

static vt_status all_reduce(comm_rig *rig, int32_t rank, float *data, vt_dtype dtype) {
  return vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], data, data, 4, dtype, VT_REDUCE_SUM, NULL);
}

// The peers' side of calls that rank 0 refused.
static void meet_refusals(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  float data[4] = {1, 2, 3, 4};
  for (int32_t i = 0; i < REFUSALS && rank != 0; i++) {
    EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 failed", rig_finish(rig, rank, all_reduce(rig, rank, data, VT_DTYPE_F32)));
    rig_renew_queue(rig, rank);
  }
  EXPECT_TRUE(c, data[0] == 1 && data[3] == 4);
}

static void many_refusals_in_a_row_wait_for_nobody(vt_case *c) {
  comm_rig *rig = patient_rig(c, 3);
  float data[4] = {0};
  uint64_t begin = vt_test_now_ns();
  for (int32_t i = 0; i < REFUSALS; i++) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "dtype", all_reduce(rig, 0, data, -1));
  }
  expect_quick(c, begin);
  rig_run(rig, meet_refusals, rig);
  rig_expect_usable(rig);
  // A second run of refusals, after calls that met.
  for (int32_t i = 0; i < REFUSALS; i++) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-2", all_reduce(rig, 0, data, -2));
  }
  rig_run(rig, meet_refusals, rig);
  rig_expect_usable(rig);
}

static void meet_refused_messages(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  float data[4] = {5, 6, 7, 8};
  for (int32_t i = 0; i < REFUSALS && rank == 1; i++) {
    vt_status status = vt_comm_recv(rig->comms[1], rig->queues[1], data, 4, VT_DTYPE_F32, 0, NULL);
    EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 failed", rig_finish(rig, 1, status));
    rig_renew_queue(rig, 1);
  }
  float sent[4] = {1, 2, 3, 4};
  vt_status status = rank == 0 ? vt_comm_send(rig->comms[0], rig->queues[0], sent, 4, VT_DTYPE_F32, 1, NULL)
                               : vt_comm_recv(rig->comms[1], rig->queues[1], data, 4, VT_DTYPE_F32, 0, NULL);
  EXPECT_OK(c, rig_finish(rig, rank, status));
  EXPECT_TRUE(c, rank == 0 || data[3] == 4);
}

static void many_refused_messages_wait_for_nobody(vt_case *c) {
  comm_rig *rig = patient_rig(c, 2);
  float data[4] = {0};
  uint64_t begin = vt_test_now_ns();
  for (int32_t i = 0; i < REFUSALS; i++) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "dtype",
                 vt_comm_send(rig->comms[0], rig->queues[0], data, 4, VT_DTYPE_COUNT, 1, NULL));
  }
  expect_quick(c, begin);
  rig_run(rig, meet_refused_messages, rig);
  rig_expect_usable(rig);
}

static void fail_queue(vt_case *c, vt_queue *queue) {
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, "the reason", NULL));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(queue));
}

static void calls_on_a_failed_queue_wait_for_nobody(vt_case *c) {
  comm_rig *rig = patient_rig(c, 2);
  float data[4] = {0};
  fail_queue(c, rig->queues[0]);
  uint64_t begin = vt_test_now_ns();
  for (int32_t i = 0; i < REFUSALS; i++) {
    EXPECT_FAILS(c, VT_ERR_INTERNAL, "the reason", all_reduce(rig, 0, data, VT_DTYPE_F32));
  }
  expect_quick(c, begin);
  rig_run(rig, meet_refusals, rig);
  rig_expect_usable(rig);
}

static void a_batch_with_a_failed_queue_runs_nothing(vt_case *c) {
  comm_rig *rig = patient_rig(c, 2);
  float data[2][4] = {{1, 1, 1, 1}, {2, 2, 2, 2}};
  fail_queue(c, rig->queues[0]);
  uint64_t begin = vt_test_now_ns();
  EXPECT_OK(c, vt_comm_batch_begin());
  for (int32_t i = 0; i < 4; i++) {
    EXPECT_OK(c, all_reduce(rig, i % 2, data[i % 2], VT_DTYPE_F32));
  }
  EXPECT_FAILS(c, VT_ERR_INTERNAL, "the reason", vt_comm_batch_end());
  expect_quick(c, begin);
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[1]));
  EXPECT_TRUE(c, data[0][0] == 1 && data[1][0] == 2);
  rig_expect_usable(rig);
}

static void abandoning_waits_for_nobody(vt_case *c) {
  comm_rig *rig = patient_rig(c, 3);
  float data[4] = {0};
  uint64_t begin = vt_test_now_ns();
  EXPECT_OK(c, vt_comm_batch_begin());
  for (int32_t i = 0; i < REFUSALS; i++) {
    EXPECT_OK(c, all_reduce(rig, 0, data, VT_DTYPE_F32));
  }
  EXPECT_OK(c, vt_comm_batch_abandon());
  expect_quick(c, begin);
  for (int32_t rank = 1; rank < 3; rank++) {
    for (int32_t i = 0; i < REFUSALS; i++) {
      EXPECT_OK(c, vt_comm_batch_begin());
      EXPECT_OK(c, all_reduce(rig, rank, data, VT_DTYPE_F32));
      EXPECT_OK(c, vt_comm_batch_abandon());
    }
  }
  for (int32_t rank = 0; rank < 3; rank++) {  // what is told on an old queue comes before what runs on a new one
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
  }
  rig_expect_usable(rig);
}

static void count_outcomes(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t good = 0;
  int32_t told = 0;
  float data[4] = {1, 2, 3, 4};
  for (int32_t i = 0; i < 4 && rank == 1; i++) {
    vt_status status = rig_finish(rig, 1, all_reduce(rig, 1, data, VT_DTYPE_F32));
    good += status == VT_OK;
    told += status == VT_ERR_MISMATCH;
    rig_renew_queue(rig, 1);
  }
  EXPECT_EQ(c, rank == 1 ? 2 : 0, good);
  EXPECT_EQ(c, rank == 1 ? 2 : 0, told);
}

// One graph, launched on a queue that has failed and on one that works: the cancelled launch and the other one take turns.
static void a_cancelled_launch_leaves_a_running_one_alone(vt_case *c) {
  comm_rig *rig = patient_rig(c, 2);
  vt_queue *good = rig->queues[0];
  vt_queue *bad = vt_test_queue(c);
  float data[4] = {1, 2, 3, 4};
  vt_graph *graph = NULL;
  vt_test_latch gate = VT_TEST_LATCH_INIT;
  REQUIRE_OK(c, vt_graph_begin_capture(good));
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, all_reduce(rig, 0, data, VT_DTYPE_F32));
  EXPECT_OK(c, all_reduce(rig, 0, data, VT_DTYPE_F32));
  EXPECT_OK(c, vt_comm_batch_end());
  REQUIRE_OK(c, vt_graph_end_capture(good, &graph));
  EXPECT_OK(c, vt_queue_host_func(bad, vt_test_host_wait, &gate, NULL));
  EXPECT_OK(c, vt_queue_host_func(bad, vt_test_host_fail, "the reason", NULL));
  EXPECT_OK(c, vt_graph_launch(graph, bad));
  EXPECT_OK(c, vt_graph_launch(graph, good));
  vt_test_sleep_ns(20000000);
  vt_test_latch_open(&gate);
  vt_graph_release(graph);
  rig_run(rig, count_outcomes, rig);
  EXPECT_OK(c, vt_queue_synchronize(good));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(bad));
  rig_expect_usable(rig);
}

static void a_queue_that_joins_a_capture_inside_a_batch_is_refused(vt_case *c) {
  comm_rig *rig = patient_rig(c, 2);
  vt_event *event = vt_test_event(c, 0);
  float data[4] = {1, 2, 3, 4};
  REQUIRE_OK(c, vt_graph_begin_capture(rig->queues[0]));
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, all_reduce(rig, 1, data, VT_DTYPE_F32));
  EXPECT_OK(c, vt_event_record(event, rig->queues[0]));
  EXPECT_OK(c, vt_queue_after_event(rig->queues[1], event));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "joined a capture", vt_comm_batch_end());
  EXPECT_OK(c, vt_graph_abort_capture(rig->queues[0]));
  rig_expect_usable(rig);
}

const vt_test_case vt_cases_comm_refusal[] = {
    {"many_refusals_in_a_row_wait_for_nobody", NEED_COMM, many_refusals_in_a_row_wait_for_nobody},
    {"many_refused_messages_wait_for_nobody", NEED_COMM, many_refused_messages_wait_for_nobody},
    {"calls_on_a_failed_queue_wait_for_nobody", NEED_COMM | NEED_WORKER, calls_on_a_failed_queue_wait_for_nobody},
    {"a_batch_with_a_failed_queue_runs_nothing", NEED_COMM | NEED_WORKER, a_batch_with_a_failed_queue_runs_nothing},
    {"abandoning_waits_for_nobody", NEED_COMM, abandoning_waits_for_nobody},
    {"a_cancelled_launch_leaves_a_running_one_alone", NEED_COMM | NEED_WORKER | NEED_GRAPH,
     a_cancelled_launch_leaves_a_running_one_alone},
    {"a_queue_that_joins_a_capture_inside_a_batch_is_refused", NEED_COMM | NEED_GRAPH | REPORTS,
     a_queue_that_joins_a_capture_inside_a_batch_is_refused},
    VT_TEST_END,
};
