// text.h: building texts in a buffer of fixed size.
#ifndef VT_CORE_TEXT_H
#define VT_CORE_TEXT_H

#include <stddef.h>

#include "vllm_vt/export.h"

// A text under construction. What doesn't fit is cut; `length` goes on counting.
typedef struct vt__text {
  char *buffer;
  size_t capacity;
  size_t length;
} vt__text;

vt__text vt__text_begin(char *buffer, size_t capacity);
void vt__text_add(vt__text *text, const char *format, ...) VT_PRINTF_LIKE(2, 3);

#endif
