// comm_errors.c: ranks that call different things, and calls that are refused: everybody is told, nothing is touched.
#include <stdatomic.h>
#include <stdio.h>

#include "comm_model.h"
#include "comm_rig.h"

#define BUFFER_BYTES ((size_t)300 * 1024)

// One collective call.
typedef struct call_spec {
  vt_comm_op op;
  size_t count;
  vt_dtype dtype;
  vt_reduce_op reduce;
  uint64_t sequence;
  const char *text;  // what the message of a mismatch must hold
} call_spec;

static vt_status make_call(comm_rig *rig, int32_t rank, const call_spec *spec, const void *send, void *recv) {
  vt_comm *comm = rig->comms[rank];
  vt_queue *queue = rig->queues[rank];
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.sequence = spec->sequence;
  if (spec->op == VT_COMM_OP_BARRIER) {
    return vt_comm_barrier(comm, queue, &opts);
  }
  if (spec->op == VT_COMM_OP_ALL_GATHER) {
    return vt_comm_all_gather(comm, queue, send, recv, spec->count, spec->dtype, &opts);
  }
  return vt_comm_all_reduce(comm, queue, send, recv, spec->count, spec->dtype, spec->reduce, &opts);
}

// Every rank calls `usual`, the rank `odd_rank` calls `odd`.
typedef struct mismatch_run {
  comm_rig *rig;
  const call_spec *usual;
  const call_spec *odd;
  int32_t odd_rank;
  unsigned char *send[RIG_MAX_WORLD];
  unsigned char *recv[RIG_MAX_WORLD];
} mismatch_run;

static void mismatch_rank(vt_case *c, int32_t rank, void *arg) {
  mismatch_run *run = arg;
  const call_spec *spec = rank == run->odd_rank ? run->odd : run->usual;
  memset(run->send[rank], 0x11, BUFFER_BYTES);
  memset(run->recv[rank], SPACE_FILL, BUFFER_BYTES);
  vt_status status = rig_finish(run->rig, rank, make_call(run->rig, rank, spec, run->send[rank], run->recv[rank]));
  if (EXPECT_STATUS(c, VT_ERR_MISMATCH, status)) {
    char name[32];
    snprintf(name, sizeof name, "rank %d", run->odd_rank);
    EXPECT_MESSAGE(c, name);
    EXPECT_MESSAGE(c, run->usual->text);
    EXPECT_MESSAGE(c, run->odd->text);
  }
  EXPECT_FILLED(c, 0x11, run->send[rank], BUFFER_BYTES);
  EXPECT_FILLED(c, SPACE_FILL, run->recv[rank], BUFFER_BYTES);
}

static mismatch_run mismatch_begin(vt_case *c, int32_t world) {
  mismatch_run run = {.rig = rig_begin(c, world, NULL)};
  for (int32_t r = 0; r < world; r++) {
    run.send[r] = vt_test_guarded_alloc(c, BUFFER_BYTES);
    run.recv[r] = vt_test_guarded_alloc(c, BUFFER_BYTES);
  }
  return run;
}

// Two specs that differ in one field, with each rank the odd one in turn. The group is usable in between.
static void expect_mismatch(mismatch_run *run, const call_spec *usual, const call_spec *odd) {
  run->usual = usual;
  run->odd = odd;
  for (run->odd_rank = 0; run->odd_rank < run->rig->world; run->odd_rank++) {
    rig_run(run->rig, mismatch_rank, run);
    rig_expect_usable(run->rig);
  }
}

