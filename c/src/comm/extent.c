// extent.c: see extent.h.
#include "comm/extent.h"

#include "comm/parts.h"

size_t vt__comm_bytes(const vt__comm_call_data *call) {
  size_t elements = 1;
  size_t bytes = 0;
  (void)vt_dtype_get_block(call->dtype, &elements, &bytes);
  return call->op == VT_COMM_OP_BARRIER ? 0 : call->count / elements * bytes;
}

static vt__comm_extent extent_of(const vt__comm_call_data *call, const void *buffer, bool sent) {
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

vt__comm_extent vt__comm_parts_sent(const vt__comm_call_data *call) {
  return extent_of(call, call->send, true);
}

vt__comm_extent vt__comm_parts_received(const vt__comm_call_data *call) {
  return extent_of(call, call->recv, false);
}
