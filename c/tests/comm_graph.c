// comm_graph.c: collectives on asynchronous queues and inside captured graphs.
#include <stdio.h>

#include "comm_rig.h"

#define WORLD 3
#define MAX_COUNT 4000

// One rank's arrays: baked into its graphs, with new contents before each replay.
typedef struct graph_data {
  int32_t send[MAX_COUNT];
  int32_t sum[MAX_COUNT];
  int32_t all[WORLD * MAX_COUNT];
  int32_t got[MAX_COUNT];
} graph_data;

static graph_data data[WORLD];

// What a step does: an all_reduce, an all_gather of what it gave, and a ring shift in a batch.
static void submit_step(vt_case *c, comm_rig *rig, int32_t rank, size_t count) {
  vt_comm *comm = rig->comms[rank];
  vt_queue *queue = rig->queues[rank];
  graph_data *d = &data[rank];
  EXPECT_OK(c, vt_comm_all_reduce(comm, queue, d->send, d->sum, count, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_gather(comm, queue, d->send, d->all, count, VT_DTYPE_I32, NULL));
  EXPECT_OK(c, vt_comm_batch_begin());
  EXPECT_OK(c, vt_comm_send(comm, queue, d->sum, count, VT_DTYPE_I32, (rank + 1) % WORLD, NULL));
  EXPECT_OK(c, vt_comm_recv(comm, queue, d->got, count, VT_DTYPE_I32, (rank + WORLD - 1) % WORLD, NULL));
  EXPECT_OK(c, vt_comm_batch_end());
  EXPECT_OK(c, vt_comm_barrier(comm, queue, NULL));
}

static vt_graph *capture_step(vt_case *c, comm_rig *rig, int32_t rank, size_t count) {
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(rig->queues[rank]));
  submit_step(c, rig, rank, count);
  EXPECT_OK(c, vt_graph_end_capture(rig->queues[rank], &graph));
  return graph;
}

static void launch_step(vt_case *c, comm_rig *rig, int32_t rank, vt_graph *graph, int32_t salt, size_t count) {
  graph_data *d = &data[rank];
  memset(d->sum, 0, sizeof d->sum);
  memset(d->all, 0, sizeof d->all);
  memset(d->got, 0, sizeof d->got);
  for (int32_t i = 0; i < MAX_COUNT; i++) {
    d->send[i] = salt * 100000 + rank * 10000 + i;
  }
  EXPECT_OK(c, vt_graph_launch(graph, rig->queues[rank]));
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
  int32_t wrong = 0;
  for (int32_t i = 0; i < MAX_COUNT; i++) {
    int32_t sum = (size_t)i < count ? 3 * (salt * 100000 + i) + 30000 : 0;
    wrong += d->sum[i] != sum || d->got[i] != sum;
  }
  for (size_t i = 0; i < WORLD * count; i++) {
    wrong += d->all[i] != salt * 100000 + (int32_t)(i / count) * 10000 + (int32_t)(i % count);
  }
  EXPECT_EQ(c, 0, wrong);
}

static void replay_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  memset(&data[rank], 0, sizeof data[rank]);
  vt_graph *graph = capture_step(c, rig, rank, 1000);
  EXPECT_FILLED(c, 0, &data[rank], sizeof data[rank]);  // a capture runs nothing
  for (int32_t replay = 0; replay < 5; replay++) {
    launch_step(c, rig, rank, graph, replay + 1, 1000);
  }
  vt_graph_release(graph);
}

static void captured_collectives_see_new_inputs_at_each_replay(vt_case *c) {
  comm_rig *rig = rig_begin(c, WORLD, NULL);
  rig_run(rig, replay_rank, rig);
}

static void several_graphs_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  static const size_t counts[] = {1, 16, 256, 4000};
  static const int32_t order[] = {3, 0, 0, 2, 1, 3, 1, 2, 0, 3};
  vt_graph *graphs[4];
  for (size_t i = 0; i < 4; i++) {
    graphs[i] = capture_step(c, rig, rank, counts[i]);
  }
  for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
    launch_step(c, rig, rank, graphs[order[i]], (int32_t)i, counts[order[i]]);
    if (i % 4 == 1) {  // an eager step in between
      submit_step(c, rig, rank, 64);
      EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
    }
  }
  for (size_t i = 0; i < 4; i++) {
    vt_graph_release(graphs[i]);
  }
}

