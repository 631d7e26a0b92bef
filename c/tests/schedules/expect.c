// expect.c: what each operation must leave in the receive buffers, said without the schedules.
#include "checker.h"

#define SUM (UINT64_C(1) << 63)
#define RANK_SHIFT 48

symbol symbol_initial(int32_t rank, size_t memory_at) {
  return (uint64_t)(rank + 1) << RANK_SHIFT | memory_at;
}

symbol symbol_sum(size_t send_at) {
  return SUM | send_at;
}

bool scenario_is_rooted(vt_comm_op op) {
  return op == VT_COMM_OP_REDUCE || op == VT_COMM_OP_BROADCAST || op == VT_COMM_OP_GATHER || op == VT_COMM_OP_SCATTER;
}

bool scenario_has_parts(vt_comm_op op) {
  return op == VT_COMM_OP_ALL_GATHERV || op == VT_COMM_OP_REDUCE_SCATTERV || op == VT_COMM_OP_ALL_TO_ALLV;
}

static const vt__algo_part *parts_of(const void *user, int32_t rank) {
  return ((const scenario *)user)->parts[rank];
}

vt__algo_call scenario_call(const scenario *s, int32_t rank) {
  vt__algo_call call = s->call;
  call.rank = rank;
  call.parts = scenario_has_parts(call.op) ? parts_of : NULL;
  call.user = s;
  return call;
}

static size_t end_of_parts(const scenario *s, int32_t rank, bool sent) {
  size_t end = 0;
  for (int32_t p = 0; p < s->call.world; p++) {
    const vt__algo_part *part = &s->parts[rank][p];
    size_t bytes = sent ? part->send_bytes : part->recv_bytes;
    size_t at = bytes + (sent ? part->send_at : part->recv_at);
    end = bytes > 0 && at > end ? at : end;
  }
  return end;
}

size_t send_bytes(const scenario *s, int32_t rank) {
  size_t all = (size_t)s->call.world * s->call.bytes;
  switch (s->call.op) {
    case VT_COMM_OP_BARRIER:
    case VT_COMM_OP_FINALIZE:
      return 0;
    case VT_COMM_OP_BROADCAST:
      return rank == s->call.root ? s->call.bytes : 0;
    case VT_COMM_OP_SCATTER:
      return rank == s->call.root ? all : 0;
    case VT_COMM_OP_REDUCE_SCATTER:
    case VT_COMM_OP_ALL_TO_ALL:
      return all;
    case VT_COMM_OP_ALL_GATHERV:
      return s->parts[rank][rank].recv_bytes;
    case VT_COMM_OP_REDUCE_SCATTERV:
    case VT_COMM_OP_ALL_TO_ALLV:
      return end_of_parts(s, rank, true);
    default:
      return s->call.bytes;
  }
}

size_t recv_bytes(const scenario *s, int32_t rank) {
  size_t all = (size_t)s->call.world * s->call.bytes;
  switch (s->call.op) {
    case VT_COMM_OP_BARRIER:
    case VT_COMM_OP_FINALIZE:
      return 0;
    case VT_COMM_OP_REDUCE:
      return rank == s->call.root ? s->call.bytes : 0;
    case VT_COMM_OP_GATHER:
      return rank == s->call.root ? all : 0;
    case VT_COMM_OP_ALL_GATHER:
    case VT_COMM_OP_SPLIT:
    case VT_COMM_OP_ALL_TO_ALL:
      return all;
    case VT_COMM_OP_REDUCE_SCATTERV:
      return s->parts[rank][rank].send_bytes;
    case VT_COMM_OP_ALL_GATHERV:
    case VT_COMM_OP_ALL_TO_ALLV:
      return end_of_parts(s, rank, false);
    default:
      return s->call.bytes;
  }
}

static symbol sent(const scenario *s, int32_t rank, size_t at) {
  return symbol_initial(rank, s->layouts[rank].send_at + at);
}

// With a count for every rank: the part that holds byte `at`.
static bool expected_part(const scenario *s, int32_t rank, size_t at, symbol *out) {
  for (int32_t peer = 0; peer < s->call.world; peer++) {
    const vt__algo_part *part = &s->parts[rank][peer];
    if (at >= part->recv_at && at - part->recv_at < part->recv_bytes) {
      size_t from = s->call.op == VT_COMM_OP_ALL_GATHERV ? 0 : s->parts[peer][rank].send_at;
      *out = sent(s, peer, from + at - part->recv_at);
      return true;
    }
  }
  return false;
}

// The sum over a world of one is what was sent, byte for byte.
static symbol sum(const scenario *s, size_t at) {
  return s->call.world == 1 ? sent(s, 0, at) : symbol_sum(at);
}

bool expected_symbol(const scenario *s, int32_t rank, size_t at, symbol *out) {
  size_t bytes = s->call.bytes;
  if (at >= recv_bytes(s, rank)) {
    return false;
  }
  switch (s->call.op) {
    case VT_COMM_OP_ALL_REDUCE:
    case VT_COMM_OP_REDUCE:
      *out = sum(s, at);
      return true;
    case VT_COMM_OP_REDUCE_SCATTER:
      *out = sum(s, (size_t)rank * bytes + at);
      return true;
    case VT_COMM_OP_REDUCE_SCATTERV:
      *out = sum(s, s->parts[rank][rank].send_at + at);
      return true;
    case VT_COMM_OP_BROADCAST:
      *out = sent(s, s->call.root, at);
      return true;
    case VT_COMM_OP_SCATTER:
      *out = sent(s, s->call.root, (size_t)rank * bytes + at);
      return true;
    case VT_COMM_OP_ALL_GATHER:
    case VT_COMM_OP_SPLIT:
    case VT_COMM_OP_GATHER:
      *out = sent(s, (int32_t)(at / bytes), at % bytes);
      return true;
    case VT_COMM_OP_ALL_TO_ALL:
      *out = sent(s, (int32_t)(at / bytes), (size_t)rank * bytes + at % bytes);
      return true;
    default:
      return expected_part(s, rank, at, out);
  }
}
