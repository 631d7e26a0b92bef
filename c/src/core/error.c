// error.c: the thread's error record.
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct record {
  vt_error error;
  char message[VT_ERROR_MESSAGE_MAX];
} record;

static _Thread_local record last = {.error = {.function = "", .message = ""}};
_Thread_local uint64_t vt__error_count;

const vt_error *vt_last_error(void) {
  return &last.error;
}

vt_status vt_error_set(vt_status status, vt_error_domain domain, int64_t native, const char *function, const char *format, ...) {
  // Formatted aside first: an argument may be the text of the record that is being replaced.
  char message[VT_ERROR_MESSAGE_MAX];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  memcpy(last.message, length < 0 ? "" : message, length < 0 ? 1 : strlen(message) + 1);
  last.error = (vt_error){
      .status = status, .domain = domain, .native = native, .function = function == NULL ? "" : function, .message = last.message};
  vt__error_count++;
  return status;
}

const char *vt_status_get_name(vt_status status) {
  switch (status) {
    case VT_OK:
      return "OK";
    case VT_NOT_READY:
      return "NOT_READY";
    case VT_ERR_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case VT_ERR_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case VT_ERR_UNSUPPORTED:
      return "UNSUPPORTED";
    case VT_ERR_NOT_FOUND:
      return "NOT_FOUND";
    case VT_ERR_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case VT_ERR_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case VT_ERR_TIMEOUT:
      return "TIMEOUT";
    case VT_ERR_ABORTED:
      return "ABORTED";
    case VT_ERR_PEER_LOST:
      return "PEER_LOST";
    case VT_ERR_MISMATCH:
      return "MISMATCH";
    case VT_ERR_DEVICE_LOST:
      return "DEVICE_LOST";
    case VT_ERR_INTERNAL:
      return "INTERNAL";
    default:
      return "unknown status";
  }
}

void vt__error_save(vt__saved_error *out, vt_status status) {
  // Field by field: allocations save the record each time, and most of a message is unused.
  out->status = status;
  out->domain = VT_DOMAIN_VT;
  out->native = 0;
  out->function = "";
  if (last.error.status != status) {
    (void)snprintf(out->message, sizeof(out->message), "failed with %s and no further word", vt_status_get_name(status));
    return;
  }
  out->domain = last.error.domain;
  out->native = last.error.native;
  out->function = last.error.function;
  memcpy(out->message, last.message, strlen(last.message) + 1);
}

vt_status vt__error_rename(vt_status status, const char *from, const char *to) {
  if ((status == VT_ERR_OUT_OF_MEMORY || status == VT_ERR_TIMEOUT) && strcmp(last.error.function, from) == 0) {
    last.error.function = to;
  }
  return status;
}

vt_status vt__error_restore(const vt__saved_error *saved) {
  return vt_error_set(saved->status, saved->domain, saved->native, saved->function, "%s", saved->message);
}

vt__error_mark vt__error_begin(void) {
  vt__error_mark mark;
  mark.serial = vt__error_serial();
  vt__error_save(&mark.saved, last.error.status);
  return mark;
}

void vt__error_forget(const vt__error_mark *mark, vt_status status) {
  if (status >= 0 && vt__error_serial() != mark->serial) {
    (void)vt__error_restore(&mark->saved);
  }
}
