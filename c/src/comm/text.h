// text.h: names of operations, and building texts in a buffer of fixed size.
#ifndef VT_COMM_TEXT_H
#define VT_COMM_TEXT_H

#include <stddef.h>

#include "vllm_vt/comm_inspect.h"

// A text under construction. What doesn't fit is cut; `length` goes on counting.
typedef struct vt__text {
  char *buffer;
  size_t capacity;
  size_t length;
} vt__text;

vt__text vt__text_begin(char *buffer, size_t capacity);
void vt__text_add(vt__text *text, const char *format, ...) VT_PRINTF_LIKE(2, 3);

// "all_reduce"; the public function "vt_comm_all_reduce"; "sum"; "waiting for its peers".
const char *vt__comm_op_name(vt_comm_op op);
const char *vt__comm_op_function(vt_comm_op op);
const char *vt__reduce_op_name(vt_reduce_op op);
const char *vt__comm_state_name(vt_comm_state state);

// "all_reduce f32 sum count 10", "barrier".
void vt__text_add_call(vt__text *text, vt_comm_op op, vt_dtype dtype, vt_reduce_op reduce_op, uint64_t count);

#endif