static void a_mismatch_in_any_field_fails_every_rank_and_touches_nothing(vt_case *c) {
  const call_spec usual[] = {
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 0, "all_reduce"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 0, "all_reduce"},
      {VT_COMM_OP_ALL_GATHER, 64, VT_DTYPE_F32, 0, 0, "all_gather"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 0, "f32"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 0, "64"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 0, "sum"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 1001, "1001"},
      {VT_COMM_OP_BARRIER, 0, 0, 0, 41, "41"},
  };
  const call_spec odd[] = {
      {VT_COMM_OP_ALL_GATHER, 64, VT_DTYPE_F32, 0, 0, "all_gather"},
      {VT_COMM_OP_BARRIER, 0, 0, 0, 0, "barrier"},
      {VT_COMM_OP_BARRIER, 0, 0, 0, 0, "barrier"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_I32, VT_REDUCE_SUM, 0, "i32"},
      {VT_COMM_OP_ALL_REDUCE, 63, VT_DTYPE_F32, VT_REDUCE_SUM, 0, "63"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_MAX, 0, "max"},
      {VT_COMM_OP_ALL_REDUCE, 64, VT_DTYPE_F32, VT_REDUCE_SUM, 1002, "1002"},
      {VT_COMM_OP_BARRIER, 0, 0, 0, 43, "43"},
  };
  for (int32_t world = 2; world <= 3; world++) {
    mismatch_run run = mismatch_begin(c, world);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
      expect_mismatch(&run, &usual[i], &odd[i]);
    }
  }
}

static void different_counts_are_a_mismatch_at_every_size(vt_case *c) {
  static const size_t counts[][2] = {{0, 1}, {1, 2}, {255, 256}, {256, 257}, {100, 25600}, {25600, 100}, {40960, 40958}};
  mismatch_run run = mismatch_begin(c, 2);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    char text[2][32];
    call_spec specs[2];
    for (size_t k = 0; k < 2; k++) {
      snprintf(text[k], sizeof text[k], "%zu", counts[i][k]);
      specs[k] = (call_spec){VT_COMM_OP_ALL_REDUCE, counts[i][k], VT_DTYPE_F32, VT_REDUCE_SUM, 0, text[k]};
    }
    expect_mismatch(&run, &specs[0], &specs[1]);
  }
}

// Goes through all ordered pairs of types on the rank's own thread; both sides count alike.
static void type_pairs_rank(vt_case *c, int32_t rank, void *arg) {
  mismatch_run *run = arg;
  memset(run->recv[rank], SPACE_FILL, BUFFER_BYTES);
  for (vt_dtype first = 0; first < VT_DTYPE_COUNT; first++) {
    for (vt_dtype second = 0; second < VT_DTYPE_COUNT; second++) {
      if (first == second) {
        continue;
      }
      call_spec spec = {VT_COMM_OP_ALL_GATHER, 256, rank == 0 ? first : second, 0, 0, NULL};
      vt_status status = rig_finish(run->rig, rank, make_call(run->rig, rank, &spec, run->send[rank], run->recv[rank]));
      if (EXPECT_STATUS(c, VT_ERR_MISMATCH, status)) {
        EXPECT_MESSAGE(c, vt_dtype_get_name(first));
        EXPECT_MESSAGE(c, vt_dtype_get_name(second));
      } else {
        FAIL_CASE(c, "rank 0 gathers %s, rank 1 %s", vt_dtype_get_name(first), vt_dtype_get_name(second));
      }
      rig_renew_queue(run->rig, rank);
    }
  }
  EXPECT_FILLED(c, SPACE_FILL, run->recv[rank], BUFFER_BYTES);
}

static void every_ordered_pair_of_types_is_a_mismatch(vt_case *c) {
  mismatch_run run = mismatch_begin(c, 2);
  rig_run(run.rig, type_pairs_rank, &run);
  rig_expect_usable(run.rig);
}

// Calls that one rank gets wrong.
enum {
  BAD_DTYPE,
  BAD_DTYPE_NEGATIVE,
  BAD_OP,
  BAD_OP_NEGATIVE,
  BLOCK_TYPE,
  FP8_TYPE,
  NULL_SEND,
  NULL_RECV,
  HUGE_COUNT,
  OVERLAP,
  INFINITE_DEADLINE,
  PARTIAL_BLOCK,
  GATHER_HUGE_COUNT,
  GATHER_OVERLAP,
  FOREIGN_QUEUE,
  BAD_STRUCT_SIZE,
  REFUSAL_COUNT,
};

