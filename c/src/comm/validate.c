// validate.c: what the validation layer is told of collectives: which ranges a call of this rank uses. What peers do with them lies
// within the call, so it is the rank's own use.
#include "core/validate.h"
#include "comm/comm.h"

static size_t uses_of(const vt__comm_call_data *call, vt__use uses[2]) {
  size_t elements = 1;
  size_t block = 0;
  (void)vt_dtype_get_block(call->dtype, &elements, &block);
  size_t bytes = call->count / elements * block;
  size_t world = call->op == VT_COMM_OP_ALL_GATHER ? (size_t)call->comm->world : 1;
  size_t count = 0;
  if (call->op == VT_COMM_OP_BARRIER || bytes == 0) {
    return 0;
  }
  // In place, the own part is written as well.
  if (call->send != NULL && !vt__overlaps(call->send, bytes, call->recv, call->recv == NULL ? 0 : bytes * world)) {
    uses[count++] = (vt__use){call->send, bytes, VT_TOUCH_READ};
  }
  if (call->recv != NULL) {
    uses[count++] = (vt__use){call->recv, bytes * world, VT_TOUCH_WRITE};
  }
  return count;
}

void vt__comm_validate_check(const vt__comm_call_data *call, vt_queue *queue, vt__call_site site) {
  vt__use uses[2];
  vt__validate_check(queue, uses, uses_of(call, uses), site);
}

void vt__comm_validate_note(const vt__comm_call_data *call, vt_queue *queue, vt__call_site site) {
  vt__use uses[2];
  vt__validate_note(queue, uses, uses_of(call, uses), site);
}
