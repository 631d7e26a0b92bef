// move.c: schedules that only move data. Each rank fetches what it is to have. See algo.h.
#include "comm/algo/algo.h"

static const vt__algo_part *part(const vt__algo_call *call, int32_t owner, int32_t peer) {
  return &call->parts(call->user, owner)[peer];
}

// Ranks begin at different peers, so they don't all read the same memory at once.
static int32_t peer_at(const vt__algo_call *call, size_t index) {
  return (int32_t)(((size_t)call->rank + index) % (size_t)call->world);
}

// A rank's own data needs no detour over its post.
static vt__algo_place source_at(const vt__algo_call *call, vt__algo_buffer source, int32_t rank, size_t at) {
  return (vt__algo_place){rank, rank == call->rank ? VT__ALGO_SEND : source, at};
}

static bool fetch(const vt__algo_call *call, size_t bytes, vt__algo_place from, size_t to, vt__algo_action *out) {
  *out = (vt__algo_action){.kind = VT__ALGO_COPY, .step = 1, .bytes = bytes, .from = from, .to = {call->rank, VT__ALGO_RECV, to}};
  return true;
}

bool vt__algo_do_nothing(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  (void)call, (void)source, (void)index, (void)out;
  return false;
}

bool vt__algo_do_alone(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  vt__algo_part whole = {call->bytes, 0, call->bytes, 0};
  const vt__algo_part *own = call->parts == NULL ? &whole : part(call, 0, 0);
  return index == 0 && fetch(call, own->recv_bytes, source_at(call, source, 0, own->send_at), own->recv_at, out);
}

bool vt__algo_broadcast(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return index == 0 && call->rank != call->root && fetch(call, call->bytes, source_at(call, source, call->root, 0), 0, out);
}

bool vt__algo_all_gather(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  int32_t peer = peer_at(call, index);
  return index < (size_t)call->world && fetch(call, call->bytes, source_at(call, source, peer, 0), (size_t)peer * call->bytes, out);
}

bool vt__algo_gather(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  return call->rank == call->root && vt__algo_all_gather(call, source, index, out);
}

bool vt__algo_scatter(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  size_t at = (size_t)call->rank * call->bytes;
  return index == 0 && fetch(call, call->bytes, source_at(call, source, call->root, at), 0, out);
}

bool vt__algo_all_gatherv(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  int32_t peer = peer_at(call, index);
  const vt__algo_part *own = part(call, call->rank, peer);
  return index < (size_t)call->world && fetch(call, own->recv_bytes, source_at(call, source, peer, 0), own->recv_at, out);
}

bool vt__algo_all_to_all(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  int32_t peer = peer_at(call, index);
  size_t at = (size_t)call->rank * call->bytes;
  return index < (size_t)call->world &&
         fetch(call, call->bytes, source_at(call, source, peer, at), (size_t)peer * call->bytes, out);
}

bool vt__algo_all_to_allv(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  int32_t peer = peer_at(call, index);
  const vt__algo_part *own = part(call, call->rank, peer);
  size_t at = part(call, peer, call->rank)->send_at;
  return index < (size_t)call->world && fetch(call, own->recv_bytes, source_at(call, source, peer, at), own->recv_at, out);
}

// Ranks may be in place, so a part must be read before the peer's takes its place: both of one place are in one pair of hands. The
// lower rank of a pair swaps the first half, the higher one the second.
bool vt__algo_all_to_all_pairs(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out) {
  int32_t peer = peer_at(call, index);
  size_t own_at = (size_t)call->rank * call->bytes;
  size_t peer_at = (size_t)peer * call->bytes;
  if (index >= (size_t)call->world) {
    return false;
  }
  if (peer == call->rank) {
    return fetch(call, call->bytes, source_at(call, source, peer, own_at), own_at, out);
  }
  size_t half = call->bytes / 2 / VT__ALGO_CUT_BYTES * VT__ALGO_CUT_BYTES;
  size_t begin = call->rank < peer ? 0 : half;
  *out = (vt__algo_action){.kind = VT__ALGO_SWAP,
                           .step = 1,
                           .bytes = call->rank < peer ? half : call->bytes - half,
                           .from = {call->rank, VT__ALGO_SEND, peer_at + begin},
                           .to = {peer, VT__ALGO_RECV, own_at + begin}};
  return true;
}
