// comm_split.c: dividing groups, ending them politely, and what a communicator tells of itself.
#include "comm_rig.h"

// Sums the numbers of the ranks of `comm`, on a synchronous queue of this thread's own.
static int32_t sum_of_ranks(vt_case *c, vt_comm *comm, int32_t number) {
  vt_queue *queue = NULL;
  int32_t sum = 0;
  EXPECT_OK(c, vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, NULL, &queue));
  EXPECT_OK(c, vt_comm_all_reduce(comm, queue, &number, &sum, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  vt_queue_release(queue);
  return sum;
}

// Even and odd ranks, in reverse order; the even ones once more, without the first of them.
static void split_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  vt_comm *half = NULL;
  vt_comm *quarter = NULL;
  EXPECT_OK(c, vt_comm_split(rig->comms[rank], rank % 2, -rank, NULL, &half));
  int32_t world = (rig->world + 1 - rank % 2) / 2;
  EXPECT_EQ(c, world, vt_comm_get_world(half));
  EXPECT_EQ(c, world - 1 - rank / 2, vt_comm_get_rank(half));
  int32_t sum = 0;
  for (int32_t r = rank % 2; r < rig->world; r += 2) {
    sum += r + 1;
  }
  EXPECT_EQ(c, sum, sum_of_ranks(c, half, rank + 1));
  if (rank % 2 == 0) {
    EXPECT_OK(c, vt_comm_split(half, rank == 0 ? VT_COMM_SPLIT_NONE : 7, 0, NULL, &quarter));
    EXPECT_EQ(c, rank == 0, quarter == NULL);
    EXPECT_EQ(c, rank == 0 ? 0 : sum - 1, rank == 0 ? 0 : sum_of_ranks(c, quarter, rank + 1));
  }
  EXPECT_EQ(c, sum, sum_of_ranks(c, half, rank + 1));
  vt_comm_release(quarter);
  vt_comm_release(half);
  EXPECT_EQ(c, rig->world * (rig->world + 1) / 2, sum_of_ranks(c, rig->comms[rank], rank + 1));
}

static void groups_are_divided_and_divided_again(vt_case *c) {
  static const int32_t worlds[] = {1, 2, 5, 8};
  for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
    comm_rig *rig = rig_begin(c, worlds[i], NULL);
    for (int32_t k = 0; k < 3; k++) {
      rig_run(rig, split_rank, rig);
    }
  }
}

static void refused_split_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  vt_comm *part = NULL;
  if (rank == 1) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "color -2 is negative", vt_comm_split(rig->comms[1], -2, 0, NULL, &part));
  } else {
    EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 1 failed: color -2", vt_comm_split(rig->comms[rank], 0, 0, NULL, &part));
  }
  if (rank == 1) {
    EXPECT_FAILS(c, VT_ERR_MISMATCH, "finalize", vt_comm_finalize(rig->comms[1], NULL));
  } else {
    EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 called split, rank 1 called finalize",
                 vt_comm_split(rig->comms[rank], 0, 0, NULL, &part));
  }
  EXPECT_TRUE(c, part == NULL);
}

static void a_refused_split_is_told_to_all(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  rig_run(rig, refused_split_rank, rig);
  rig_expect_usable(rig);
  vt_comm *part = NULL;
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "rank 0 is inside a batch", vt_comm_split(rig->comms[0], 0, 0, NULL, &part));
  EXPECT_OK(c, vt_comm_batch_end());
}

static void finalize_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  EXPECT_OK(c, vt_comm_finalize(rig->comms[rank], NULL));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "finalized", vt_comm_barrier(rig->comms[rank], rig->queues[rank], NULL));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "finalized", vt_comm_finalize(rig->comms[rank], NULL));
}

static void a_finalized_group_refuses_calls(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  rig_run(rig, finalize_rank, rig);
  // A rank that waits alone has a deadline.
  comm_rig *other = rig_begin(c, 2, NULL);
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.timeout_ns = 20000000;
  EXPECT_FAILS(c, VT_ERR_TIMEOUT, "rank 1 never came", vt_comm_finalize(other->comms[0], &opts));
}

static void a_communicator_tells_how_it_is(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  uint32_t guarantees = 0;
  EXPECT_OK(c, vt_comm_get_guarantees(rig->comms[0], &guarantees));
  EXPECT_EQ(c, 63, guarantees);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_guarantees is NULL", vt_comm_get_guarantees(rig->comms[0], NULL));
  vt_comm_health health = {.struct_size = sizeof health};
  EXPECT_OK(c, vt_comm_get_health(rig->comms[0], &health));
  EXPECT_EQ(c, 0, health.last_sequence);
  EXPECT_EQ(c, 3, health.world);
  EXPECT_EQ(c, 3, health.alive);
  rig_expect_usable(rig);
  EXPECT_OK(c, vt_comm_abort(rig->comms[1], NULL));
  EXPECT_OK(c, vt_comm_get_health(rig->comms[0], &health));
  EXPECT_EQ(c, 1, health.last_sequence);
  EXPECT_EQ(c, VT_COMM_OP_ALL_REDUCE, health.last_op);
  EXPECT_EQ(c, VT_COMM_STATE_FINISHED, health.last_state);
  EXPECT_EQ(c, VT_ERR_ABORTED, health.status);
  vt_comm_health none = {0};
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 0", vt_comm_get_health(rig->comms[0], &none));
}

static void ranks_that_have_gone_are_not_alive(vt_case *c) {
  vt_comm_group *group = NULL;
  vt_comm *comm = NULL;
  EXPECT_OK(c, vt_comm_group_create(4, NULL, &group));
  EXPECT_OK(c, vt_comm_group_get_comm(group, 2, &comm));
  EXPECT_OK(c, vt_comm_retain(comm));
  vt_comm_health health = {.struct_size = sizeof health};
  EXPECT_OK(c, vt_comm_get_health(comm, &health));
  EXPECT_EQ(c, 4, health.alive);
  vt_comm_group_release(group);
  EXPECT_OK(c, vt_comm_get_health(comm, &health));
  EXPECT_EQ(c, 1, health.alive);
  EXPECT_EQ(c, VT_OK, health.status);
  vt_comm_release(comm);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_split[] = {
    ROW(groups_are_divided_and_divided_again, 0), ROW(a_refused_split_is_told_to_all, 0),
    ROW(a_finalized_group_refuses_calls, 0),      ROW(a_communicator_tells_how_it_is, 0),
    ROW(ranks_that_have_gone_are_not_alive, 0),   VT_TEST_END,
};
