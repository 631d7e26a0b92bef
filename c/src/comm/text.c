// text.c: see text.h.
#include "comm/text.h"

const char *vt__comm_op_name(vt_comm_op op) {
  static const char *const names[] = {"nothing", "all_reduce", "all_gather", "send", "recv", "barrier"};
  return op >= 0 && op < (vt_comm_op)(sizeof(names) / sizeof(names[0])) ? names[op] : "unknown";
}

const char *vt__comm_op_function(vt_comm_op op) {
  static const char *const names[] = {"vt_comm",      "vt_comm_all_reduce", "vt_comm_all_gather",
                                      "vt_comm_send", "vt_comm_recv",       "vt_comm_barrier"};
  return op >= 0 && op < (vt_comm_op)(sizeof(names) / sizeof(names[0])) ? names[op] : names[0];
}

const char *vt__reduce_op_name(vt_reduce_op op) {
  static const char *const names[VT_REDUCE_COUNT] = {"sum", "max", "min", "prod", "avg"};
  return op >= 0 && op < VT_REDUCE_COUNT ? names[op] : "unknown";
}

const char *vt__comm_state_name(vt_comm_state state) {
  static const char *const names[] = {"started", "waiting for its peers", "moving data", "finished", "failed"};
  return state >= 0 && state < (vt_comm_state)(sizeof(names) / sizeof(names[0])) ? names[state] : "unknown";
}

void vt__text_add_call(vt__text *text, vt_comm_op op, vt_dtype dtype, vt_reduce_op reduce_op, uint64_t count) {
  vt__text_add(text, "%s", vt__comm_op_name(op));
  if (op == VT_COMM_OP_BARRIER) {
    return;
  }
  const char *name = vt_dtype_get_name(dtype);
  vt__text_add(text, " %s", name == NULL ? "unknown type" : name);
  if (op == VT_COMM_OP_ALL_REDUCE) {
    vt__text_add(text, " %s", vt__reduce_op_name(reduce_op));
  }
  vt__text_add(text, " count %llu", (unsigned long long)count);
}
