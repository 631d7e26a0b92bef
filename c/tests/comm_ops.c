// comm_ops.c: each collective with a root, with parts, or with a count for every rank brings every element to where it belongs:
// from the posts and directly, in place and not, for every root.
#include <sched.h>

#include "comm_rig.h"

// Elements per rank: none, within a post, the most that fits a post at world 2 and one more, and several chunks.
static const size_t counts_tried[] = {0, 1, 3, 128, 129, 257, 70001};

#define COUNTS (sizeof counts_tried / sizeof counts_tried[0])

// An element at any byte address.
typedef int32_t loose_i32 __attribute__((aligned(1)));

typedef struct ops_run {
  comm_rig *rig;
  comm_space send[RIG_MAX_WORLD];
  comm_space recv[RIG_MAX_WORLD];
  comm_space expected[RIG_MAX_WORLD];
  int32_t failed[RIG_MAX_WORLD];
} ops_run;

// One call of one rank. `want` is what `recv` is to hold afterwards.
typedef struct one_call {
  ops_run *run;
  int32_t rank;
  size_t count;
  int32_t root;
  int32_t in_place;
  loose_i32 *send;
  loose_i32 *recv;
  loose_i32 *want;
} one_call;

// Element `i` of what `rank` sends.
static int32_t element(int32_t rank, size_t i) {
  return (rank + 1) * 1000003 + (int32_t)i * 7;
}

static int32_t sum_of(int32_t world, size_t i) {
  int32_t sum = 0;
  for (int32_t r = 0; r < world; r++) {
    sum += element(r, i);
  }
  return sum;
}

static void fill(loose_i32 *to, int32_t rank, size_t from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    to[i] = element(rank, from + i);
  }
}

static void fill_sums(loose_i32 *to, int32_t world, size_t from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    to[i] = sum_of(world, from + i);
  }
}

// Lays out both buffers; in place, `send` is at element `send_at` of the place where `recv` is at `recv_at`.
static void lay_out(one_call *call, size_t sends, size_t recvs, size_t send_at, size_t recv_at) {
  ops_run *run = call->run;
  size_t misalign = call->count % 2;
  size_t room = sends + send_at > recvs + recv_at ? sends + send_at : recvs + recv_at;
  loose_i32 *both = space_place(&run->recv[call->rank], 4 * (call->in_place ? room : recvs), misalign);
  call->recv = both + (call->in_place ? recv_at : 0);
  call->send = call->in_place ? both + send_at : space_place(&run->send[call->rank], 4 * sends, 3 * misalign);
  call->want = space_place(&run->expected[call->rank], 4 * recvs, misalign);
  fill(call->send, call->rank, 0, sends);
}

static int32_t is_root(const one_call *call) {
  return call->rank == call->root;
}

// The call has been made: `recv` must hold the first `count` elements of `want`.
static void finish(one_call *call, const char *name, vt_status status, size_t count) {
  ops_run *run = call->run;
  vt_case *c = run->rig->c;
  status = rig_finish(run->rig, call->rank, status);
  if (run->failed[call->rank]) {
    return;
  }
  int ok = EXPECT_OK(c, status) && EXPECT_BYTES(c, call->want, call->recv, 4 * count) && space_check(c, &run->recv[call->rank]);
  if (!ok || (!call->in_place && !space_check(c, &run->send[call->rank]))) {
    run->failed[call->rank] = 1;
    FAIL_CASE(c, "%s: rank %d of %d, count %zu, root %d, in place %d", name, call->rank, run->rig->world, call->count, call->root,
              call->in_place);
  }
}

#define COMM(call) (call)->run->rig->comms[(call)->rank], (call)->run->rig->queues[(call)->rank]
#define WORLD(call) ((size_t)(call)->run->rig->world)
#define OWN(call) ((size_t)(call)->rank * (call)->count)

static void try_reduce(one_call call) {
  int32_t gets = is_root(&call);
  lay_out(&call, call.count, call.count, 0, 0);
  fill_sums(call.want, (int32_t)WORLD(&call), 0, call.count);
  finish(&call, "reduce",
         vt_comm_reduce(COMM(&call), call.send, gets ? call.recv : NULL, call.count, VT_DTYPE_I32, VT_REDUCE_SUM, call.root, NULL),
         gets ? call.count : 0);
}

