// execute.c: executing the actions of a schedule: on the posts, or directly between the ranks' buffers.
#include "comm/inproc/execute.h"

#include <string.h>

#include "base/fpenv.h"
#include "comm/parts.h"
#include "comm/reduce.h"

// A step in progress.
typedef struct execution {
  const vt__comm_op *op;
  const vt__reduce_kernel *kernel;  // of operations that reduce
  size_t chunk;                     // the next one, for the hook
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
  unsigned char block[VT__REDUCE_BLOCK_BYTES];
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

// Reduces `count` elements, at most a block, at `at` of all ranks' buffers into `out`.
static void reduce_block(const execution *run, vt__algo_buffer buffer, size_t at, void *out, size_t count) {
  const vt__comm_op *op = run->op;
  int32_t world = op->call.comm->world;
  const char *a = find(op, 0, buffer, at);
  const char *b = find(op, 1, buffer, at);
  if (world == 2) {
    run->kernel->pair(out, a, b, count);
    return;
  }
  _Alignas(VT_CACHE_LINE) unsigned char acc[VT__REDUCE_ACC_BYTES];
  run->kernel->first(acc, a, b, count);
  for (int32_t r = 2; r < world; r++) {
    run->kernel->next(acc, find(op, r, buffer, at), count);
  }
  run->kernel->finish(out, acc, count, world);
}

// Brings a reduced block to where it is to be.
static void store(const execution *run, vt__algo_place to, size_t at, const void *block, size_t bytes) {
  int32_t first = to.rank == VT__ALGO_ALL ? 0 : to.rank;
  int32_t end = to.rank == VT__ALGO_ALL ? run->op->call.comm->world : to.rank + 1;
  for (int32_t r = first; r < end; r++) {
    memcpy(find(run->op, r, to.buffer, to.at + at), block, bytes);
  }
}

static bool reduce(execution *run, const vt__algo_action *action) {
  _Alignas(VT_CACHE_LINE) unsigned char block[VT__REDUCE_BLOCK_BYTES];
  for (size_t at = 0; at < action->bytes; at += sizeof(block)) {
    size_t bytes = vt__min_size(sizeof(block), action->bytes - at);
    if (at % VT__CHUNK_BYTES == 0) {
      vt__inproc_chunk_hook(run->op, run->chunk++);
    }
    if (must_stop(run)) {
      return false;
    }
    vt__fpenv before = vt__fpenv_enter();
    reduce_block(run, action->from.buffer, action->from.at + at, block, bytes / run->op->schedule.element);
    vt__fpenv_leave(before);
    store(run, action->to, at, block, bytes);
  }
  return true;
}

// Posts are nobody's result, so what is reduced from them goes where it belongs at once.
static bool reduce_posts(const execution *run, const vt__algo_action *action) {
  vt__fpenv before = vt__fpenv_enter();
  reduce_block(run, VT__ALGO_POST, action->from.at, find_place(run->op, action->to), action->bytes / run->op->schedule.element);
  vt__fpenv_leave(before);
  return true;
}

static bool execute(execution *run, const vt__algo_action *action) {
  switch (action->kind) {
    case VT__ALGO_REDUCE:
      run->kernel = vt__reduce_kernel_find(run->op->call.dtype, run->op->call.reduce_op);
      return action->from.buffer == VT__ALGO_POST ? reduce_posts(run, action) : reduce(run, action);
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