typedef struct refusal_run {
  comm_rig *rig;
  int32_t kind;
  int32_t bad_rank;
  vt_queue *foreign;
} refusal_run;

static vt_status call_badly(refusal_run *run, int32_t rank, unsigned char *send, unsigned char *recv) {
  vt_comm *comm = run->rig->comms[rank];
  vt_queue *queue = run->kind == FOREIGN_QUEUE ? run->foreign : run->rig->queues[rank];
  vt_comm_call opts = VT_COMM_CALL_INIT;
  switch (run->kind) {
    case BAD_DTYPE:
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_COUNT, VT_REDUCE_SUM, NULL);
    case BAD_DTYPE_NEGATIVE:
      return vt_comm_all_reduce(comm, queue, send, recv, 64, -1, VT_REDUCE_SUM, NULL);
    case BAD_OP:
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_F32, VT_REDUCE_COUNT, NULL);
    case BAD_OP_NEGATIVE:
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_F32, -1, NULL);
    case BLOCK_TYPE:
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_Q8_0, VT_REDUCE_SUM, NULL);
    case FP8_TYPE:
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_F8_E5M2, VT_REDUCE_SUM, NULL);
    case NULL_SEND:
      return vt_comm_all_reduce(comm, queue, NULL, recv, 64, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
    case NULL_RECV:
      return vt_comm_all_reduce(comm, queue, send, NULL, 64, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
    case HUGE_COUNT:
      return vt_comm_all_reduce(comm, queue, send, recv, SIZE_MAX / 2, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
    case OVERLAP:
      return vt_comm_all_reduce(comm, queue, recv, recv + 4, 64, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
    case INFINITE_DEADLINE:
      opts.timeout_ns = UINT64_MAX;
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_F32, VT_REDUCE_SUM, &opts);
    case PARTIAL_BLOCK:
      return vt_comm_all_gather(comm, queue, send, recv, 33, VT_DTYPE_Q4_0, NULL);
    case GATHER_HUGE_COUNT:
      return vt_comm_all_gather(comm, queue, send, recv, SIZE_MAX / 4, VT_DTYPE_F32, NULL);
    case GATHER_OVERLAP:
      return vt_comm_all_gather(comm, queue, recv + 4, recv, 64, VT_DTYPE_F32, NULL);
    case BAD_STRUCT_SIZE:
      opts.struct_size = 0;
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_F32, VT_REDUCE_SUM, &opts);
    default:  // FOREIGN_QUEUE: only the queue is wrong
      return vt_comm_all_reduce(comm, queue, send, recv, 64, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
  }
}

static const char *const refusal_texts[REFUSAL_COUNT] = {
    "17",       "-1",      "5",        "-1", "q8_0",     "f8_e5m2", "NULL",  "NULL",
    "overflow", "overlap", "deadline", "33", "overflow", "overlap", "cpu:1", "struct_size",
};

static void refusal_rank(vt_case *c, int32_t rank, void *arg) {
  refusal_run *run = arg;
  comm_rig *rig = run->rig;
  unsigned char send[1024] = {0};
  unsigned char recv[4096];
  memset(recv, SPACE_FILL, sizeof recv);
  if (rank == run->bad_rank) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, refusal_texts[run->kind], call_badly(run, rank, send, recv));
  } else {
    uint64_t begin = vt_test_now_ns();
    vt_status status = vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], send, recv, 64, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
    EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, rank, status));
    char text[64];
    snprintf(text, sizeof text, "rank %d failed", run->bad_rank);
    EXPECT_MESSAGE(c, text);
    EXPECT_TRUE(c, vt_test_now_ns() - begin < UINT64_C(10000000000));
  }
  EXPECT_FILLED(c, SPACE_FILL, recv, sizeof recv);
}

