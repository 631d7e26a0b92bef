// log.h: speaking to the log hook and the trace hook.
#ifndef VT_CORE_LOG_H
#define VT_CORE_LOG_H

#include <stdatomic.h>

#include "base/macros.h"
#include "vllm_vt/log.h"

void vt__log(vt_log_level level, const char *format, ...) VT_PRINTF_LIKE(2, 3);

// Sends later messages to stderr if VT_LOG asks for it.
void vt__log_init(void);

// A published hook. Nodes are never freed, so a reader needs no lock.
typedef struct vt__trace_hook {
  vt_trace_fn fn;
  void *user;
  struct vt__trace_hook *next;
} vt__trace_hook;

extern _Atomic(vt__trace_hook *) vt__trace_current;

void vt__trace_emit(const vt__trace_hook *hook, const vt_trace_event *event);

// Reports a begin or an end to the trace hook, if there is one.
static inline void vt__trace(vt_trace_kind kind, int32_t is_end, uint64_t queue_id, uint64_t bytes, uint64_t sequence) {
  // acquire: partner is the release store in vt_trace_set().
  vt__trace_hook *hook = atomic_load_explicit(&vt__trace_current, memory_order_acquire);
  if (VT_UNLIKELY(hook != NULL)) {
    vt_trace_event event = {.kind = kind, .is_end = is_end, .queue_id = queue_id, .bytes = bytes, .sequence = sequence};
    vt__trace_emit(hook, &event);
  }
}

#endif