static void graphs_of_one_group_may_be_replayed_in_any_common_order(vt_case *c) {
  comm_rig *rig = rig_begin(c, WORLD, NULL);
  rig_run(rig, several_graphs_rank, rig);
}

static void one_thread_graph_batch(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  int32_t in[2] = {0, 0};
  int32_t out[2] = {0, 0};
  vt_graph *graph = NULL;
  REQUIRE_OK(c, vt_graph_begin_capture(rig->queues[0]));
  EXPECT_OK(c, vt_comm_batch_begin());
  for (int32_t r = 0; r < 2; r++) {
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[r], rig->queues[0], &in[r], &out[r], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  }
  EXPECT_OK(c, vt_comm_batch_end());
  REQUIRE_OK(c, vt_graph_end_capture(rig->queues[0], &graph));
  for (int32_t replay = 1; replay <= 5; replay++) {
    in[0] = replay;
    in[1] = 10 * replay;
    EXPECT_OK(c, vt_graph_launch(graph, rig->queues[0]));
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[0]));
    EXPECT_EQ(c, 11 * replay, out[0]);
    EXPECT_EQ(c, 11 * replay, out[1]);
  }
  vt_graph_release(graph);
}

// An ordinary copy works on the queue.
static void expect_copy_works(vt_case *c, vt_queue *queue) {
  int32_t from = 77;
  int32_t to = 0;
  EXPECT_OK(c, vt_copy(queue, &to, &from, sizeof to));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 77, to);
}

static void uncaptured_peer_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t in = 1;
  int32_t out = 0;
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.timeout_ns = UINT64_C(200000000);
  if (rank == 0) {
    EXPECT_OK(c, vt_graph_begin_capture(rig->queues[0]));
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[0], rig->queues[0], &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
    vt_test_sleep_ns(UINT64_C(400000000));
    EXPECT_OK(c, vt_graph_abort_capture(rig->queues[0]));
    expect_copy_works(c, rig->queues[0]);
  } else {
    vt_status status = vt_comm_all_reduce(rig->comms[1], rig->queues[1], &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, &opts);
    EXPECT_STATUS(c, VT_ERR_TIMEOUT, rig_finish(rig, 1, status));
    EXPECT_MESSAGE(c, "rank 0");
  }
}

static void a_peer_of_a_rank_that_only_captures_gets_a_time_out(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, uncaptured_peer_rank, rig);
}

static void a_deadline_is_baked_into_the_graph(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = UINT64_C(40000000000);
  comm_rig *rig = rig_begin(c, 2, &options);
  int32_t in = 1;
  int32_t out = 0;
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.timeout_ns = UINT64_C(100000000);
  vt_graph *graph = NULL;
  REQUIRE_OK(c, vt_graph_begin_capture(rig->queues[0]));
  EXPECT_OK(c, vt_comm_all_reduce(rig->comms[0], rig->queues[0], &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, &opts));
  opts.timeout_ns = UINT64_C(30000000000);  // was read when the call was made
  REQUIRE_OK(c, vt_graph_end_capture(rig->queues[0], &graph));
  uint64_t begin = vt_test_now_ns();
  EXPECT_STATUS(c, VT_ERR_TIMEOUT, rig_finish(rig, 0, vt_graph_launch(graph, rig->queues[0])));
  EXPECT_MESSAGE(c, "rank 1");
  uint64_t took = vt_test_now_ns() - begin;
  EXPECT_TRUE(c, took >= UINT64_C(100000000) && took < UINT64_C(10000000000));
  vt_graph_release(graph);
}

static void a_call_refused_in_a_capture_fails_the_capture_and_tells_nobody(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  int32_t in = 1;
  int32_t out = 0;
  vt_graph *graph = NULL;
  for (int32_t end = 0; end < 2; end++) {
    REQUIRE_OK(c, vt_graph_begin_capture(rig->queues[0]));
    EXPECT_OK(c, vt_comm_all_reduce(rig->comms[0], rig->queues[0], &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
    EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT,
                  vt_comm_all_reduce(rig->comms[0], rig->queues[0], &in, &out, 1, VT_DTYPE_Q8_K, VT_REDUCE_SUM, NULL));
    if (end) {
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "q8_K", vt_graph_end_capture(rig->queues[0], &graph));
    } else {
      EXPECT_OK(c, vt_graph_abort_capture(rig->queues[0]));
    }
    EXPECT_TRUE(c, graph == NULL);
    expect_copy_works(c, rig->queues[0]);
    EXPECT_OK(c, vt_comm_query(rig->comms[1]));
  }
  rig_expect_usable(rig);  // no sequence number was taken: the next calls meet
}