static void a_refused_call_tells_the_peers_at_once_and_the_group_goes_on(vt_case *c) {
  refusal_run run = {.rig = rig_begin(c, 3, NULL)};
  vt_device other = vt_test_device(c);
  other.index = 1;
  run.foreign = vt_test_queue_on(c, other);
  for (run.kind = 0; run.kind < REFUSAL_COUNT; run.kind++) {
    run.bad_rank = run.kind % 3;
    rig_run(run.rig, refusal_rank, &run);
    rig_expect_usable(run.rig);
    if (!vt_test_is_clean(c)) {
      FAIL_CASE(c, "bad call number %d, expected \"%s\"", run.kind, refusal_texts[run.kind]);
      break;
    }
  }
}

static void refused_message_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  uint32_t word = 7;
  if (rank == 0) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_comm_send(rig->comms[0], rig->queues[0], NULL, 1, VT_DTYPE_F32, 1, NULL));
  } else {
    vt_status status = vt_comm_recv(rig->comms[1], rig->queues[1], &word, 1, VT_DTYPE_F32, 0, NULL);
    if (EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, 1, status))) {
      EXPECT_MESSAGE(c, "rank 0 failed");
    }
    EXPECT_EQ(c, 7, word);
  }
}

static void a_refused_message_tells_its_peer(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  rig_run(rig, refused_message_rank, rig);
  rig_expect_usable(rig);
}

// One rank is refused several times before its peer comes: every call of the peer meets its own refusal.
static void refused_in_a_row_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t value = 5;
  if (rank == 1) {
    vt_test_sleep_ns(50000000);
  }
  for (int32_t i = 0; i < 6; i++) {
    char text[32];
    snprintf(text, sizeof text, "dtype %d", 100 + i);
    vt_dtype dtype = rank == 0 ? 100 + i : VT_DTYPE_I32;
    vt_status status = vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], &value, &value, 1, dtype, VT_REDUCE_SUM, NULL);
    EXPECT_STATUS(c, rank == 0 ? VT_ERR_INVALID_ARGUMENT : VT_ERR_MISMATCH, rank == 0 ? status : rig_finish(rig, 1, status));
    EXPECT_MESSAGE(c, text);
    if (rank == 1) {
      rig_renew_queue(rig, 1);
    }
  }
  EXPECT_EQ(c, 5, value);
}

static void refusals_in_a_row_reach_the_peer_one_by_one(vt_case *c) {
  comm_rig *rig = rig_begin(c, 2, NULL);
  // The second time, the ranks have met, and the first refusal finds its post free.
  for (int32_t round = 0; round < 2; round++) {
    rig_run(rig, refused_in_a_row_rank, rig);
    rig_expect_usable(rig);
  }
}

// Providers of somebody else, which hand every call on to the one below.
#define OTHER_PROVIDER "test-forwarder"
static _Atomic(vt_comm *) wanted_comm;

static const struct {
  const char *name;
  vt_comm_op op;
} forwarded[] = {
    {"vt.all_reduce", VT_COMM_OP_ALL_REDUCE},
    {"vt.all_gather", VT_COMM_OP_ALL_GATHER},
    {"vt.barrier", VT_COMM_OP_BARRIER},
};
#define FORWARDED (sizeof forwarded / sizeof forwarded[0])
static vt_op_id forwarded_ids[FORWARDED];

static int32_t forwarder_supports(void *user, vt_op_question *question) {
  (void)user;
  const vt_comm_descriptor *call = question->descriptor;
  // relaxed: set before the ranks' threads start.
  return call != NULL && call->comm == atomic_load_explicit(&wanted_comm, memory_order_relaxed);
}

static vt_status get_below(size_t i, vt_comm_descriptor call, const vt_op_provider **out_below) {
  call.struct_size = sizeof call;
  call.op = forwarded[i].op;
  call.peer = -1;
  return vt_op_get_below(forwarded_ids[i], VT_DEVICE_CPU, OTHER_PROVIDER, &call, out_below);
}

