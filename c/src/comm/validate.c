// validate.c: what the validation layer is told of collectives: which ranges a call of this rank uses. What peers do with them lies
// within the call, so it is the rank's own use.
#include "core/validate.h"
#include "comm/extent.h"
#include "comm/parts.h"

static bool holds(vt__comm_extent outer, vt__comm_extent inner) {
  return outer.begin <= inner.begin && inner.bytes <= outer.bytes && inner.begin - outer.begin <= outer.bytes - inner.bytes;
}

static void tell(vt__validate_step step, vt_queue *queue, uintptr_t begin, size_t bytes, uint32_t mode, vt__call_site site) {
  vt__use use = {(const void *)begin, bytes, mode};
  if (bytes > 0) {
    step(queue, &use, 1, site);
  }
}

// Between parts there may be what somebody else uses.
static void tell_parts(vt__validate_step step, const vt__comm_call_data *call, vt_queue *queue, vt__call_site site) {
  const vt__algo_part *of = call->parts->of;
  vt__comm_extent sent = vt__comm_parts_sent(call);
  vt__comm_extent received = vt__comm_parts_received(call);
  bool in_place = sent.bytes > 0 && holds(received, sent);
  for (int32_t r = 0; r < call->comm->world; r++) {
    tell(step, queue, (uintptr_t)call->send + of[r].send_at, in_place ? 0 : of[r].send_bytes, VT_TOUCH_READ, site);
    tell(step, queue, (uintptr_t)call->recv + of[r].recv_at, of[r].recv_bytes, VT_TOUCH_WRITE, site);
  }
}

static void tell_all(vt__validate_step step, const vt__comm_call_data *call, vt_queue *queue, vt__call_site site) {
  if (call->parts != NULL) {
    tell_parts(step, call, queue, site);
    return;
  }
  size_t bytes = vt__comm_bytes(call);
  vt__comm_extent sent = vt__comm_sent(call, bytes);
  vt__comm_extent received = vt__comm_received(call, bytes);
  vt__use uses[2];
  size_t count = 0;
  // In place, what is sent is written as well.
  if (sent.bytes > 0 && !holds(received, sent)) {
    uses[count++] = (vt__use){(const void *)sent.begin, sent.bytes, VT_TOUCH_READ};
  }
  if (received.bytes > 0) {
    uses[count++] = (vt__use){(const void *)received.begin, received.bytes, VT_TOUCH_WRITE};
  }
  step(queue, uses, count, site);
}

void vt__comm_validate_check(const vt__comm_call_data *call, vt_queue *queue, vt__call_site site) {
  tell_all(vt__validate_check, call, queue, site);
}

void vt__comm_validate_note(const vt__comm_call_data *call, vt_queue *queue, vt__call_site site) {
  tell_all(vt__validate_note, call, queue, site);
}
