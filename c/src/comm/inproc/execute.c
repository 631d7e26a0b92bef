// execute.c: executing the actions of a schedule: on the posts, or directly between the ranks' buffers.
#include "comm/inproc/execute.h"

#include <string.h>

#include "comm/parts.h"
#include "comm/reduce.h"

#define SWAP_BYTES 4096

// A step in progress.
typedef struct execution {
  const vt__comm_op *op;
  size_t chunk;  // the next one, for the hook
} execution;

const vt__algo_part *vt__execute_parts(const void *user, int32_t rank) {
  const vt__comm_op *op = user;
  return rank == op->call.comm->rank ? op->call.parts->of : vt__posted_parts(op, rank);
}

// A place in memory. What lies in a post, or belongs to this rank, needs no addresses of peers.
static char *find(const vt__comm_op *op, int32_t rank, vt__algo_buffer buffer, size_t at) {
  vt__post *post = &vt__inproc_of(op)->ranks[rank].posts[op->number & 1];
  vt__post_addresses addresses = {.send = op->call.send, .recv = op->call.recv};
  if (buffer == VT__ALGO_POST) {
    return (char *)post->payload + at;
  }
  if (rank != op->call.comm->rank) {
    memcpy(&addresses, post->payload, sizeof(addresses));
  }
  // As a number: of nothing, the address may be NULL.
  return (char *)((buffer == VT__ALGO_SEND ? (uintptr_t)addresses.send : (uintptr_t)addresses.recv) + at);
}

static char *find_place(const vt__comm_op *op, vt__algo_place place) {
  return find(op, place.rank, place.buffer, place.at);
}

// Whether a place is in the buffer of a peer.
static bool is_peers(const vt__comm_op *op, vt__algo_place place) {
  return place.rank != op->call.comm->rank && place.buffer != VT__ALGO_POST;
}

// Inside the gate, the rank looks at it all the time.
static bool must_stop(const execution *run) {
  return run->op->inside && VT_UNLIKELY(vt__gate_is_closed(run->op));
}

static bool copy(execution *run, const vt__algo_action *action) {
  char *to = find_place(run->op, action->to);
  const char *from = find_place(run->op, action->from);
  bool with_peer = is_peers(run->op, action->from) || is_peers(run->op, action->to);
  for (size_t at = 0; to != from && at < action->bytes; at += VT__CHUNK_BYTES) {
    if (with_peer) {
      vt__inproc_chunk_hook(run->op, run->chunk++);
    }
    if (must_stop(run)) {
      return false;
    }
    memcpy(to + at, from + at, vt__min_size(VT__CHUNK_BYTES, action->bytes - at));
  }
  return true;
}

// Swaps over a block that fits the cache: any of the four places may be the same as its partner.
static bool swap(execution *run, const vt__algo_action *action) {
  unsigned char block[SWAP_BYTES];
  const char *a_send = find_place(run->op, action->from);
  char *a_recv = find(run->op, action->from.rank, VT__ALGO_RECV, action->from.at);
  const char *b_send = find(run->op, action->to.rank, VT__ALGO_SEND, action->to.at);
  char *b_recv = find_place(run->op, action->to);
  for (size_t at = 0; at < action->bytes; at += sizeof(block)) {
    size_t bytes = vt__min_size(sizeof(block), action->bytes - at);
    if (at % VT__CHUNK_BYTES == 0) {
      vt__inproc_chunk_hook(run->op, run->chunk++);
    }
    if (must_stop(run)) {
      return false;
    }
    memcpy(block, a_send + at, bytes);
    memmove(a_recv + at, b_send + at, bytes);
    memcpy(b_recv + at, block, bytes);
  }
  return true;
}

// Fills in where all ranks' elements are, and answers how many places the results go to.
static int32_t find_operands(const vt__comm_op *op, const vt__algo_action *action, const void **sources, void **outs) {
  for (int32_t r = 0; r < op->call.comm->world; r++) {
    sources[r] = find(op, r, action->from.buffer, action->from.at);
  }
  if (action->to.rank != VT__ALGO_ALL) {
    outs[0] = find_place(op, action->to);
    return 1;
  }
  for (int32_t r = 0; r < op->call.comm->world; r++) {
    outs[r] = find(op, r, action->to.buffer, action->to.at);
  }
  return op->call.comm->world;
}

static bool reduce(execution *run, const vt__algo_action *action) {
  const vt__comm_op *op = run->op;
  const void *sources[VT_COMM_MAX_WORLD];
  void *outs[VT_COMM_MAX_WORLD];
  int32_t out_count = find_operands(op, action, sources, outs);
  for (size_t at = 0; at < action->bytes; at += VT__CHUNK_BYTES) {
    if (action->from.buffer != VT__ALGO_POST) {
      vt__inproc_chunk_hook(op, run->chunk++);
    }
    if (must_stop(run)) {
      return false;
    }
    vt__reduce_operands operands = {sources, outs, at, at, op->call.comm->world, out_count};
    vt__reduce(op->call.dtype, op->call.reduce_op, &operands, vt__min_size(VT__CHUNK_BYTES, action->bytes - at));
  }
  return true;
}

static bool execute(execution *run, const vt__algo_action *action) {
  switch (action->kind) {
    case VT__ALGO_REDUCE:
      return reduce(run, action);
    case VT__ALGO_SWAP:
      return swap(run, action);
    default:
      return copy(run, action);
  }
}

void vt__execute_post(const vt__comm_op *op, vt__post *post) {
  size_t bytes = vt__algo_posted(&op->schedule);
  if (bytes > 0) {
    memcpy(post->payload, op->call.send, bytes);
  }
}

bool vt__execute(const vt__comm_op *op) {
  execution run = {.op = op};
  vt__algo_action action;
  for (size_t i = 0; vt__algo_get_later(op->algo, &op->schedule, i, &action); i++) {
    if (action.bytes > 0 && !execute(&run, &action)) {
      return false;
    }
  }
  return true;
}