static vt_status forward_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                vt_reduce_op op, const vt_comm_call *opts) {
  vt_comm_descriptor call = {.comm = comm, .queue = queue, .count = count, .dtype = dtype, .reduce_op = op};
  const vt_op_provider *below;
  vt_status status = get_below(0, call, &below);
  return status != VT_OK ? status : ((vt_comm_all_reduce_fn)below->fn)(comm, queue, send, recv, count, dtype, op, opts);
}

static vt_status forward_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                const vt_comm_call *opts) {
  vt_comm_descriptor call = {.comm = comm, .queue = queue, .count = count, .dtype = dtype};
  const vt_op_provider *below;
  vt_status status = get_below(1, call, &below);
  return status != VT_OK ? status : ((vt_comm_all_gather_fn)below->fn)(comm, queue, send, recv, count, dtype, opts);
}

static vt_status forward_barrier(vt_comm *comm, vt_queue *queue, const vt_comm_call *opts) {
  vt_comm_descriptor call = {.comm = comm, .queue = queue};
  const vt_op_provider *below;
  vt_status status = get_below(2, call, &below);
  return status != VT_OK ? status : ((vt_comm_barrier_fn)below->fn)(comm, queue, opts);
}

static int register_forwarders(vt_case *c) {
  const vt_fn functions[FORWARDED] = {(vt_fn)forward_reduce, (vt_fn)forward_gather, (vt_fn)forward_barrier};
  int done = 1;
  for (size_t i = 0; i < FORWARDED; i++) {
    vt_op_provider provider = {.struct_size = sizeof provider,
                               .name = OTHER_PROVIDER,
                               .priority = 100,
                               .fn = functions[i],
                               .supports = forwarder_supports};
    done &= EXPECT_OK(c, vt_op_intern(forwarded[i].name, &forwarded_ids[i]));
    vt_status status = vt_op_provider_register(forwarded_ids[i], VT_DEVICE_CPU, &provider);
    done &= EXPECT_TRUE(c, status == VT_OK || status == VT_ERR_ALREADY_EXISTS);  // it stays for the later rows
  }
  return done;
}

// Only `odd_rank` has the other provider.
static void expect_provider_mismatch(mismatch_run *run, vt_comm_op op, int32_t odd_rank) {
  size_t count = op == VT_COMM_OP_BARRIER ? 0 : 1000;
  const call_spec usual = {op, count, VT_DTYPE_F32, VT_REDUCE_SUM, 0, VT_OP_NATIVE_NAME};
  const call_spec odd = {op, count, VT_DTYPE_F32, VT_REDUCE_SUM, 0, OTHER_PROVIDER};
  run->usual = &usual;
  run->odd = &odd;
  run->odd_rank = odd_rank;
  atomic_store_explicit(&wanted_comm, run->rig->comms[odd_rank], memory_order_relaxed);
  rig_run(run->rig, mismatch_rank, run);
  atomic_store_explicit(&wanted_comm, NULL, memory_order_relaxed);
  rig_expect_usable(run->rig);
}

static void ranks_with_different_providers_are_a_mismatch(vt_case *c) {
  if (!register_forwarders(c)) {
    return;
  }
  for (int32_t world = 2; world <= 3; world++) {
    mismatch_run run = mismatch_begin(c, world);
    for (size_t i = 0; i < FORWARDED; i++) {
      for (int32_t odd_rank = 0; odd_rank < world; odd_rank++) {
        expect_provider_mismatch(&run, forwarded[i].op, odd_rank);
      }
    }
  }
  // A rank alone agrees with itself.
  comm_rig *alone = rig_begin(c, 1, NULL);
  atomic_store_explicit(&wanted_comm, alone->comms[0], memory_order_relaxed);
  rig_expect_usable(alone);
  EXPECT_OK(c, rig_finish(alone, 0, vt_comm_barrier(alone->comms[0], alone->queues[0], NULL)));
  atomic_store_explicit(&wanted_comm, NULL, memory_order_relaxed);
}

