// comm_gather.c: all_gather brings every rank's bytes to every rank, for all types.
#include "comm_model.h"
#include "comm_rig.h"

#define MAX_BLOCKS 1000

// Of plain types up to MAX_BLOCKS elements; of block types, which are larger, up to 65 blocks.
static const size_t block_counts[] = {0, 1, 3, 63, 64, 65, MAX_BLOCKS};

static size_t counts_for(vt_dtype dtype) {
  size_t all = sizeof block_counts / sizeof block_counts[0];
  return model_block(dtype) == 1 ? all : all - 1;
}

typedef struct gather_run {
  comm_rig *rig;
  vt_dtype dtype;
  void *inputs[RIG_MAX_WORLD];
  comm_space send[RIG_MAX_WORLD];
  comm_space recv[RIG_MAX_WORLD];
  int32_t failed[RIG_MAX_WORLD];  // a rank that failed goes on calling, for its peers, and looks no further
} gather_run;

static gather_run gather_begin(vt_case *c, comm_rig *rig, vt_dtype dtype, size_t count) {
  gather_run run = {.rig = rig, .dtype = dtype};
  size_t bytes = model_bytes(dtype, count);
  for (int32_t r = 0; r < rig->world; r++) {
    run.inputs[r] = vt_test_guarded_alloc(c, bytes);
    model_fill(dtype, vt_test_seed(c), r, count, run.inputs[r]);
    run.send[r] = space_begin(c, bytes);
    run.recv[r] = space_begin(c, bytes * (size_t)rig->world);
  }
  return run;
}

// Whether `recv` holds all ranks' inputs in rank order.
static int holds_all(gather_run *run, const unsigned char *recv, size_t bytes) {
  for (int32_t r = 0; r < run->rig->world; r++) {
    if (!EXPECT_BYTES(run->rig->c, run->inputs[r], recv + bytes * (size_t)r, bytes)) {
      return 0;
    }
  }
  return 1;
}

static void gather_once(gather_run *run, int32_t rank, size_t count, int32_t in_place, size_t misalign) {
  comm_rig *rig = run->rig;
  vt_case *c = rig->c;
  size_t bytes = model_bytes(run->dtype, count);
  unsigned char *recv = space_place(&run->recv[rank], bytes * (size_t)rig->world, misalign);
  void *send = in_place ? recv + bytes * (size_t)rank : space_place(&run->send[rank], bytes, misalign * 3);
  memcpy(send, run->inputs[rank], bytes);
  int32_t no_array = count == 0 && misalign != 0;
  vt_status status = vt_comm_all_gather(rig->comms[rank], rig->queues[rank], no_array ? NULL : send, no_array ? NULL : recv, count,
                                        run->dtype, NULL);
  status = rig_finish(rig, rank, status);
  if (run->failed[rank]) {
    return;
  }
  int ok = EXPECT_OK(c, status) && holds_all(run, recv, bytes) && space_check(c, &run->recv[rank]);
  if (ok && !in_place) {
    ok = EXPECT_BYTES(c, run->inputs[rank], send, bytes) && space_check(c, &run->send[rank]);
  }
  if (!ok) {
    run->failed[rank] = 1;
    FAIL_CASE(c, "rank %d of %d: %s, count %zu, in place %d, address off by %zu", rank, rig->world, vt_dtype_get_name(run->dtype),
              count, in_place, misalign);
  }
}

static void gather_small_rank(vt_case *c, int32_t rank, void *arg) {
  (void)c;
  gather_run *run = arg;
  for (size_t n = 0; n < counts_for(run->dtype); n++) {
    for (int32_t variant = 0; variant < 4; variant++) {
      gather_once(run, rank, block_counts[n] * model_block(run->dtype), variant & 1, (size_t)variant >> 1);
    }
  }
}

static void gather_all_types(vt_case *c, int32_t world) {
  comm_rig *rig = rig_begin(c, world, NULL);
  for (vt_dtype dtype = 0; dtype < VT_DTYPE_COUNT; dtype++) {
    gather_run run = gather_begin(c, rig, dtype, block_counts[counts_for(dtype) - 1] * model_block(dtype));
    rig_run(rig, gather_small_rank, &run);
  }
}

static void all_gather_world1(vt_case *c) {
  gather_all_types(c, 1);
}
static void all_gather_world2(vt_case *c) {
  gather_all_types(c, 2);
}
static void all_gather_world3(vt_case *c) {
  gather_all_types(c, 3);
}
static void all_gather_world5(vt_case *c) {
  gather_all_types(c, 5);
}
static void all_gather_world8(vt_case *c) {
  gather_all_types(c, 8);
}

static void gather_large_rank(vt_case *c, int32_t rank, void *arg) {
  (void)c;
  gather_once(arg, rank, (size_t)1024 * 1024 + 1, 0, 1);
  gather_once(arg, rank, (size_t)1024 * 1024 + 1, 1, 0);
}

static void all_gather_of_a_million_elements(vt_case *c) {
  static const int32_t worlds[] = {1, 2, 3, 8};
  static const vt_dtype types[] = {VT_DTYPE_I8, VT_DTYPE_BF16, VT_DTYPE_I8, VT_DTYPE_F8_E4M3};
  for (int32_t i = 0; i < 4; i++) {
    gather_run run = gather_begin(c, rig_begin(c, worlds[i], NULL), types[i], (size_t)1024 * 1024 + 1);
    rig_run(run.rig, gather_large_rank, &run);
  }
}

// The one answer of a world of 1 for reductions: the bytes themselves, also those of a NaN with a payload.
static void a_world_of_one_is_the_identity_for_every_byte(vt_case *c) {
  comm_rig *rig = rig_begin(c, 1, NULL);
  for (int32_t t = 0; t < MODEL_REDUCIBLE_COUNT; t++) {
    vt_dtype dtype = model_reducible[t];
    size_t count = model_bytes(VT_DTYPE_F64, 1) * 512 / model_bytes(dtype, 1);
    unsigned char in[4096];
    unsigned char out[4096];
    vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)t);
    vt_test_random_fill(&rng, in, sizeof in);
    memset(in, 0xff, 64);       // NaNs, negative, with payload
    memset(in + 64, 0x7f, 64);  // NaNs, signalling ones among them
    for (vt_reduce_op op = 0; op < VT_REDUCE_COUNT; op++) {
      memset(out, 0, sizeof out);
      EXPECT_OK(c, rig_finish(rig, 0, vt_comm_all_reduce(rig->comms[0], rig->queues[0], in, out, count, dtype, op, NULL)));
      EXPECT_BYTES(c, in, out, sizeof in);
    }
  }
  EXPECT_OK(c, rig_finish(rig, 0, vt_comm_barrier(rig->comms[0], rig->queues[0], NULL)));
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_gather[] = {
    ROW(all_gather_world1, 0),
    ROW(all_gather_world2, 0),
    ROW(all_gather_world3, 0),
    ROW(all_gather_world5, 0),
    ROW(all_gather_world8, NEED_NO_TSAN),
    ROW(all_gather_of_a_million_elements, NEED_NO_TSAN),
    ROW(a_world_of_one_is_the_identity_for_every_byte, 0),
    VT_TEST_END,
};
