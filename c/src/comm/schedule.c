// schedule.c: see schedule.h.
#include "comm/schedule.h"

#include "comm/traits.h"

void vt__comm_plan(vt__comm_op *op, vt__parts_fn parts) {
  size_t elements = 1;
  size_t block = 1;
  const vt_comm *comm = op->call.comm;
  bool moves = op->refusal == NULL && (op->call.flags & VT__CALL_AGREE) == 0 && op->call.op != VT_COMM_OP_BARRIER;
  if (!moves) {
    op->bytes = 0;
    op->algo = vt__algo_list(VT_COMM_OP_BARRIER);
    return;
  }
  // Checked by the front: the type is known, and the product does not overflow.
  (void)vt_dtype_get_block(op->call.dtype, &elements, &block);
  op->bytes = op->call.count / elements * block;
  op->element_bytes = (uint32_t)block;
  if (!vt__comm_is_message(op->call.op)) {
    vt__algo_call call = vt__algo_call_of(op, parts);
    op->algo = vt__algo_choose(&call, vt__algo_weight(&call), comm->wishes);
  }
}
