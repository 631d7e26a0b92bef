// inproc.h: the state that the ranks of one process share.
//
// What one rank writes and others read stands in lines of its own. Plain fields are published by the release store of a number and
// read after its acquire load; everything that is polled is atomic.
#ifndef VT_COMM_INPROC_H
#define VT_COMM_INPROC_H

#include <stdatomic.h>

#include "base/macros.h"
#include "base/wait.h"
#include "comm/algo/algo.h"
#include "comm/inproc/group.h"
#include "comm/text.h"
#include "comm/transport.h"

// A chunk of a peer's memory that is worked on between two calls of the group's hook.
#define VT__CHUNK_BYTES ((size_t)65536)

// What ranks compare.
typedef struct vt__call_key {
  uint32_t what;     // op, dtype, reduce op
  uint16_t refused;  // the call was refused: the text says why
  int16_t root;      // -1 where there is none
  uint64_t count;    // 0 of operations with a count for every rank: their parts are compared
  uint64_t sequence;
  uint64_t provider;  // 0 = vt-native, else a hash of the name
} vt__call_key;

// What travels in place of the payload when the data doesn't.
typedef struct vt__post_addresses {
  const void *send;
  void *recv;
} vt__post_addresses;

// One publication of a rank for a collective. The first line holds all of a small call.
typedef struct vt__post {
  _Alignas(VT_NO_SHARING) _Atomic uint64_t number;  // of the operation that is published here
  vt__call_key key;
  unsigned char payload[VT__ALGO_POST_BYTES];  // elements, vt__post_addresses, or the text of a refusal
  const char *provider;
} vt__post;

// Operations of one kind of one rank, or of one side of a channel, take turns.
typedef struct vt__turns {
  _Atomic uint32_t next;     // ticket to be given out
  _Atomic uint32_t serving;  // ticket whose turn it is
  uint64_t number;           // of the last operation; belongs to whose turn it is, like `met`
  bool met;                  // the peers were seen to have published `number`
  bool disagreed;            // the last operation was an agreement that failed
} vt__turns;

// Bits of a gate: closed, and the number of operations inside, from here on upward.
#define VT__GATE_CLOSED 1u
#define VT__GATE_ONE 2u

// Refusals that found no free post, since the peers are behind: a run of numbers. So a refusal never waits. A run is extended by
// each refusal that follows it directly. A new one begins after a call that met its peers, which have then all passed the old run;
// until then nothing of it is rewritten, so a run that is longer than its texts repeats the last one.
#define VT__REFUSED_TEXTS 16

typedef struct vt__refused_run {
  _Atomic uint64_t last;  // 0: no run yet
  uint64_t first;         // written before `last`, like the texts
  char texts[VT__REFUSED_TEXTS][200];
} vt__refused_run;

typedef struct vt__inproc_rank {
  _Alignas(VT_NO_SHARING) vt__turns turns;  // of collectives
  _Atomic uint32_t gate;                    // others write it only when the group is poisoned
  _Atomic uint32_t gone;
  vt__bell bell;                                  // rung after what the peers may wait for
  _Atomic int32_t recorded;                       // the last op recorded into a graph that has not run, or NONE
  _Alignas(VT_NO_SHARING) _Atomic uint64_t left;  // number of the last collective whose data phase it has left
  vt__post posts[2];
  vt__refused_run refused;
  _Atomic(vt_comm *) offered;  // made for it by a split, with a reference
} vt__inproc_rank;

// One publication of one side of a channel.
typedef struct vt__message_post {
  _Atomic uint64_t number;
  vt__call_key key;
  const void *address;
  const char *provider;
  char text[200];  // of a refusal
} vt__message_post;

typedef struct vt__channel_side {
  _Alignas(VT_NO_SHARING) vt__turns turns;
  _Alignas(VT_NO_SHARING) vt__message_post posts[2];
  vt__refused_run refused;
} vt__channel_side;

// Messages from one rank to another.
typedef struct vt__channel {
  vt__channel_side sender;
  vt__channel_side receiver;
  _Alignas(VT_NO_SHARING) _Atomic uint64_t taken;  // number of the last message that was copied
} vt__channel;

