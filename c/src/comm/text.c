// text.c: see text.h.
#include "comm/text.h"

const char *vt__reduce_op_name(vt_reduce_op op) {
  static const char *const names[VT_REDUCE_COUNT] = {"sum", "max", "min", "prod", "avg"};
  return op >= 0 && op < VT_REDUCE_COUNT ? names[op] : "unknown";
}

const char *vt__comm_state_name(vt_comm_state state) {
  static const char *const names[] = {"started", "waiting for its peers", "moving data", "finished", "failed"};
  return state >= 0 && state < (vt_comm_state)(sizeof(names) / sizeof(names[0])) ? names[state] : "unknown";
}

void vt__text_add_call(vt__text *text, const vt_comm_record *what) {
  const vt__comm_traits *traits = vt__comm_traits_of(what->op);
  vt__text_add(text, "%s", traits->name);
  if (!traits->has_data) {
    return;
  }
  const char *type = vt_dtype_get_name(what->dtype);
  vt__text_add(text, " %s", type == NULL ? "unknown type" : type);
  if (traits->reduces) {
    vt__text_add(text, " %s", vt__reduce_op_name(what->reduce_op));
  }
  if (traits->has_root) {
    vt__text_add(text, " root %d", what->peer);
  }
  if (!traits->has_parts) {
    vt__text_add(text, " count %llu", (unsigned long long)what->count);
  }
}
