// schedule.c: see schedule.h.
#include "comm/schedule.h"

#include "comm/traits.h"

void vt__comm_plan(vt__comm_op *op, vt__parts_fn parts) {
  const vt__comm_call_data *call = &op->call;
  bool moves = op->refusal == NULL && (call->flags & VT__CALL_AGREE) == 0;
  size_t elements = 1;
  size_t block = 1;
  if (moves) {
    // Checked by the front: the type is known, and the product does not overflow.
    (void)vt_dtype_get_block(call->dtype, &elements, &block);
  }
  op->schedule = (vt__algo_call){
      .op = moves ? call->op : VT_COMM_OP_BARRIER,
      .world = call->comm->world,
      .rank = call->comm->rank,
      .root = call->peer,
      .crowded = call->comm->crowded,
      .bytes = moves ? call->count / elements * block : 0,
      .element = block,
      .parts = call->parts == NULL ? NULL : parts,
      .user = op,
  };
  if (!vt__comm_is_message(op->schedule.op)) {
    op->algo = vt__algo_choose(&op->schedule, vt__algo_weight(&op->schedule), call->comm->wishes);
  }
}
