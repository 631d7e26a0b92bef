// table.c: which algorithm serves what, and what every schedule begins with. See algo.h.
#include "comm/algo/algo.h"

const vt__algo vt__algo_alone = {"alone", SIZE_MAX, false, 1, vt__algo_do_alone};

#define POST_UP_TO(bytes, fn) \
  { "post", bytes, true, 1, fn }
#define POST(fn) POST_UP_TO(VT__ALGO_POST_BYTES, fn)
#define UP_TO(bytes, name, fn) \
  { name, bytes, false, 1, fn }
#define DIRECT(name, fn) UP_TO(SIZE_MAX, name, fn)

#define MEETING \
  { "post", SIZE_MAX, true, 1, vt__algo_do_nothing }

// The size of a reduction up to which the root alone is faster than all ranks that write into its memory.
#define ROOT_ALONE_BYTES 8192

// The size up to which every rank reduces all of the posts, in place of its own share of the buffers.
#define REDUCE_ALL_BYTES 128

#define MOST 3  // algorithms of one operation

static const vt__algo lists[VT_COMM_OP_COUNT][MOST] = {
    [VT_COMM_OP_ALL_REDUCE] = {POST_UP_TO(REDUCE_ALL_BYTES, vt__algo_all_reduce), DIRECT("slices", vt__algo_all_reduce_slices)},
    [VT_COMM_OP_REDUCE] = {POST(vt__algo_reduce_root), UP_TO(ROOT_ALONE_BYTES, "root", vt__algo_reduce_root),
                           DIRECT("slices", vt__algo_reduce_slices)},
    [VT_COMM_OP_BROADCAST] = {POST(vt__algo_broadcast), DIRECT("pull", vt__algo_broadcast)},
    [VT_COMM_OP_ALL_GATHER] = {POST(vt__algo_all_gather), DIRECT("pull", vt__algo_all_gather)},
    [VT_COMM_OP_GATHER] = {POST(vt__algo_gather), DIRECT("pull", vt__algo_gather)},
    [VT_COMM_OP_SCATTER] = {POST(vt__algo_scatter), DIRECT("pull", vt__algo_scatter)},
    [VT_COMM_OP_REDUCE_SCATTER] = {POST_UP_TO(REDUCE_ALL_BYTES, vt__algo_reduce_scatter), DIRECT("parts", vt__algo_reduce_scatter)},
    [VT_COMM_OP_ALL_TO_ALL] = {POST(vt__algo_all_to_all), DIRECT("pairs", vt__algo_all_to_all_pairs)},
    [VT_COMM_OP_ALL_GATHERV] = {POST(vt__algo_all_gatherv), DIRECT("pull", vt__algo_all_gatherv)},
    [VT_COMM_OP_REDUCE_SCATTERV] = {POST_UP_TO(REDUCE_ALL_BYTES, vt__algo_reduce_scatterv),
                                    DIRECT("parts", vt__algo_reduce_scatterv)},
    [VT_COMM_OP_ALL_TO_ALLV] = {DIRECT("pull", vt__algo_all_to_allv)},
    [VT_COMM_OP_BARRIER] = {MEETING},
    [VT_COMM_OP_FINALIZE] = {MEETING},
    [VT_COMM_OP_SPLIT] = {POST(vt__algo_all_gather), DIRECT("pull", vt__algo_all_gather)},  // what all ranks want
};

const vt__algo *vt__algo_list(vt_comm_op op) {
  bool known = op >= 0 && op < VT_COMM_OP_COUNT && lists[op][0].name != NULL;
  return known ? lists[op] : NULL;
}

static size_t largest_part(const vt__algo_call *call) {
  size_t largest = 0;
  const vt__algo_part *parts = call->parts(call->user, call->rank);
  for (int32_t r = 0; r < call->world; r++) {
    largest = parts[r].recv_bytes > largest ? parts[r].recv_bytes : largest;
  }
  return largest;
}

static size_t all_parts(const vt__algo_call *call) {
  const vt__algo_part *last = &call->parts(call->user, call->rank)[call->world - 1];
  return last->send_at + last->send_bytes;
}

size_t vt__algo_weight(const vt__algo_call *call) {
  switch (call->op) {
    case VT_COMM_OP_BARRIER:
    case VT_COMM_OP_FINALIZE:
      return 0;
    case VT_COMM_OP_SCATTER:
    case VT_COMM_OP_REDUCE_SCATTER:
    case VT_COMM_OP_ALL_TO_ALL:
      return (size_t)call->world * call->bytes;
    case VT_COMM_OP_ALL_GATHERV:
      return largest_part(call);
    case VT_COMM_OP_REDUCE_SCATTERV:
      return all_parts(call);
    case VT_COMM_OP_ALL_TO_ALLV:
      return SIZE_MAX;
    default:
      return call->bytes;
  }
}

const vt__algo *vt__algo_choose(const vt__algo_call *call, size_t weight, const vt__algo_wishes *wishes) {
  if (call->world == 1) {
    return &vt__algo_alone;
  }
  const vt__algo *algo = lists[call->op];
  const vt__algo *wish = wishes->number[call->op] == 0 ? NULL : &algo[wishes->number[call->op] - 1];
  if (wish != NULL && (!wish->posts || weight <= vt__algo_reach(wish, true))) {
    return wish;
  }
  while (weight > vt__algo_reach(algo, call->crowded)) {
    algo++;
  }
  return algo;
}

size_t vt__algo_posted(const vt__algo_call *call) {
  switch (call->op) {
    case VT_COMM_OP_BROADCAST:
    case VT_COMM_OP_SCATTER:
      return call->rank == call->root ? vt__algo_weight(call) : 0;
    case VT_COMM_OP_ALL_GATHERV:
      return call->parts(call->user, call->rank)[call->rank].recv_bytes;
    default:
      return vt__algo_weight(call);
  }
}

bool vt__algo_get(const vt__algo *algo, const vt__algo_call *call, size_t index, vt__algo_action *out) {
  if (!algo->posts || index > 0) {
    return vt__algo_get_later(algo, call, index - (algo->posts ? 1 : 0), out);
  }
  *out = (vt__algo_action){.kind = VT__ALGO_COPY,
                           .step = 0,
                           .bytes = vt__algo_posted(call),
                           .from = {call->rank, VT__ALGO_SEND, 0},
                           .to = {call->rank, VT__ALGO_POST, 0}};
  return true;
}
