// error.h: how the library fails.
#ifndef VT_CORE_ERROR_H
#define VT_CORE_ERROR_H

#include <stdbool.h>

#include "base/macros.h"
#include "vllm_vt/status.h"

// Returns the status of `call` from this function if it isn't VT_OK.
#define VT_TRY(call)                            \
  do {                                          \
    vt_status vt__try_status = (call);          \
    if (VT_UNLIKELY(vt__try_status != VT_OK)) { \
      return vt__try_status;                    \
    }                                           \
  } while (0)

// Returns VT_ERR_INVALID_ARGUMENT with a message unless `condition` holds. The message names the value.
#define VT_CHECK_ARG(condition, ...)                         \
  do {                                                       \
    if (VT_UNLIKELY(!(condition))) {                         \
      return vt__fail(VT_ERR_INVALID_ARGUMENT, __VA_ARGS__); \
    }                                                        \
  } while (0)

// Writes the thread's record in the name of the public function that is running (__func__ of the caller) and returns `status`.
#define vt__fail(status, ...) vt_error_set((status), VT_DOMAIN_VT, 0, __func__, __VA_ARGS__)

// An error record that outlives the call, for failures that stick to a queue or a group.
typedef struct vt__saved_error {
  vt_status status;
  vt_error_domain domain;
  int64_t native;
  const char *function;
  char message[VT_ERROR_MESSAGE_MAX];
} vt__saved_error;

// Copies the thread's record, which must be about `status`; a generic one is made where it isn't (a plug-in that set none).
void vt__error_save(vt__saved_error *out, vt_status status);

// Makes `saved` the thread's record and returns its status.
vt_status vt__error_restore(const vt__saved_error *saved);

// A backend can't know in whose name it is asked. Where the record is of `from`, this makes it one of `to`, the public function
// that was called. Returns `status`; does nothing unless that is the lack of memory or a time-out, which never stick to a queue
// under another name.
vt_status vt__error_rename(vt_status status, const char *from, const char *to);

// How many records this thread has written: tells whether a call wrote one.
extern _Thread_local uint64_t vt__error_count;
static inline uint64_t vt__error_serial(void) {
  return vt__error_count;
}

// The record as it is before something is tried that may fail without making the call fail.
typedef struct vt__error_mark {
  uint64_t serial;
  vt__saved_error saved;
} vt__error_mark;

vt__error_mark vt__error_begin(void);

// Brings that record back if the call succeeds after all.
void vt__error_forget(const vt__error_mark *mark, vt_status status);

#endif