static void try_broadcast(one_call call) {
  call.in_place = 1;
  lay_out(&call, call.count, call.count, 0, 0);
  fill(call.want, call.root, 0, call.count);
  finish(&call, "broadcast", vt_comm_broadcast(COMM(&call), call.recv, call.count, VT_DTYPE_I32, call.root, NULL), call.count);
}

static void try_gather(one_call call) {
  int32_t gets = is_root(&call);
  lay_out(&call, call.count, WORLD(&call) * call.count, OWN(&call), 0);
  for (size_t r = 0; r < WORLD(&call); r++) {
    fill(call.want + r * call.count, (int32_t)r, 0, call.count);
  }
  finish(&call, "gather",
         vt_comm_gather(COMM(&call), call.send, gets ? call.recv : NULL, call.count, VT_DTYPE_I32, call.root, NULL),
         gets ? WORLD(&call) * call.count : 0);
}

static void try_scatter(one_call call) {
  int32_t gives = is_root(&call);
  lay_out(&call, WORLD(&call) * call.count, call.count, 0, OWN(&call));
  fill(call.want, call.root, OWN(&call), call.count);
  finish(&call, "scatter",
         vt_comm_scatter(COMM(&call), gives ? call.send : NULL, call.recv, call.count, VT_DTYPE_I32, call.root, NULL), call.count);
}

static void try_reduce_scatter(one_call call) {
  lay_out(&call, WORLD(&call) * call.count, call.count, 0, OWN(&call));
  fill_sums(call.want, (int32_t)WORLD(&call), OWN(&call), call.count);
  finish(&call, "reduce_scatter",
         vt_comm_reduce_scatter(COMM(&call), call.send, call.recv, call.count, VT_DTYPE_I32, VT_REDUCE_SUM, NULL), call.count);
}

static void try_all_to_all(one_call call) {
  size_t all = WORLD(&call) * call.count;
  call.in_place = call.in_place && (call.root + call.rank) % 3 != 0;  // some are and some are not
  lay_out(&call, all, all, 0, 0);
  for (size_t r = 0; r < WORLD(&call); r++) {
    fill(call.want + r * call.count, (int32_t)r, OWN(&call), call.count);
  }
  finish(&call, "all_to_all", vt_comm_all_to_all(COMM(&call), call.send, call.recv, call.count, VT_DTYPE_I32, NULL), all);
}

// Rank r has count * (r mod 3) elements.
static size_t part(const one_call *call, size_t rank) {
  return call->count * (rank % 3);
}

static size_t parts_before(const one_call *call, size_t rank) {
  size_t sum = 0;
  for (size_t r = 0; r < rank; r++) {
    sum += part(call, r);
  }
  return sum;
}

// With displacements, the parts lie in reverse order with an element between them that must stay as it is.
static size_t displ(const one_call *call, size_t rank) {
  return parts_before(call, WORLD(call)) - parts_before(call, rank + 1) + (WORLD(call) - rank - 1);
}

static void try_all_gatherv(one_call call) {
  size_t counts[RIG_MAX_WORLD] = {0};
  size_t displs[RIG_MAX_WORLD] = {0};
  int32_t packed = call.root % 2;
  size_t all = parts_before(&call, WORLD(&call)) + (packed ? 0 : WORLD(&call) - 1);
  for (size_t r = 0; r < WORLD(&call); r++) {
    counts[r] = part(&call, r);
    displs[r] = packed ? parts_before(&call, r) : displ(&call, r);
  }
  lay_out(&call, counts[call.rank], all, displs[call.rank], 0);
  for (size_t r = 0; r < WORLD(&call); r++) {
    fill(call.want + displs[r], (int32_t)r, 0, counts[r]);
  }
  finish(&call, "all_gatherv",
         vt_comm_all_gatherv(COMM(&call), call.send, call.recv, counts, packed ? NULL : displs, VT_DTYPE_I32, NULL), all);
}

