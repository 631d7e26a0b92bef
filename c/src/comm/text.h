// text.h: names of operations.
#ifndef VT_COMM_TEXT_H
#define VT_COMM_TEXT_H

#include "core/text.h"
#include "vllm_vt/comm_inspect.h"

// "all_reduce"; the public function "vt_comm_all_reduce"; "sum"; "waiting for its peers".
const char *vt__comm_op_name(vt_comm_op op);
const char *vt__comm_op_function(vt_comm_op op);
const char *vt__reduce_op_name(vt_reduce_op op);
const char *vt__comm_state_name(vt_comm_state state);

// "all_reduce f32 sum count 10", "barrier".
void vt__text_add_call(vt__text *text, vt_comm_op op, vt_dtype dtype, vt_reduce_op reduce_op, uint64_t count);

#endif