static void bad_groups_are_refused(vt_case *c) {
  static const int32_t worlds[] = {0, -1, INT32_MIN, INT32_MAX, VT_COMM_MAX_WORLD + 1};
  vt_comm_group *group = NULL;
  for (size_t i = 0; i < 5; i++) {
    char text[32];
    snprintf(text, sizeof text, "%d", worlds[i]);
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, text, vt_comm_group_create(worlds[i], NULL, &group));
  }
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_comm_group_create(2, NULL, NULL));
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.timeout_ns = UINT64_MAX;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "deadline", vt_comm_group_create(2, &options, &group));
  options.timeout_ns = 0;
  const vt_device cuda[] = {{VT_DEVICE_CPU, 0}, {VT_DEVICE_CUDA, 0}};
  options.devices = cuda;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "cuda", vt_comm_group_create(2, &options, &group));
  const vt_device absent[] = {{VT_DEVICE_CPU, 0}, {VT_DEVICE_CPU, 15}};
  options.devices = absent;
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "cpu:15", vt_comm_group_create(2, &options, &group));
  EXPECT_TRUE(c, group == NULL);
}

static void dead_and_wrong_handles_are_refused(vt_case *c) {
  vt_comm_group *group;
  REQUIRE_OK(c, vt_comm_group_create(2, NULL, &group));
  vt_comm *comm;
  vt_comm *none;
  REQUIRE_OK(c, vt_comm_group_get_comm(group, 1, &comm));
  EXPECT_EQ(c, 2, vt_comm_group_get_world(group));
  EXPECT_EQ(c, 1, vt_comm_get_rank(comm));
  EXPECT_EQ(c, 2, vt_comm_get_world(comm));
  EXPECT_EQ(c, 0, strcmp("inproc", vt_comm_get_transport(comm)));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "2", vt_comm_group_get_comm(group, 2, &none));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-1", vt_comm_group_get_comm(group, -1, &none));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_comm_group_get_comm(group, 0, NULL));
  vt_queue *queue = vt_test_queue(c);
  vt_comm *const wrong[] = {NULL, (vt_comm *)(void *)group, (vt_comm *)(void *)queue};
  for (size_t i = 0; i < 3; i++) {
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "communicator", vt_comm_barrier(wrong[i], queue, NULL));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "communicator", vt_comm_query(wrong[i]));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "communicator", vt_comm_abort(wrong[i], NULL));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "communicator", vt_comm_retain(wrong[i]));
    EXPECT_EQ(c, -1, vt_comm_get_rank(wrong[i]));
    EXPECT_EQ(c, 0, vt_comm_get_world(wrong[i]));
  }
  EXPECT_EQ(c, 0, vt_comm_group_get_world((vt_comm_group *)(void *)comm));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue", vt_comm_barrier(comm, (vt_queue *)(void *)comm, NULL));
  vt_comm_release(NULL);
  vt_comm_group_release(NULL);
  vt_comm_group_release(group);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "communicator", vt_comm_query(comm));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "group", vt_comm_group_retain(group));
  vt_comm_group_release(group);
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, "group");
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_errors[] = {
    ROW(a_mismatch_in_any_field_fails_every_rank_and_touches_nothing, 0),
    ROW(different_counts_are_a_mismatch_at_every_size, 0),
    ROW(every_ordered_pair_of_types_is_a_mismatch, 0),
    ROW(a_refused_call_tells_the_peers_at_once_and_the_group_goes_on, NEED_DEVICES),
    ROW(refusals_in_a_row_reach_the_peer_one_by_one, 0),
    ROW(a_refused_message_tells_its_peer, 0),
    ROW(ranks_with_different_providers_are_a_mismatch, 0),
    ROW(bad_groups_are_refused, ONCE),
    ROW(dead_and_wrong_handles_are_refused, ONCE),
    VT_TEST_END,
};
