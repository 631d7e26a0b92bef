// harness.h: what every program of the benchmark shares: ranks, a barrier, inputs, times and the check of results.
//
// A program starts one rank per process (MPI, oneCCL) or per thread (ours, the limit), and each calls harness_serve(). Rank 0 then
// reads commands from stdin and writes one line of JSON per command to stdout; the other ranks sleep in between, so that programs
// can wait beside each other while one of them is measured.
//
//   command  OP DTYPE BYTES CALLS MILLISECONDS    at most so many timed calls, and about so long
//   answer   {"us": [...], "correct": true}, or {"skip": "why"}
#ifndef PEERS_HARNESS_H
#define PEERS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HARNESS_MAX_WORLD = 8, HARNESS_MAX_CALLS = 2000 };

typedef enum harness_op {
  OP_ALL_REDUCE,
  OP_ALL_GATHER,
  OP_REDUCE_SCATTER,
  OP_BROADCAST,
  OP_ALL_TO_ALL,
  OP_PING_PONG,  // rank 0 sends, then rank 1; the time is half of both
  OP_EMPTY,      // nothing: what the harness itself takes
  OP_LINE,       // a cache line goes there and back `bytes` times
  OP_COUNT,
} harness_op;

// One row. The result is in place in all_reduce and broadcast, and apart from the input elsewhere.
typedef struct harness_case {
  harness_op op;
  bool bf16;
  size_t bytes;  // of the larger of a rank's two buffers
  size_t count;  // elements of that
  size_t part;   // count / world
} harness_case;

typedef struct harness_shared harness_shared;

typedef struct harness_rank {
  int rank;
  int world;
  void *library;  // the program's own
  harness_shared *shared;
  void *send;
  void *recv;
  harness_case row;
} harness_rank;

typedef struct harness_library {
  const char *version;
  const char *transport;
  // Why it has no such call; NULL = it has.
  const char *(*refuses)(const harness_rank *rank);
  // The timed call. Ends the program with a message if the library fails.
  void (*call)(const harness_rank *rank);
} harness_library;

// Puts the calling thread on the processor of its rank, round robin, and answers commands until stdin ends. `rank`, `world` and
// `library` are set by the caller. The environment's PEERS_SHARED names the file of zeros that the ranks share.
void harness_serve(harness_rank *rank, const harness_library *library);

// Runs `body` on `world` threads, for libraries whose ranks are threads.
void harness_threads(int world, void (*body)(int rank, int world));

// Buffers of any rank, where all ranks are threads. Only between the barriers of a measurement, that is inside `call`.
void *harness_send_of(const harness_rank *rank, int peer);
void *harness_recv_of(const harness_rank *rank, int peer);

size_t harness_element_bytes(const harness_case *row);

// Ends the program if `ok` is false.
void harness_require(bool ok, const char *what, const char *why);

#ifdef __cplusplus
}
#endif

#endif
