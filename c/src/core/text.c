// text.c: see text.h.
#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>

vt__text vt__text_begin(char *buffer, size_t capacity) {
  if (capacity > 0) {
    buffer[0] = 0;
  }
  return (vt__text){.buffer = buffer, .capacity = capacity, .length = 0};
}

void vt__text_add(vt__text *text, const char *format, ...) {
  size_t used = text->length < text->capacity ? text->length : text->capacity;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(used < text->capacity ? text->buffer + used : NULL, text->capacity - used, format, args);
  va_end(args);
  text->length += length > 0 ? (size_t)length : 0;
}
