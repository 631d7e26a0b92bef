// reduce.c: schedules that reduce. Whoever reduces an element reads it from all ranks, in rank order, and is the only one that
// reads or writes it; so results may take the place of what was sent. See algo.h.
#include "comm/algo/algo.h"

static bool reduce(size_t begin, size_t bytes, vt__algo_buffer source, int32_t to, size_t at, vt__algo_action *out) {
  *out = (vt__algo_action){
      .kind = VT__ALGO_REDUCE, .step = 1, .bytes = bytes, .from = {VT__ALGO_ALL, source, begin}, .to = {to, VT__ALGO_RECV, at}};
  return true;
}

// This rank's slice: whole lines of elements. The last ranks may get less, or nothing.
static bool reduce_slice(const vt__algo_call *call, vt__algo_buffer source, int32_t to, vt__algo_action *out) {
  size_t world = (size_t)call->world;
  size_t count = call->bytes / call->element;
  size_t share = (count / world + (count % world != 0)) * call->element;
  size_t slice = (share + VT__ALGO_CUT_BYTES - 1) / VT__ALGO_CUT_BYTES * VT__ALGO_CUT_BYTES;
  size_t before = (size_t)call->rank * slice;
  size_t begin = before < call->bytes ? before : call->bytes;
  size_t left = call->bytes - begin;
  return reduce(begin, left < slice ? left : slice, source, to, begin, out);
}

bool vt__algo_all_reduce(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return index == 0 && reduce(0, call->bytes, source, call->rank, 0, out);
}

bool vt__algo_all_reduce_slices(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return index == 0 && reduce_slice(call, source, VT__ALGO_ALL, out);
}

bool vt__algo_reduce_root(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return call->rank == call->root && vt__algo_all_reduce(call, source, index, out);
}

bool vt__algo_reduce_slices(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return index == 0 && reduce_slice(call, source, call->root, out);
}

bool vt__algo_reduce_scatter(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return index == 0 && reduce((size_t)call->rank * call->bytes, call->bytes, source, call->rank, 0, out);
}

bool vt__algo_reduce_scatterv(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  const vt__algo_part *own = &call->parts(call->user, call->rank)[call->rank];
  return index == 0 && reduce(own->send_at, own->send_bytes, source, call->rank, 0, out);
}
