// extent.c: see extent.h.
#include "comm/extent.h"

#include "comm/parts.h"
#include "comm/traits.h"

size_t vt__comm_bytes(const vt__comm_call_data *call) {
  size_t elements = 1;
  size_t bytes = 0;
  (void)vt_dtype_get_block(call->dtype, &elements, &bytes);
  return call->count / elements * bytes;
}

// From the first to the last byte of the parts in the send buffer, or in the receive buffer.
static vt__comm_extent extent_of_parts(const vt__comm_call_data *call, const void *buffer, bool sent) {
  size_t begin = SIZE_MAX;
  size_t end = 0;
  const vt__algo_part *of = call->parts->of;
  for (int32_t r = 0; r < call->comm->world; r++) {
    size_t bytes = sent ? of[r].send_bytes : of[r].recv_bytes;
    size_t at = sent ? of[r].send_at : of[r].recv_at;
    begin = bytes > 0 && at < begin ? at : begin;
    end = bytes > 0 && at + bytes > end ? at + bytes : end;
  }
  size_t own = sent ? of[call->comm->rank].send_at : of[call->comm->rank].recv_at;
  uintptr_t base = (uintptr_t)buffer;
  return (vt__comm_extent){end == 0 ? base : base + begin, end == 0 ? 0 : end - begin, base + own};
}

// `blocks` times the call's count, the rank's own block among them if there are several.
static vt__comm_extent extent_of_blocks(const vt__comm_call_data *call, const void *buffer, bool in_parts) {
  size_t bytes = vt__comm_bytes(call);
  size_t world = (size_t)call->comm->world;
  uintptr_t base = (uintptr_t)buffer;
  return in_parts ? (vt__comm_extent){base, world * bytes, base + (size_t)call->comm->rank * bytes}
                  : (vt__comm_extent){base, bytes, base};
}

vt__comm_extent vt__comm_sent(const vt__comm_call_data *call) {
  const vt__comm_traits *traits = vt__comm_traits_of(call->op);
  bool is_root = call->comm->rank == call->peer;
  if (traits->has_parts) {
    return extent_of_parts(call, call->send, true);
  }
  if (call->op == VT_COMM_OP_BARRIER || call->op == VT_COMM_OP_RECV || (traits->root_sends && !is_root)) {
    return (vt__comm_extent){0};
  }
  return extent_of_blocks(call, call->send, traits->sends_parts);
}

vt__comm_extent vt__comm_received(const vt__comm_call_data *call) {
  const vt__comm_traits *traits = vt__comm_traits_of(call->op);
  bool is_root = call->comm->rank == call->peer;
  if (traits->has_parts) {
    return extent_of_parts(call, call->recv, false);
  }
  if (call->op == VT_COMM_OP_BARRIER || call->op == VT_COMM_OP_SEND || (traits->root_recvs && !is_root) ||
      (traits->others_recv && is_root)) {
    return (vt__comm_extent){0};
  }
  return extent_of_blocks(call, call->recv, traits->recvs_parts);
}
