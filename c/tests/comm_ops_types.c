// comm_ops_types.c: the collectives with roots and parts in every type and operation, what they refuse, and their replay.
#include "comm_model.h"
#include "comm_rig.h"

#define WORLD 3

// Elements for each rank: within a post, and directly.
static const size_t part_counts[] = {1, 31, 2001};

#define PARTS_MAX 2001

typedef struct types_run {
  comm_rig *rig;
  vt_dtype dtype;
  size_t count;
  unsigned char *inputs[WORLD];
  unsigned char *expected;
  unsigned char *recv[WORLD];
} types_run;

static types_run types_begin(vt_case *c, comm_rig *rig, vt_dtype dtype, size_t count) {
  types_run run = {.rig = rig, .dtype = dtype, .count = count};
  size_t bytes = model_bytes(dtype, WORLD * count);
  for (int32_t r = 0; r < WORLD; r++) {
    run.inputs[r] = vt_test_guarded_alloc(c, bytes);
    run.recv[r] = vt_test_guarded_alloc(c, bytes);
  }
  run.expected = vt_test_guarded_alloc(c, bytes);
  return run;
}

static void expect_part(types_run *run, int32_t rank, vt_status status, const unsigned char *got, size_t from, size_t count) {
  vt_case *c = run->rig->c;
  EXPECT_OK(c, rig_finish(run->rig, rank, status));
  EXPECT_BYTES(c, run->expected + model_bytes(run->dtype, from), got, model_bytes(run->dtype, count));
}

typedef struct op_of_run {
  types_run *run;
  vt_reduce_op op;
} op_of_run;

static void reductions_of_rank(vt_case *c, int32_t rank, void *arg) {
  op_of_run *of = arg;
  types_run *run = of->run;
  vt_comm *comm = run->rig->comms[rank];
  vt_queue *queue = run->rig->queues[rank];
  unsigned char *in = run->inputs[rank];
  unsigned char *out = run->recv[rank];
  size_t n = run->count;
  size_t own = (size_t)rank * n;
  size_t counts[WORLD] = {n, 0, 2 * n};
  size_t before[WORLD] = {0, n, n};
  int32_t root = (run->dtype + of->op) % WORLD;
  (void)c;
  vt_status status = vt_comm_reduce(comm, queue, in, out, WORLD * n, run->dtype, of->op, root, NULL);
  expect_part(run, rank, status, out, 0, rank == root ? WORLD * n : 0);
  status = vt_comm_reduce_scatter(comm, queue, in, out, n, run->dtype, of->op, NULL);
  expect_part(run, rank, status, out, own, n);
  status = vt_comm_reduce_scatterv(comm, queue, in, out, counts, run->dtype, of->op, NULL);
  expect_part(run, rank, status, out, before[rank], counts[rank]);
  // In place last, since it ends what the rank has to give.
  unsigned char *place = in + model_bytes(run->dtype, own);
  status = vt_comm_reduce_scatter(comm, queue, in, place, n, run->dtype, of->op, NULL);
  expect_part(run, rank, status, place, own, n);
}

static void reduce_types(vt_case *c, int32_t types, const vt_dtype *dtypes) {
  comm_rig *rig = rig_begin(c, WORLD, NULL);
  for (int32_t t = 0; t < types; t++) {
    for (size_t i = 0; i < sizeof part_counts / sizeof part_counts[0]; i++) {
      types_run run = types_begin(c, rig, dtypes[t], part_counts[i]);
      for (vt_reduce_op op = 0; op < VT_REDUCE_COUNT; op++) {
        for (int32_t r = 0; r < WORLD; r++) {
          model_fill(run.dtype, vt_test_seed(c) + (uint64_t)op, r, WORLD * run.count, run.inputs[r]);
        }
        model_all_reduce(run.dtype, op, WORLD, (const void *const *)run.inputs, WORLD * run.count, run.expected);
        rig_run(rig, reductions_of_rank, &(op_of_run){&run, op});
      }
    }
  }
}

static void reductions_with_roots_and_parts_give_the_models_bits(vt_case *c) {
  reduce_types(c, MODEL_REDUCIBLE_COUNT, model_reducible);
}

// Byte `i` of what a rank has.
static unsigned char byte_of(int32_t rank, size_t i) {
  return (unsigned char)(i * 31 + i / 251 + (size_t)rank * 101);
}

static void fill_bytes(unsigned char *to, int32_t rank, size_t from, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    to[i] = byte_of(rank, from + i);
  }
}