// Bits of the alarm word: poisoned, some rank has a run of refusals, and from there on upward the number of ranks that have gone.
#define VT__ALARM_POISONED 1u
#define VT__ALARM_REFUSED 2u
#define VT__ALARM_GONE 4u

typedef struct vt__inproc {
  _Alignas(VT_NO_SHARING) _Atomic uint32_t alarm;  // 0 while all is well
  int32_t world;
  vt__inproc_rank *ranks;
  vt__channel *channels;  // world * world, by sender, then receiver
  vt__comm_recorder *recorders;
  vt__algo_part *parts;  // world for each post of each rank: by rank, then number, then peer
  vt_comm_chunk_fn chunk_hook;
  void *chunk_user;
  vt__algo_wishes wishes;
  void *memory;  // ranks, recorders, channels and parts: one mapping whose untouched pages cost nothing
  size_t memory_bytes;
  _Alignas(VT_NO_SHARING) _Atomic uint32_t refs;  // the group and each communicator
  _Atomic uint32_t claimed;                       // somebody writes `cause`
  vt__saved_error cause;                          // readable once the alarm says poisoned
} vt__inproc;

static inline vt__inproc *vt__inproc_of(const vt__comm_op *op) {
  return op->call.comm->state;
}
static inline vt__inproc_rank *vt__inproc_rank_of(const vt__comm_op *op) {
  return &vt__inproc_of(op)->ranks[op->call.comm->rank];
}

// gate.c
void vt__inproc_poison(vt__inproc *group, vt_status status, const char *function, const char *format, ...) VT_PRINTF_LIKE(4, 5);
vt_status vt__inproc_query(void *state);
bool vt__gate_enter(vt__comm_op *op);
void vt__gate_leave(vt__comm_op *op);
bool vt__gate_is_closed(const vt__comm_op *op);
bool vt__inproc_is_quiet(vt__inproc *group);
void vt__inproc_ring_all(vt__inproc *group);
void vt__inproc_chunk_hook(const vt__comm_op *op, size_t chunk);

// turn.c: the parts that collectives and messages share.
uint32_t vt__turn_take(vt__turns *turns);
bool vt__turn_has_come(const vt__turns *turns, uint32_t ticket);
void vt__turn_pass(vt__turns *turns);
void vt__op_started(vt__comm_op *op, vt__turns *turns);
bool vt__op_end(vt__comm_op *op, vt__turns *turns, vt_status status);
bool vt__op_step_failed(vt__comm_op *op, vt__turns *turns);
bool vt__op_blocked(vt__comm_op *op, vt__turns *turns, int32_t peer, const _Atomic uint64_t *word, const vt__refused_run *run,
                    uint64_t number);

// refused.c: runs of refusals.
bool vt__op_refuse(vt__comm_op *op, vt__turns *turns, vt__refused_run *run, bool (*is_prepared)(vt__comm_op *op, bool *out_ended),
                   void (*publish)(vt__comm_op *op));
const char *vt__refused_run_text(const vt__refused_run *run, uint64_t number);
bool vt__refused_run_holds(const vt__inproc *group, const vt__refused_run *run, uint64_t number);
vt__call_key vt__call_key_of(const vt__comm_op *op);

// collective.c
bool vt__collective_step(vt__comm_op *op);

// message.c
vt__channel *vt__channel_of(const vt__comm_op *op);
vt__turns *vt__message_turns(const vt__comm_op *op);
bool vt__message_step(vt__comm_op *op);

// verdict.c: on a difference, writes the thread's record and answers MISMATCH.
vt_status vt__collective_verdict(const vt__comm_op *op);
vt_status vt__message_verdict(const vt__comm_op *op, const vt__channel *channel);

// where.c: who is where.
size_t vt__inproc_describe(void *state, char *buffer, size_t capacity);
void vt__inproc_expire(vt__comm_op *op);

// group.c
void vt__inproc_unref(vt__inproc *group);

static inline const vt__post *vt__post_of(const vt__comm_op *op, int32_t rank) {
  return &vt__inproc_of(op)->ranks[rank].posts[op->number & 1];
}
static inline vt__algo_part *vt__posted_parts(const vt__comm_op *op, int32_t rank) {
  vt__inproc *group = vt__inproc_of(op);
  return &group->parts[(2 * (size_t)rank + (op->number & 1)) * (size_t)group->world];
}

#endif