static void submitting_a_collective_does_not_wait_for_the_peers(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  int32_t in[2] = {5, 6};
  int32_t out[2] = {0, 0};
  // Both ranks from one thread, without a batch: rank 0's call must come back while rank 1 has not come.
  for (int32_t round = 0; round < 50; round++) {
    for (int32_t r = 0; r < 2; r++) {
      out[r] = 0;
      EXPECT_OK(c, vt_comm_all_reduce(rig->comms[r], rig->queues[r], &in[r], &out[r], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
      if (r == 0) {
        EXPECT_STATUS(c, VT_NOT_READY, vt_queue_query(rig->queues[0]));
      }
    }
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[0]));
    EXPECT_OK(c, vt_queue_synchronize(rig->queues[1]));
    EXPECT_EQ(c, 11, out[0]);
    EXPECT_EQ(c, 11, out[1]);
  }
}

// Rank 0's queue has failed before its collective, either known already when it calls or while the call is queued.
typedef struct failed_queue_run {
  comm_rig *rig;
  int32_t known;
} failed_queue_run;

static void failed_queue_rank(vt_case *c, int32_t rank, void *arg) {
  failed_queue_run *run = arg;
  comm_rig *rig = run->rig;
  int32_t in = 1;
  int32_t out = -1;
  vt_test_latch door = VT_TEST_LATCH_INIT;
  static char reason[] = "the oven is cold";
  vt_queue *queue = rig->queues[rank];
  if (rank == 0) {
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &door, NULL));
    EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_fail, reason, NULL));
    if (run->known) {
      vt_test_latch_open(&door);
      EXPECT_FAILS(c, VT_ERR_INTERNAL, reason, vt_queue_synchronize(queue));
    }
    vt_status status = vt_comm_all_reduce(rig->comms[0], queue, &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL);
    EXPECT_STATUS(c, run->known ? VT_ERR_INTERNAL : VT_OK, status);
    vt_test_latch_open(&door);
    EXPECT_FAILS(c, VT_ERR_INTERNAL, reason, vt_queue_synchronize(queue));
  } else {
    uint64_t begin = vt_test_now_ns();
    vt_status status = vt_comm_all_reduce(rig->comms[rank], queue, &in, &out, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL);
    if (EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, rank, status))) {
      EXPECT_MESSAGE(c, "rank 0 failed");
    }
    EXPECT_TRUE(c, vt_test_now_ns() - begin < UINT64_C(10000000000));
  }
  EXPECT_EQ(c, -1, out);
}

static void peers_of_a_queue_that_failed_before_are_told(vt_case *c) {
  for (int32_t known = 0; known < 2; known++) {
    failed_queue_run run = {rig_begin(c, 2, NULL), known};
    rig_run(run.rig, failed_queue_rank, &run);
    rig_expect_usable(run.rig);
  }
}

// A group of our own: the case's references are given up while work is recorded or queued.
static void submit_pair(vt_case *c, comm_rig *rig, vt_comm *const *comms, int32_t *value) {
  for (int32_t r = 0; r < 2; r++) {
    EXPECT_OK(c, vt_comm_all_reduce(comms[r], rig->queues[r], &value[r], &value[r], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  }
}

static vt_comm_group *own_group(vt_case *c, vt_comm **comms) {
  vt_comm_group *group = NULL;
  EXPECT_OK(c, vt_comm_group_create(2, NULL, &group));
  vt_test_watch_group(c, group);
  EXPECT_OK(c, vt_comm_group_get_comm(group, 0, &comms[0]));
  EXPECT_OK(c, vt_comm_group_get_comm(group, 1, &comms[1]));
  return group;
}

static void a_group_may_be_released_while_its_work_is_queued(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  vt_comm *comms[2];
  vt_comm_group *group = own_group(c, comms);
  vt_test_latch door = VT_TEST_LATCH_INIT;
  int32_t value[2] = {20, 22};
  EXPECT_OK(c, vt_queue_host_func(rig->queues[0], vt_test_host_wait, &door, NULL));
  submit_pair(c, rig, comms, value);
  vt_comm_group_release(group);
  vt_test_sleep_ns(20000000);
  vt_test_latch_open(&door);
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[0]));
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[1]));
  EXPECT_EQ(c, 42, value[0]);
  EXPECT_EQ(c, 42, value[1]);
}

