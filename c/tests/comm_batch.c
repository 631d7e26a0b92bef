// comm_batch.c: batches: one thread can drive all ranks, and a batch that fails tells everybody.

#include "comm_rig.h"

#define WORLD 5

// What every rank of the big batch works on.
typedef struct batch_data {
  int32_t sum[WORLD][3000];
  int32_t token[WORLD];  // sent to the right
  int32_t got[WORLD];
  int32_t all[WORLD][WORLD];
} batch_data;

static void submit_all(vt_case *c, comm_rig *one, comm_rig *two, batch_data *data) {
  for (int32_t r = 0; r < WORLD; r++) {
    int32_t right = (r + 1) % WORLD;
    int32_t left = (r + WORLD - 1) % WORLD;
    EXPECT_OK(
        c, vt_comm_all_reduce(one->comms[r], one->queues[r], data->sum[r], data->sum[r], 3000, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
    EXPECT_OK(c, vt_comm_recv(one->comms[r], one->queues[r], &data->got[r], 1, VT_DTYPE_I32, left, NULL));
    EXPECT_OK(c, vt_comm_send(one->comms[r], one->queues[r], &data->token[r], 1, VT_DTYPE_I32, right, NULL));
    EXPECT_OK(c, vt_comm_barrier(two->comms[r], two->queues[r], NULL));
    EXPECT_OK(c, vt_comm_all_gather(two->comms[r], two->queues[r], &data->token[r], data->all[r], 1, VT_DTYPE_I32, NULL));
    EXPECT_OK(c, vt_comm_barrier(one->comms[r], one->queues[r], NULL));
  }
}

static void prepare(batch_data *data) {
  memset(data, 0, sizeof *data);
  for (int32_t r = 0; r < WORLD; r++) {
    data->token[r] = 100 + r;
    for (int32_t i = 0; i < 3000; i++) {
      data->sum[r][i] = r * 1000 + i;
    }
  }
}

static void expect_results(vt_case *c, const batch_data *data) {
  for (int32_t r = 0; r < WORLD; r++) {
    int32_t wrong = 0;
    for (int32_t i = 0; i < 3000; i++) {
      wrong += data->sum[r][i] != 10000 + WORLD * i;
    }
    EXPECT_EQ(c, 0, wrong);
    EXPECT_EQ(c, 100 + (r + WORLD - 1) % WORLD, data->got[r]);
    EXPECT_BYTES(c, data->token, data->all[r], sizeof data->token);
  }
}

static void synchronize_all(vt_case *c, comm_rig *rig) {
  for (int32_t r = 0; r < rig->world; r++) {
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[r]));
  }
}

static void one_thread_drives_all_ranks_of_two_groups_in_a_batch(vt_case *c) {
  static batch_data data;
  comm_rig *one = rig_begin(c, WORLD, NULL);
  comm_rig *two = rig_begin(c, WORLD, NULL);
  int32_t before = vt_test_count_threads(c);
  for (int32_t round = 0; round < 5; round++) {
    prepare(&data);
    EXPECT_OK(c, vt_comm_batch_begin());
    submit_all(c, one, two, &data);
    EXPECT_EQ(c, 0, data.got[0]);  // nothing has run yet
    EXPECT_EQ(c, 0, data.all[1][0]);
    EXPECT_OK(c, vt_comm_batch_end());
    synchronize_all(c, one);
    synchronize_all(c, two);
    expect_results(c, &data);
  }
  if (vt_test_has(c, NEED_SYNC)) {
    // None was started. A worker of an earlier case may have ended meanwhile.
    EXPECT_TRUE(c, vt_test_count_threads(c) <= before);
  }
}

static void one_queue_is_enough_for_all_ranks_of_a_batch(vt_case *c) {
  static batch_data data;
  comm_rig *one = rig_begin(c, WORLD, NULL);
  comm_rig *two = rig_begin(c, WORLD, NULL);
  vt_queue *queue = vt_test_queue(c);
  for (int32_t r = 0; r < WORLD; r++) {
    EXPECT_OK(c, vt_queue_retain(queue));
    EXPECT_OK(c, vt_queue_retain(queue));
    vt_queue_release(one->queues[r]);
    vt_queue_release(two->queues[r]);
    one->queues[r] = queue;
    two->queues[r] = queue;
  }
  for (int32_t round = 0; round < 3; round++) {
    prepare(&data);
    EXPECT_OK(c, vt_comm_batch_begin());
    submit_all(c, one, two, &data);
    EXPECT_OK(c, vt_comm_batch_end());
    EXPECT_OK(c, vt_queue_synchronize(queue));
    expect_results(c, &data);
  }
}

