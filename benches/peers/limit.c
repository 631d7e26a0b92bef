// limit.c: what the machine allows: the loads and stores of an operation, shared evenly by its ranks, without any synchronisation
// but the harness's own. A limit is a cache line's way from core to core plus, from 1 KiB up, the time of this over that of an
// empty call.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { BLOCK = 1024 };

typedef struct line {
  _Alignas(128) atomic_size_t trip;
} line;

static line lines[2];

static float *send_of(const harness_rank *rank, int peer) {
  return harness_send_of(rank, peer);
}

static float *recv_of(const harness_rank *rank, int peer) {
  return harness_recv_of(rank, peer);
}

// As f32, whatever the type: the bytes are the same.
static size_t floats(size_t bytes) {
  return bytes / sizeof(float);
}

static void sum_pair(float *restrict a, float *restrict b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    a[i] = b[i] = a[i] + b[i];
  }
}

// Sums the elements [begin, begin + count), at most a block, of all inputs.
static void sum_block(const harness_rank *rank, size_t begin, size_t count, float *restrict sum) {
  memcpy(sum, send_of(rank, 0) + begin, count * sizeof(float));
  for (int r = 1; r < rank->world; r++) {
    const float *restrict from = send_of(rank, r) + begin;
    for (size_t i = 0; i < count; i++) {
      sum[i] += from[i];
    }
  }
}

static void all_reduce(const harness_rank *rank, size_t begin, size_t end) {
  if (rank->world == 2) {
    sum_pair(send_of(rank, 0) + begin, send_of(rank, 1) + begin, end - begin);
    return;
  }
  for (size_t at = begin; at < end; at += BLOCK) {
    float sum[BLOCK];
    size_t count = end - at < BLOCK ? end - at : BLOCK;
    sum_block(rank, at, count, sum);
    for (int r = 0; r < rank->world; r++) {
      memcpy(send_of(rank, r) + at, sum, count * sizeof(float));
    }
  }
}

static void reduce_scatter(const harness_rank *rank, size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += BLOCK) {
    sum_block(rank, at, end - at < BLOCK ? end - at : BLOCK, (float *)rank->recv + (at - begin));
  }
}

// Both ranks move half of each message.
static void ping_pong(const harness_rank *rank, size_t count) {
  size_t half = count / 2;
  for (int to = 1; to >= 0 && rank->rank < 2; to--) {
    size_t begin = rank->rank == 0 ? 0 : half;
    size_t moved = rank->rank == 0 ? half : count - half;
    memcpy(recv_of(rank, to) + begin, send_of(rank, 1 - to) + begin, moved * sizeof(float));
  }
}

static void line_there_and_back(const harness_rank *rank) {
  size_t first = atomic_load_explicit(&lines[rank->rank].trip, memory_order_relaxed) + 1;  // relaxed: only this rank writes it
  for (size_t trip = first; trip < first + rank->row.bytes && rank->rank < 2; trip++) {
    if (rank->rank == 0) {
      atomic_store_explicit(&lines[0].trip, trip, memory_order_release);  // release: partner is rank 1's load
    }
    // acquire: partner is the other rank's store.
    while (atomic_load_explicit(&lines[1 - rank->rank].trip, memory_order_acquire) < trip) {
    }
    if (rank->rank == 1) {
      atomic_store_explicit(&lines[1].trip, trip, memory_order_release);  // release: partner is rank 0's load
    }
  }
}

static void call(const harness_rank *rank) {
  size_t count = floats(rank->row.bytes);
  size_t part = count / (size_t)rank->world;
  size_t own = (size_t)rank->rank * part;
  size_t end = rank->rank == rank->world - 1 ? count : own + part;
  switch (rank->row.op) {
    case OP_ALL_REDUCE:
      all_reduce(rank, own, end);
      break;
    case OP_REDUCE_SCATTER:
      reduce_scatter(rank, own, own + part);
      break;
    case OP_ALL_GATHER:
    case OP_ALL_TO_ALL:
      for (int r = 0; r < rank->world; r++) {
        const float *from = send_of(rank, r) + (rank->row.op == OP_ALL_TO_ALL ? own : 0);
        memcpy((float *)rank->recv + (size_t)r * part, from, part * sizeof(float));
      }
      break;
    case OP_BROADCAST:
      for (int r = 1; r < rank->world; r++) {
        memcpy(send_of(rank, r) + own, send_of(rank, 0) + own, (end - own) * sizeof(float));
      }
      break;
    case OP_PING_PONG:
      ping_pong(rank, count);
      break;
    case OP_LINE:
      line_there_and_back(rank);
      break;
    default:
      break;
  }
}

static const char *refuses(const harness_rank *rank) {
  return rank->row.bf16 ? "its bytes are those of f32" : NULL;
}

static void body(int rank, int world) {
  static const harness_library library = {"1", "none", refuses, call};
  harness_rank state = {.rank = rank, .world = world};
  harness_serve(&state, &library);
}

int main(int argc, char **argv) {
  harness_require(argc == 2, "usage", "limit WORLD");
  harness_threads(atoi(argv[1]), body);
  return 0;
}
