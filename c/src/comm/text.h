// text.h: names of operations.
#ifndef VT_COMM_TEXT_H
#define VT_COMM_TEXT_H

#include "comm/traits.h"
#include "core/text.h"
#include "vllm_vt/comm_inspect.h"

// "all_reduce"; the public function "vt_comm_all_reduce"; "sum"; "waiting for its peers".
static inline const char *vt__comm_op_name(vt_comm_op op) {
  return vt__comm_traits_of(op)->name;
}
static inline const char *vt__comm_op_function(vt_comm_op op) {
  return vt__comm_traits_of(op)->function;
}
const char *vt__reduce_op_name(vt_reduce_op op);
const char *vt__comm_state_name(vt_comm_state state);

// "all_reduce f32 sum count 10", "broadcast f32 root 1 count 10", "barrier". `what` gives all but times, state and status.
void vt__text_add_call(vt__text *text, const vt_comm_record *what);

#endif