static void moves_of_rank(vt_case *c, int32_t rank, void *arg) {
  types_run *run = arg;
  vt_comm *comm = run->rig->comms[rank];
  vt_queue *queue = run->rig->queues[rank];
  unsigned char *in = run->inputs[rank];
  unsigned char *out = run->recv[rank];
  size_t n = run->count;
  size_t part = model_bytes(run->dtype, n);
  fill_bytes(in, rank, 0, WORLD * part);
  EXPECT_OK(c, rig_finish(run->rig, rank, vt_comm_all_to_all(comm, queue, in, out, n, run->dtype, NULL)));
  unsigned char *want = vt_test_guarded_alloc(c, WORLD * part);
  for (int32_t r = 0; r < WORLD; r++) {
    fill_bytes(want + (size_t)r * part, r, (size_t)rank * part, part);
  }
  EXPECT_BYTES(c, want, out, WORLD * part);
  EXPECT_OK(c, rig_finish(run->rig, rank, vt_comm_scatter(comm, queue, in, out, n, run->dtype, 1, NULL)));
  fill_bytes(want, 1, (size_t)rank * part, part);
  EXPECT_BYTES(c, want, out, part);
  EXPECT_OK(c, rig_finish(run->rig, rank, vt_comm_gather(comm, queue, in, out, n, run->dtype, 2, NULL)));
  for (int32_t r = 0; r < WORLD; r++) {
    fill_bytes(want + (size_t)r * part, r, 0, part);
  }
  EXPECT_BYTES(c, want, out, rank == 2 ? WORLD * part : 0);
  EXPECT_OK(c, rig_finish(run->rig, rank, vt_comm_broadcast(comm, queue, in, n, run->dtype, 0, NULL)));
  fill_bytes(want, 0, 0, part);
  EXPECT_BYTES(c, want, in, part);
}

static void data_of_every_type_moves(vt_case *c) {
  comm_rig *rig = rig_begin(c, WORLD, NULL);
  int32_t types = 0;
  for (vt_dtype dtype = 0; dtype < VT_DTYPE_COUNT; dtype++) {
    if (vt_dtype_get_name(dtype) != NULL) {
      types_run run = types_begin(c, rig, dtype, 5 * model_block(dtype));
      rig_run(rig, moves_of_rank, &run);
      types++;
    }
  }
  EXPECT_TRUE(c, types > MODEL_REDUCIBLE_COUNT);
}

// What rank 0 is refused, each time with a part of the message; its peer is told every one.
static int32_t refuse_calls(vt_case *c, comm_rig *rig) {
  vt_comm *comm = rig->comms[0];
  vt_queue *queue = rig->queues[0];
  static int32_t a[64];
  static int32_t b[64];
  const size_t two[2] = {2, 2};
  const size_t huge[2] = {SIZE_MAX, 2};
  const size_t large[2] = {SIZE_MAX / 4, SIZE_MAX / 4};
  const size_t close[2] = {0, 1};
  const vt_dtype type = VT_DTYPE_I32;
  int32_t refused = 0;
#define REFUSED(part, call) (refused++, EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, call))
  REFUSED("root 2", vt_comm_reduce(comm, queue, a, b, 2, type, VT_REDUCE_SUM, 2, NULL));
  REFUSED("root -1", vt_comm_broadcast(comm, queue, a, 2, type, -1, NULL));
  REFUSED("NULL", vt_comm_broadcast(comm, queue, NULL, 2, type, 0, NULL));
  REFUSED("recv is NULL", vt_comm_reduce(comm, queue, a, NULL, 2, type, VT_REDUCE_SUM, 0, NULL));
  REFUSED("recv is NULL", vt_comm_gather(comm, queue, a, NULL, 2, type, 0, NULL));
  REFUSED("send is NULL", vt_comm_scatter(comm, queue, NULL, b, 2, type, 0, NULL));
  REFUSED("send is NULL", vt_comm_all_to_all(comm, queue, NULL, b, 2, type, NULL));
  REFUSED("reduce op 5", vt_comm_reduce_scatter(comm, queue, a, b, 2, type, VT_REDUCE_COUNT, NULL));
  REFUSED("can't be reduced", vt_comm_reduce(comm, queue, a, b, 2, VT_DTYPE_F8_E4M3, VT_REDUCE_SUM, 0, NULL));
  REFUSED("overlap", vt_comm_reduce(comm, queue, a, a + 1, 2, type, VT_REDUCE_SUM, 0, NULL));
  REFUSED("overlap", vt_comm_gather(comm, queue, a + 1, a, 2, type, 0, NULL));
  REFUSED("overlap", vt_comm_scatter(comm, queue, a, a + 1, 2, type, 0, NULL));
  REFUSED("overlap", vt_comm_reduce_scatter(comm, queue, a, a + 1, 2, type, VT_REDUCE_SUM, NULL));
  REFUSED("overlap", vt_comm_all_to_all(comm, queue, a, a + 1, 2, type, NULL));
  REFUSED("overlap", vt_comm_all_gatherv(comm, queue, a + 1, a, two, NULL, type, NULL));
  REFUSED("overlap", vt_comm_all_to_allv(comm, queue, a, two, NULL, a + 2, two, NULL, type, NULL));
  REFUSED("overflow", vt_comm_all_to_all(comm, queue, a, b, SIZE_MAX / 4, type, NULL));
  REFUSED("overflow", vt_comm_gather(comm, queue, a, b, SIZE_MAX / 8, type, 0, NULL));
  REFUSED("overflow", vt_comm_all_gatherv(comm, queue, a, b, huge, NULL, type, NULL));
  REFUSED("overflow", vt_comm_reduce_scatterv(comm, queue, a, b, large, type, VT_REDUCE_SUM, NULL));
  REFUSED("overflow", vt_comm_all_to_allv(comm, queue, a, two, huge, b, two, NULL, type, NULL));
  REFUSED("overlap", vt_comm_all_gatherv(comm, queue, a, b, two, close, type, NULL));
  REFUSED("counts is NULL", vt_comm_all_gatherv(comm, queue, a, b, NULL, NULL, type, NULL));
  REFUSED("counts is NULL", vt_comm_all_to_allv(comm, queue, a, NULL, NULL, b, two, NULL, type, NULL));
#undef REFUSED
  return refused;
}