static void try_reduce_scatterv(one_call call) {
  size_t counts[RIG_MAX_WORLD] = {0};
  size_t own = (size_t)call.rank;
  for (size_t r = 0; r < WORLD(&call); r++) {
    counts[r] = part(&call, r);
  }
  lay_out(&call, parts_before(&call, WORLD(&call)), counts[own], 0, parts_before(&call, own));
  fill_sums(call.want, (int32_t)WORLD(&call), parts_before(&call, own), counts[own]);
  finish(&call, "reduce_scatterv",
         vt_comm_reduce_scatterv(COMM(&call), call.send, call.recv, counts, VT_DTYPE_I32, VT_REDUCE_SUM, NULL), counts[own]);
}

// Rank i sends rank j the part of rank i + j.
static void try_all_to_allv(one_call call) {
  size_t sent[RIG_MAX_WORLD] = {0};
  size_t sent_at[RIG_MAX_WORLD] = {0};
  size_t got[RIG_MAX_WORLD] = {0};
  size_t got_at[RIG_MAX_WORLD] = {0};
  size_t own = (size_t)call.rank;
  size_t sends = 0;
  size_t recvs = 0;
  int32_t packed = call.root % 2;
  for (size_t r = 0; r < WORLD(&call); r++) {
    sent[r] = got[r] = part(&call, own + r);
    sent_at[r] = packed ? sends : 0;  // what is sent may overlap
    sends = packed ? sends + sent[r] : 2 * call.count;
    got_at[r] = recvs;
    recvs += got[r] + (packed ? 0 : 1);
  }
  call.in_place = 0;
  lay_out(&call, sends, recvs, 0, 0);
  for (size_t r = 0; r < WORLD(&call); r++) {
    size_t from = 0;  // where the part for this rank begins in what rank r sends
    for (size_t k = 0; packed && k < own; k++) {
      from += part(&call, r + k);
    }
    fill(call.want + got_at[r], (int32_t)r, from, got[r]);
  }
  finish(&call, "all_to_allv",
         vt_comm_all_to_allv(COMM(&call), call.send, sent, packed ? NULL : sent_at, call.recv, got, packed ? NULL : got_at,
                             VT_DTYPE_I32, NULL),
         recvs);
}

static void all_ops_rank(vt_case *c, int32_t rank, void *arg) {
  static void (*const tries[])(one_call call) = {
      try_reduce,     try_broadcast,   try_gather,          try_scatter,     try_reduce_scatter,
      try_all_to_all, try_all_gatherv, try_reduce_scatterv, try_all_to_allv,
  };
  ops_run *run = arg;
  (void)c;
  for (size_t n = 0; n < COUNTS; n++) {
    for (int32_t variant = 0; variant < 2 * run->rig->world; variant++) {
      for (size_t op = 0; op < sizeof tries / sizeof tries[0]; op++) {
        tries[op]((one_call){.run = run, .rank = rank, .count = counts_tried[n], .root = variant / 2, .in_place = variant % 2});
      }
    }
  }
}

static void all_ops(vt_case *c, int32_t world, const char *algorithms) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.algorithms = algorithms;
  ops_run run = {.rig = rig_begin(c, world, &options)};
  size_t most = 4 * (2 * counts_tried[COUNTS - 1] + 1) * (size_t)world;
  for (int32_t r = 0; r < world; r++) {
    run.send[r] = space_begin(c, most);
    run.recv[r] = space_begin(c, most);
    run.expected[r] = space_begin(c, most);
  }
  rig_run(run.rig, all_ops_rank, &run);
}

static void other_collectives_world1(vt_case *c) {
  all_ops(c, 1, NULL);
}
static void other_collectives_world2(vt_case *c) {
  all_ops(c, 2, NULL);
}
static void other_collectives_world3(vt_case *c) {
  all_ops(c, 3, NULL);
}
static void other_collectives_world5(vt_case *c) {
  all_ops(c, 5, NULL);
}

// The same without posts, so that the direct algorithms serve small calls too, and with each choice there is.
static void other_collectives_by_direct_algorithms(vt_case *c) {
  all_ops(c, 3, "reduce:root,broadcast:pull,gather:pull,scatter:pull,reduce_scatter:parts,all_to_all:pairs,all_gatherv:pull");
  all_ops(c, 4, "reduce:slices,reduce_scatterv:parts");
}

