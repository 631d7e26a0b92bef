// harness_check.c: checks, and the text of what failed.
#include "suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN_FAILURES 12

static void append(vt_case *c, const char *format, va_list list) {
  size_t room = sizeof(c->text) - c->text_bytes;
  int bytes = vsnprintf(c->text + c->text_bytes, room, format, list);
  if (bytes > 0) {
    c->text_bytes += (size_t)bytes < room ? (size_t)bytes : room - 1;
  }
}

static void append_line(vt_case *c, const char *format, ...) VT_PRINTF_LIKE(2, 3);
static void append_line(vt_case *c, const char *format, ...) {
  va_list list;
  va_start(list, format);
  append(c, format, list);
  va_end(list);
}

static const char *base_name(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash == NULL ? file : slash + 1;
}

int vt_test_fail(vt_case *c, const char *file, int line, const char *format, ...) {
  pthread_mutex_lock(&c->mutex);
  c->failures++;
  if (c->failures <= SHOWN_FAILURES) {
    append_line(c, "  %s:%d: ", base_name(file), line);
    va_list list;
    va_start(list, format);
    append(c, format, list);
    va_end(list);
    append_line(c, "\n");
  }
  pthread_mutex_unlock(&c->mutex);
  return 0;
}

void vt_test_skip(vt_case *c, const char *format, ...) {
  pthread_mutex_lock(&c->mutex);
  c->skipped = 1;
  va_list list;
  va_start(list, format);
  append(c, format, list);
  va_end(list);
  pthread_mutex_unlock(&c->mutex);
}

int vt_test_is_clean(vt_case *c) {
  pthread_mutex_lock(&c->mutex);
  int clean = c->failures == 0;
  pthread_mutex_unlock(&c->mutex);
  return clean;
}

int vt_test_check_status(vt_case *c, const char *file, int line, const char *call, vt_status expected, vt_status actual) {
  if (expected == actual) {
    return 1;
  }
  const char *message = actual < 0 ? vt_last_error()->message : "";
  return vt_test_fail(c, file, line, "%s: expected %s, got %s (%d)%s%s", call, vt_status_get_name(expected),
                      vt_status_get_name(actual), (int)actual, message[0] != '\0' ? ": " : "", message);
}

int vt_test_check_true(vt_case *c, const char *file, int line, const char *condition, int held) {
  return held != 0 ? 1 : vt_test_fail(c, file, line, "not so: %s", condition);
}

int vt_test_check_eq(vt_case *c, const char *file, int line, const char *what, long long expected, long long actual) {
  if (expected == actual) {
    return 1;
  }
  return vt_test_fail(c, file, line, "%s: expected %lld (0x%llx), got %lld (0x%llx)", what, expected, (unsigned long long)expected,
                      actual, (unsigned long long)actual);
}

int vt_test_check_message(vt_case *c, const char *file, int line, const char *part) {
  const char *message = vt_last_error()->message;
  return strstr(message, part) != NULL ? 1
                                       : vt_test_fail(c, file, line, "the message lacks \"%s\": \"%s\" (of %s)", part, message,
                                                      vt_last_error()->function == NULL ? "nobody" : vt_last_error()->function);
}

int vt_test_check_fails(vt_case *c, const char *file, int line, const char *call, vt_status expected, const char *part,
                        vt_status actual) {
  return vt_test_check_status(c, file, line, call, expected, actual) && vt_test_check_message(c, file, line, part);
}

int vt_test_check_text(vt_case *c, const char *file, int line, const char *what, const char *expected, const char *actual) {
  if (expected == actual || (expected != NULL && actual != NULL && strcmp(expected, actual) == 0)) {
    return 1;
  }
  return vt_test_fail(c, file, line, "%s: expected \"%s\", got \"%s\"", what, expected == NULL ? "NULL" : expected,
                      actual == NULL ? "NULL" : actual);
}

int vt_test_check_last_error(vt_case *c, const char *file, int line, vt_status status, const char *part) {
  return vt_test_check_status(c, file, line, "the last error", status, vt_last_error()->status) &&
         vt_test_check_message(c, file, line, part);
}

int vt_test_check_bytes(vt_case *c, const char *file, int line, const char *what, const void *expected, const void *actual,
                        size_t bytes) {
  const unsigned char *e = expected;
  const unsigned char *a = actual;
  for (size_t i = 0; i < bytes; i++) {
    if (e[i] != a[i]) {
      return vt_test_fail(c, file, line, "%s: byte %zu of %zu: expected 0x%02x, got 0x%02x", what, i, bytes, e[i], a[i]);
    }
  }
  return 1;
}

int vt_test_check_filled(vt_case *c, const char *file, int line, const char *what, int value, const void *actual, size_t bytes) {
  const unsigned char *a = actual;
  for (size_t i = 0; i < bytes; i++) {
    if (a[i] != (unsigned char)value) {
      return vt_test_fail(c, file, line, "%s: byte %zu of %zu: expected 0x%02x, got 0x%02x", what, i, bytes, (unsigned)value & 0xff,
                          a[i]);
    }
  }
  return 1;
}

_Noreturn void vt_test_give_up(vt_case *c, const char *what) {
  fprintf(stderr, "%s/%s: can't go on: %s: %s\n%.*s", c->row->name, c->test->name, what, vt_last_error()->message,
          (int)c->text_bytes, c->text);
  fflush(NULL);
  abort();
}