static void meet_refused_collectives(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t refused = rank == 0 ? refuse_calls(c, rig) : 24;
  for (int32_t i = 0; i < refused && rank == 1; i++) {
    EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 failed", rig_finish(rig, 1, vt_comm_barrier(rig->comms[1], rig->queues[1], NULL)));
    rig_renew_queue(rig, 1);
  }
  EXPECT_EQ(c, 24, refused);
}

static void what_other_collectives_refuse_is_named_and_told(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, meet_refused_collectives, rig);
  rig_expect_usable(rig);
}

typedef struct step_data {
  int32_t send[6];
  int32_t shared[2];
  int32_t parts[6];
  int32_t mine[2];
  int32_t even[6];
} step_data;

static step_data steps[WORLD];

// Rank 0's two numbers for all, then everybody's parts, the sum of the rank's part, and parts of uneven counts.
static void submit_step(vt_case *c, comm_rig *rig, int32_t rank) {
  vt_comm *comm = rig->comms[rank];
  vt_queue *queue = rig->queues[rank];
  step_data *d = &steps[rank];
  size_t counts[WORLD] = {1, 2, 3};  // copied: they are gone at the launch
  EXPECT_OK(c, vt_comm_broadcast(comm, queue, d->shared, 2, VT_DTYPE_I32, 0, NULL));
  EXPECT_OK(c, vt_comm_all_to_all(comm, queue, d->send, d->parts, 2, VT_DTYPE_I32, NULL));
  EXPECT_OK(c, vt_comm_reduce_scatter(comm, queue, d->send, d->mine, 2, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_gatherv(comm, queue, d->send, d->even, counts, NULL, VT_DTYPE_I32, NULL));
}

static int32_t number(int32_t launch, int32_t rank, int32_t i) {
  return launch * 10000 + rank * 100 + i;
}

static void check_step(vt_case *c, int32_t launch, int32_t rank) {
  const step_data *d = &steps[rank];
  static const int32_t from[6] = {0, 1, 1, 2, 2, 2};
  static const int32_t at[6] = {0, 0, 1, 0, 1, 2};
  for (int32_t i = 0; i < 6; i++) {
    EXPECT_EQ(c, number(launch, i / 2, 2 * rank + i % 2), d->parts[i]);
    EXPECT_EQ(c, number(launch, from[i], at[i]), d->even[i]);
  }
  for (int32_t i = 0; i < 2; i++) {
    EXPECT_EQ(c, number(launch, 0, i + 50), d->shared[i]);
    EXPECT_EQ(c, 3 * number(launch, 1, 2 * rank + i), d->mine[i]);
  }
}

static void replay_of_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  step_data *d = &steps[rank];
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(rig->queues[rank]));
  submit_step(c, rig, rank);
  EXPECT_OK(c, vt_graph_end_capture(rig->queues[rank], &graph));
  for (int32_t launch = 1; launch <= 5; launch++) {
    memset(d, 0, sizeof *d);
    for (int32_t i = 0; i < 6; i++) {
      d->send[i] = number(launch, rank, i);
    }
    for (int32_t i = 0; i < 2; i++) {
      d->shared[i] = number(launch, rank, i + 50);
    }
    EXPECT_OK(c, rig_finish(rig, rank, vt_graph_launch(graph, rig->queues[rank])));
    check_step(c, launch, rank);
  }
  vt_graph_release(graph);
}

static void other_collectives_meet_at_each_launch(vt_case *c) {
  comm_rig *rig = rig_begin(c, WORLD, NULL);
  rig_run(rig, replay_of_rank, rig);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_ops_types[] = {
    ROW(reductions_with_roots_and_parts_give_the_models_bits, NEED_NO_TSAN),
    ROW(data_of_every_type_moves, 0),
    ROW(what_other_collectives_refuse_is_named_and_told, 0),
    ROW(other_collectives_meet_at_each_launch, NEED_GRAPH),
    VT_TEST_END,
};
