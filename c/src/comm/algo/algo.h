// algo.h: algorithms of collectives as schedules: which rank copies, reduces or swaps what, when. Pure functions: they touch no
// buffer, wait for nothing and know no transport.
//
// A schedule is, for each rank, a list of actions. Those of step 0 come before the ranks meet and touch the rank's own memory only.
// Before each later step all ranks meet, and behind the last one again, unless the algorithm posts: then no rank's buffers are
// touched by another one.
//
// Everything that a schedule is made of is either the same on all ranks, since they compare it when they meet, or in the table of
// parts of the ranks that an action is about.
#ifndef VT_COMM_ALGO_ALGO_H
#define VT_COMM_ALGO_ALGO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vllm_vt/comm_inspect.h"

// Most bytes that one rank can post.
#define VT__ALGO_POST_BYTES 1024

// Slices and halves are cut at multiples of this, so that two ranks rarely write one cache line.
#define VT__ALGO_CUT_BYTES 64

// What two ranks exchange in the operations with a count for every rank, in bytes. Each rank has an array of these, one per peer.
typedef struct vt__algo_part {
  size_t send_bytes;  // to the peer
  size_t send_at;     // from the beginning of the send buffer
  size_t recv_bytes;  // from the peer
  size_t recv_at;
} vt__algo_part;

// What a schedule depends on.
typedef struct vt__algo_call {
  vt_comm_op op;
  int32_t world;
  int32_t rank;    // whose actions
  int32_t root;    // of operations that have one
  bool crowded;    // the ranks share processors
  size_t bytes;    // of the call's count
  size_t element;  // bytes of one, where something is reduced: cuts are at multiples
  // The array of a rank, for operations with a count for every rank.
  const vt__algo_part *(*parts)(const void *user, int32_t rank);
  const void *user;
} vt__algo_call;

typedef enum vt__algo_buffer {
  VT__ALGO_SEND,
  VT__ALGO_RECV,
  VT__ALGO_POST,  // VT__ALGO_POST_BYTES of each rank, which others may read once they have met it
} vt__algo_buffer;

#define VT__ALGO_ALL (-1)  // in place of a rank: every one

typedef struct vt__algo_place {
  int32_t rank;
  vt__algo_buffer buffer;
  size_t at;
} vt__algo_place;

typedef enum vt__algo_kind {
  VT__ALGO_COPY,    // `from` one rank `to` one rank; nothing to do where they are the same memory
  VT__ALGO_REDUCE,  // `from` all ranks, in rank order, `to` one or all
  // Both ways between the ranks a and b of `from` and `to`: from a's SEND at from.at to b's RECV at to.at, and from b's SEND at
  // to.at to a's RECV at from.at. Either rank's SEND and RECV may be the same memory.
  VT__ALGO_SWAP,
} vt__algo_kind;

// No action reads memory that another action of the same step writes, but a copy or reduction in place of itself.
typedef struct vt__algo_action {
  vt__algo_kind kind;
  int32_t step;
  size_t bytes;  // 0: nothing to do
  vt__algo_place from;
  vt__algo_place to;
} vt__algo_action;

typedef struct vt__algo {
  const char *name;  // "slices"; NULL: the operation has no more
  size_t up_to;      // bytes of a rank's contribution up to which it is chosen
  bool posts;        // step 0 brings each rank's contribution into its post, and later steps read posts in place of SEND
  int32_t steps;     // number of the last step
  // The actions from step 1 on: writes number `index` of the call's rank. False behind the last. `source` is SEND or POST.
  bool (*action)(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
} vt__algo;

// Action number `index` of a schedule; false behind the last.
bool vt__algo_get(const vt__algo *algo, const vt__algo_call *call, size_t index, vt__algo_action *out);

// The same without that of step 0, which is: the first vt__algo_posted() bytes of SEND are copied to the post.
static inline bool vt__algo_get_later(const vt__algo *algo, const vt__algo_call *call, size_t index, vt__algo_action *out) {
  return algo->action(call, algo->posts ? VT__ALGO_POST : VT__ALGO_SEND, index, out);
}

// The bytes of the largest contribution of any rank: what would have to fit a post. SIZE_MAX where one rank can't know it.
size_t vt__algo_weight(const vt__algo_call *call);

// The bytes of this rank's contribution, which goes into its post.
size_t vt__algo_posted(const vt__algo_call *call);

// The algorithms of an operation, best first, each up to its size; the last one is for any size. NULL for messages.
const vt__algo *vt__algo_list(vt_comm_op op);

// What a world of one does for any operation.
extern const vt__algo vt__algo_alone;

// The contribution up to which an algorithm is chosen. Where ranks share processors, to meet costs more than to copy: all that fits
// is posted.
static inline size_t vt__algo_reach(const vt__algo *algo, bool crowded) {
  return algo->posts && crowded && algo->up_to < VT__ALGO_POST_BYTES ? VT__ALGO_POST_BYTES : algo->up_to;
}

// What a group was told to use: numbers in the list of each operation, from 1 on; 0: nothing.
typedef struct vt__algo_wishes {
  unsigned char number[VT_COMM_OP_COUNT];
} vt__algo_wishes;

// The algorithm of a call whose weight is known: what is wished if it can carry that much, else the first of the list that is meant
// for it.
const vt__algo *vt__algo_choose(const vt__algo_call *call, size_t weight, const vt__algo_wishes *wishes);

// move.c, reduce.c: the actions of the lists.
bool vt__algo_do_nothing(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_do_alone(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_broadcast(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_gather(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_scatter(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_gather(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_gatherv(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_to_all(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_to_all_pairs(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_to_allv(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_reduce(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_all_reduce_slices(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_reduce_root(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_reduce_slices(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_reduce_scatter(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);
bool vt__algo_reduce_scatterv(const vt__algo_call *call, vt__algo_buffer source, size_t index, vt__algo_action *out);

#endif