static void all_that_fits_is_posted_where_ranks_share_processors(vt_case *c) {
  cpu_set_t set;
  char text[2048];
  EXPECT_EQ(c, 0, sched_getaffinity(0, sizeof set, &set));
  int32_t cpus = CPU_COUNT(&set);
  const char *apart = cpus < 2 ? "all_reduce: post up to 1024 bytes, slices\n" : "all_reduce: post up to 128 bytes, slices\n";
  (void)vt_comm_group_describe_algorithms(vt_test_group(c, 2, NULL), text, sizeof text);
  EXPECT_TRUE(c, strstr(text, apart) != NULL);
  (void)vt_comm_group_describe_algorithms(vt_test_group(c, cpus + 1, NULL), text, sizeof text);
  EXPECT_TRUE(c, strstr(text, "all_reduce: post up to 1024 bytes, slices\n") != NULL);
}

static void algorithms_are_chosen_by_name_and_told(vt_case *c) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  char text[2048];
  vt_comm_group *group = vt_test_group(c, 2, &options);
  size_t length = vt_comm_group_describe_algorithms(group, text, sizeof text);
  EXPECT_EQ(c, strlen(text), length);
  EXPECT_TRUE(c, strstr(text, "reduce: post up to 1024 bytes, root up to 8192 bytes, slices\n") != NULL);
  options.algorithms = "reduce:root,all_reduce:post";
  group = vt_test_group(c, 2, &options);
  (void)vt_comm_group_describe_algorithms(group, text, sizeof text);
  EXPECT_TRUE(c, strstr(text, "all_reduce: post up to 1024 bytes, slices\n") != NULL);
  EXPECT_TRUE(c, strstr(text, "\nreduce: root\n") != NULL);
  static const char *const wrong[] = {"reduce", "reduce:", "reduce:best", "send:post", "reduce:root,,", ":post", "nothing:post"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    options.algorithms = wrong[i];
    vt_comm_group *none = NULL;
    EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "names no algorithm of an operation", vt_comm_group_create(2, &options, &none));
    EXPECT_TRUE(c, none == NULL);
  }
}

// What one rank gets wrong in a call of all_to_allv or all_gatherv.
static void parts_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  size_t counts[3] = {4, 5, 6};
  size_t zero[3] = {0};
  int32_t data[32] = {0};
  int32_t out[32];
  memset(out, 1, sizeof out);
  counts[0] += rank == 2;
  vt_status status = vt_comm_all_gatherv(rig->comms[rank], rig->queues[rank], data, out, counts, NULL, VT_DTYPE_I32, NULL);
  EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 has 4 elements for rank 2, and rank 2 expects 5", rig_finish(rig, rank, status));
  rig_renew_queue(rig, rank);
  zero[1] = rank == 0 ? 3 : 0;
  status = vt_comm_all_to_allv(rig->comms[rank], rig->queues[rank], data, zero, NULL, out, counts, NULL, VT_DTYPE_I32, NULL);
  EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 has 0 elements for rank 0, and rank 0 expects 4", rig_finish(rig, rank, status));
  for (size_t i = 0; i < 32; i++) {
    EXPECT_EQ(c, 0x01010101, out[i]);
  }
  rig_renew_queue(rig, rank);
  status = vt_comm_broadcast(rig->comms[rank], rig->queues[rank], out, 2, VT_DTYPE_I32, rank == 1 ? 2 : 0, NULL);
  EXPECT_FAILS(c, VT_ERR_MISMATCH, "rank 0 called broadcast i32 root 0 count 2, rank 1 called broadcast i32 root 2 count 2",
               rig_finish(rig, rank, status));
}

static void other_counts_and_other_roots_are_a_mismatch(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  rig_run(rig, parts_rank, rig);
  rig_expect_usable(rig);
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_ops[] = {
    ROW(other_collectives_world1, 0),
    ROW(other_collectives_world2, 0),
    ROW(other_collectives_world3, 0),
    ROW(other_collectives_world5, NEED_NO_TSAN),
    ROW(other_collectives_by_direct_algorithms, NEED_NO_TSAN),
    ROW(all_that_fits_is_posted_where_ranks_share_processors, 0),
    ROW(algorithms_are_chosen_by_name_and_told, 0),
    ROW(other_counts_and_other_roots_are_a_mismatch, 0),
    VT_TEST_END,
};