static void only_the_outermost_end_runs_a_nested_batch(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  int32_t in[2] = {3, 4};
  int32_t out[2] = {0, 0};
  EXPECT_OK(c, vt_comm_batch_begin());
  for (int32_t r = 0; r < 2; r++) {
    EXPECT_OK(c, vt_comm_batch_begin());
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[r], rig->queues[r], &in[r], &out[r], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
    EXPECT_OK(c, vt_comm_batch_end());
    EXPECT_EQ(c, 0, out[r]);
  }
  EXPECT_OK(c, vt_comm_batch_end());
  synchronize_all(c, rig);
  EXPECT_EQ(c, 7, out[0]);
  EXPECT_EQ(c, 7, out[1]);
}

static void a_batch_of_nothing_is_fine_and_an_end_without_a_begin_is_not(vt_case *c) {
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "batch", vt_comm_batch_end());
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "batch", vt_comm_batch_abandon());
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_batch_end());
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_batch_abandon());  // ends both
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_comm_batch_end());
}

// Rank 0 gives up a batch of two collectives; its peers are in them.
typedef struct given_up_run {
  comm_rig *rig;
  int32_t refused;  // by a bad call in the batch, else by abandoning it
} given_up_run;

static void give_up_batch(vt_case *c, given_up_run *run, int32_t *in, int32_t *out) {
  comm_rig *rig = run->rig;
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_all_reduce(rig->comms[0], rig->queues[0], in, out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  if (run->refused) {
    EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT,
                  vt_comm_all_reduce(rig->comms[0], rig->queues[0], in, out, 1, VT_DTYPE_Q4_0, VT_REDUCE_SUM, NULL));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "q4_0", vt_comm_batch_end());
  } else {
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[0], rig->queues[0], in, out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
    EXPECT_OK(c, vt_comm_batch_abandon());
  }
}

static void given_up_rank(vt_case *c, int32_t rank, void *arg) {
  given_up_run *run = arg;
  comm_rig *rig = run->rig;
  int32_t in = rank;
  int32_t out = -5;
  if (rank == 0) {
    give_up_batch(c, run, &in, &out);
  } else {
    for (int32_t call = 0; call < 2; call++) {
      uint64_t begin = vt_test_now_ns();
      vt_status status = vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL);
      if (EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, rank, status))) {
        EXPECT_MESSAGE(c, run->refused ? "rank 0 failed" : "rank 0 abandoned a batch");
      }
      EXPECT_TRUE(c, vt_test_now_ns() - begin < UINT64_C(10000000000));
      rig_renew_queue(rig, rank);
    }
  }
  EXPECT_EQ(c, -5, out);
}

static void an_abandoned_batch_tells_the_peers_of_every_call(vt_case *c) {
  given_up_run run = {.rig = rig_begin(c, 3, NULL)};
  rig_run(run.rig, given_up_rank, &run);
  rig_expect_usable(run.rig);
}

static void a_batch_with_a_refused_call_runs_nothing_and_tells_the_peers(vt_case *c) {
  given_up_run run = {.rig = rig_begin(c, 3, NULL), .refused = 1};
  rig_run(run.rig, given_up_rank, &run);
  rig_expect_usable(run.rig);
}

static void given_up_message_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t value = 9;
  if (rank == 0) {
    EXPECT_OK(c, vt_comm_batch_begin());
    EXPECT_OK(c, vt_comm_send(rig->comms[0], rig->queues[0], &value, 1, VT_DTYPE_I32, 1, NULL));
    EXPECT_OK(c, vt_comm_batch_abandon());
  } else {
    vt_status status = vt_comm_recv(rig->comms[1], rig->queues[1], &value, 1, VT_DTYPE_I32, 0, NULL);
    if (EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, 1, status))) {
      EXPECT_MESSAGE(c, "rank 0 abandoned a batch");
    }
    EXPECT_EQ(c, 9, value);
  }
}

static void an_abandoned_message_tells_its_peer(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, given_up_message_rank, rig);
  rig_expect_usable(rig);
}

static void partial_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t in = rank + 1;
  int32_t out = 0;
  int32_t bad = 0;
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], &bad, &bad, 1, VT_DTYPE_I32, rank, NULL));
  EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, rank, vt_comm_batch_end()));
  EXPECT_EQ(c, 0, bad);
}

static void a_mismatch_inside_a_batch_is_the_answer_of_its_end(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, partial_rank, rig);
  rig_expect_usable(rig);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_batch[] = {
    ROW(one_thread_drives_all_ranks_of_two_groups_in_a_batch, 0),
    ROW(one_queue_is_enough_for_all_ranks_of_a_batch, 0),
    ROW(only_the_outermost_end_runs_a_nested_batch, 0),
    ROW(a_batch_of_nothing_is_fine_and_an_end_without_a_begin_is_not, 0),
    ROW(an_abandoned_batch_tells_the_peers_of_every_call, 0),
    ROW(a_batch_with_a_refused_call_runs_nothing_and_tells_the_peers, 0),
    ROW(an_abandoned_message_tells_its_peer, 0),
    ROW(a_mismatch_inside_a_batch_is_the_answer_of_its_end, 0),
    VT_TEST_END,
};