static void launch_rank(vt_case *c, int32_t rank, void *arg) {
  void **things = arg;
  comm_rig *rig = things[0];
  EXPECT_OK(c, rig_finish(rig, rank, vt_graph_launch(things[1 + rank], rig->queues[rank])));
}

static void a_graph_keeps_the_communicators_it_recorded(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  vt_comm *comms[2];
  vt_comm_group *group = own_group(c, comms);
  vt_graph *graphs[2] = {NULL, NULL};
  int32_t value[2] = {20, 22};
  EXPECT_OK(c, vt_graph_begin_capture(rig->queues[0]));
  EXPECT_OK(c, vt_graph_begin_capture(rig->queues[1]));
  submit_pair(c, rig, comms, value);
  for (int32_t r = 0; r < 2; r++) {
    REQUIRE_OK(c, vt_graph_end_capture(rig->queues[r], &graphs[r]));
  }
  vt_comm_group_release(group);
  void *things[3] = {rig, graphs[0], graphs[1]};
  rig_run(rig, launch_rank, things);
  EXPECT_EQ(c, 42, value[0]);
  EXPECT_EQ(c, 42, value[1]);
  vt_graph_release(graphs[0]);
  vt_graph_release(graphs[1]);
}

// A submission that a full ring turned away has not happened: it took no number, and nobody was told.
static void a_collective_that_a_full_ring_turns_away_takes_no_number(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  vt_queue_options options = vt_test_queue_options(c);
  options.ring_capacity = 4;
  options.flags |= VT_QUEUE_FAIL_FULL;
  vt_queue *narrow = vt_test_queue_with(c, &options);
  vt_test_latch door = VT_TEST_LATCH_INIT;
  REQUIRE_OK(c, vt_queue_host_func(narrow, vt_test_host_wait, &door, NULL));
  vt_test_latch_await_waiter(&door);
  int32_t accepted = 0;
  vt_status status = VT_OK;
  while (status == VT_OK && accepted < 100) {
    status = vt_comm_barrier(rig->comms[0], narrow, NULL);
    accepted += status == VT_OK;
  }
  EXPECT_EQ(c, VT_NOT_READY, status);
  vt_test_latch_open(&door);
  for (int32_t i = 0; i < accepted; i++) {
    EXPECT_OK(c, vt_comm_barrier(rig->comms[1], rig->queues[1], NULL));
  }
  EXPECT_OK(c, vt_queue_synchronize(narrow));
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[1]));
  rig_expect_usable(rig);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_graph[] = {
    ROW(captured_collectives_see_new_inputs_at_each_replay, NEED_GRAPH),
    ROW(graphs_of_one_group_may_be_replayed_in_any_common_order, NEED_GRAPH),
    {"one_thread_replays_a_batch_of_all_ranks", NEED_COMM | NEED_GRAPH, one_thread_graph_batch},
    ROW(a_peer_of_a_rank_that_only_captures_gets_a_time_out, NEED_GRAPH),
    ROW(a_deadline_is_baked_into_the_graph, NEED_GRAPH),
    ROW(a_call_refused_in_a_capture_fails_the_capture_and_tells_nobody, NEED_GRAPH | REPORTS),
    ROW(a_graph_keeps_the_communicators_it_recorded, NEED_GRAPH),
    ROW(a_group_may_be_released_while_its_work_is_queued, NEED_WORKER),
    ROW(a_collective_that_a_full_ring_turns_away_takes_no_number, NEED_WORKER),
    ROW(submitting_a_collective_does_not_wait_for_the_peers, NEED_ASYNC),
    ROW(peers_of_a_queue_that_failed_before_are_told, NEED_WORKER),
    VT_TEST_END,
};
