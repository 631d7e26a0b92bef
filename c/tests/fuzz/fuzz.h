// fuzz.h: random programs of calls, made from bytes, against models of what they do.
//
// Every call's status is checked: exactly, where the model knows it, else against the set of those that are possible. Bytes that
// queues and graphs write are compared with a model; at the end of a program nothing may be alive. Handles may be wrong or dead,
// pointers to memory are real ones or NULL.
#ifndef VT_TESTS_FUZZ_H
#define VT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <vllm_vt/vt.h>

#include "../capture_model.h"

// The bytes of one program. Behind their end come zeros.
typedef struct fuzz_input {
  const uint8_t *data;
  size_t left;
} fuzz_input;

uint8_t fuzz_byte(fuzz_input *in);
static inline uint8_t fuzz_below(fuzz_input *in, uint8_t limit) {
  return (uint8_t)(fuzz_byte(in) % limit);
}

// Sets of statuses.
#define ONE_OF(status) (1u << ((status) + 16))
enum {
  FUZZ_OK = ONE_OF(VT_OK),
  FUZZ_NOT_READY = ONE_OF(VT_NOT_READY),
  FUZZ_INVALID = ONE_OF(VT_ERR_INVALID_ARGUMENT),
  FUZZ_NOT_FOUND = ONE_OF(VT_ERR_NOT_FOUND),
  FUZZ_EXISTS = ONE_OF(VT_ERR_ALREADY_EXISTS),
  FUZZ_MOMENT = ONE_OF(VT_ERR_FAILED_PRECONDITION),
  FUZZ_MEMORY = ONE_OF(VT_ERR_OUT_OF_MEMORY),
  FUZZ_UNSUPPORTED = ONE_OF(VT_ERR_UNSUPPORTED),
  FUZZ_FAILED = ONE_OF(VT_ERR_INTERNAL),  // what failing host functions answer
  FUZZ_COMM = ONE_OF(VT_ERR_MISMATCH) | ONE_OF(VT_ERR_ABORTED) | ONE_OF(VT_ERR_PEER_LOST) | ONE_OF(VT_ERR_TIMEOUT),
};

// Ends the program unless `status` is in `allowed`, and returns it. Counts the call.
#define CALL(allowed, call) fuzz_check(__FILE__, __LINE__, #call, (allowed), (call))
vt_status fuzz_check(const char *file, int line, const char *call, uint32_t allowed, vt_status status);

// Ends the program where something isn't so.
#define MUST(condition) fuzz_must(__FILE__, __LINE__, #condition, (condition) ? 1 : 0)
void fuzz_must(const char *file, int line, const char *what, int held);

// Waits until `count` handles of a kind are alive at most.
void fuzz_await_handles(vt_handle_kind kind, size_t count);

// Queues, events, captures and graphs, and the bytes that they write.
enum { STREAM_BYTES = 96, STREAM_GRAPHS = 4, STREAM_OPS = 32 };

typedef enum stream_kind { STREAM_SET, STREAM_COPY, STREAM_COUNT, STREAM_FAIL } stream_kind;

// One operation on the two buffers of a queue: on the first, or from the second to the first.
typedef struct stream_op {
  stream_kind kind;
  uint8_t queue;
  uint8_t at;
  uint8_t from;
  uint8_t bytes;
  uint8_t value;
} stream_op;

typedef struct stream_graph {
  vt_graph *graph;  // NULL: none, or the queue keeps it
  uint32_t count;
  int is_there;
  int cut;  // it has more operations than fit
  int device;
  int branched;  // more than one queue
  int fails;
  stream_op ops[STREAM_OPS];
} stream_graph;

typedef struct stream_queue {
  vt_queue *queue;  // NULL: dropped
  int async;
  int may_be_full;
  int failed;
  int device;
  stream_graph stored;
  unsigned char *buffers[2];
  unsigned char expected[2][STREAM_BYTES];
  int known;  // whether `expected` holds
} stream_queue;

typedef struct stream {
  capture_model captures;
  stream_graph recorded[MODEL_QUEUES];  // by capture
  stream_queue queues[MODEL_QUEUES];
  vt_event *events[MODEL_EVENTS];
  int event_failed[MODEL_EVENTS];
  stream_graph graphs[STREAM_GRAPHS];
} stream;

void stream_begin(stream *s, fuzz_input *in);
void stream_step(stream *s, fuzz_input *in);
void stream_end(stream *s);
int stream_is_capturing(const stream *s);  // whether this thread has a capture open
// Launches and replays (stream_graph.c).
void stream_launch(stream *s, fuzz_input *in);
void stream_replay(stream *s, fuzz_input *in);
void stream_record_op(stream *s, const stream_op *op);
void stream_end_capture(stream *s, int q, int to_slot);
void stream_apply(stream *s, const stream_op *op);
void stream_settle(stream *s);
void stream_compare(stream *s);
uint32_t stream_possible(const stream_queue *q);  // what a submission may answer on a queue that isn't capturing

// The pool, memory with options, and the validation layer (memory.c).
enum { MEMORY_BLOCKS = 5 };

typedef struct pooled {
  void *ptr;
  size_t bytes;
  vt_queue *user;  // its only use is work of this queue
  int device;
} pooled;

typedef struct plain_block {
  void *ptr;
  size_t bytes;
  int32_t kind;
  uint32_t flags;
} plain_block;

typedef struct memory {
  pooled pooled[MEMORY_BLOCKS];
  plain_block plain[MEMORY_BLOCKS];
  uint64_t requested[2];  // of each device's pool
} memory;

void memory_step(memory *m, stream *s, fuzz_input *in);
void memory_end(memory *m);

// Groups of up to three ranks that one thread drives.
typedef struct ranks {
  vt_comm_group *group;
  int32_t world;
  int async;
  int spoiled;  // by a failure: any status may come
  vt_queue *queues[3];
  float send[3][40];
  float recv[3][120];
} ranks;

void ranks_step(ranks *r, fuzz_input *in, int capturing);
void ranks_end(ranks *r);

// Arenas, blocks, providers, types, hooks: what needs no queue.
typedef struct plain {
  vt_arena *arenas[2];
  size_t capacity[2];
  size_t used[2];
  vt_arena_mark marks[2];
  int marked[2];
  void *blocks[6];
  int kinds[6];
} plain;

void plain_step(plain *p, fuzz_input *in, int capturing);
void plain_end(plain *p);
// Calls with handles that are NULL, of another kind, or dead.
void plain_wrong_handles(fuzz_input *in, void *const wrong[], size_t count);

// Runs one program; and how many have run. Their number, and that of their calls, is printed when the process ends.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
uint64_t fuzz_programs(void);

#endif
