// extent.h: the memory that a call of one rank uses.
#ifndef VT_COMM_EXTENT_H
#define VT_COMM_EXTENT_H

#include "comm/comm.h"
#include "comm/traits.h"

// A stretch of memory, as numbers: with no bytes the address may be anything.
typedef struct vt__comm_extent {
  uintptr_t begin;
  size_t bytes;
  uintptr_t own;  // where the rank's own part of it begins
} vt__comm_extent;

// The bytes of the call's count, which the front has checked.
size_t vt__comm_bytes(const vt__comm_call_data *call);

// From the first to the last byte of the parts in the send buffer, or in the receive buffer.
vt__comm_extent vt__comm_parts_sent(const vt__comm_call_data *call);
vt__comm_extent vt__comm_parts_received(const vt__comm_call_data *call);

// `bytes`, or as many for every rank.
static inline vt__comm_extent vt__comm_blocks(const vt__comm_call_data *call, const void *buffer, size_t bytes, bool for_all) {
  uintptr_t base = (uintptr_t)buffer;
  size_t before = for_all ? (size_t)call->comm->rank * bytes : 0;
  return (vt__comm_extent){base, for_all ? (size_t)call->comm->world * bytes : bytes, base + before};
}

// What is read and what is written of a call whose count has `bytes` bytes: none for a buffer that this rank has no part in.
static inline vt__comm_extent vt__comm_sent(const vt__comm_call_data *call, size_t bytes) {
  const vt__comm_traits *traits = vt__comm_traits_of(call->op);
  if (VT_UNLIKELY(traits->has_parts)) {
    return vt__comm_parts_sent(call);
  }
  bool none = call->op == VT_COMM_OP_RECV || (traits->root_sends && call->comm->rank != call->peer);
  return vt__comm_blocks(call, call->send, none ? 0 : bytes, traits->sends_parts);
}
static inline vt__comm_extent vt__comm_received(const vt__comm_call_data *call, size_t bytes) {
  const vt__comm_traits *traits = vt__comm_traits_of(call->op);
  if (VT_UNLIKELY(traits->has_parts)) {
    return vt__comm_parts_received(call);
  }
  bool none = call->op == VT_COMM_OP_SEND || (traits->root_recvs && call->comm->rank != call->peer) ||
              (traits->others_recv && call->comm->rank == call->peer);
  return vt__comm_blocks(call, call->recv, none ? 0 : bytes, traits->recvs_parts);
}

#endif
