// log.h: speaking to the log hook and the trace hook.
#ifndef VT_CORE_LOG_H
#define VT_CORE_LOG_H

#include <stdatomic.h>

#include <stdbool.h>

#include "base/macros.h"
#include "vllm_vt/backend.h"
#include "vllm_vt/log.h"

void vt__log(vt_log_level level, const char *format, ...) VT_PRINTF_LIKE(2, 3);

// Sends later messages to stderr if VT_LOG asks for it.
bool vt__log_init(void);

// Who gets the events. Published hooks are never freed, so a reader needs no lock.
typedef struct vt__trace_hook {
  vt_trace_fn fn;  // NULL: nobody but the trace file
  void *user;
  bool to_file;
} vt__trace_hook;

extern _Atomic(const vt__trace_hook *) vt__trace_current;

// Whether anybody gets events. A backend asks once per operation and reports its begin and its end, or neither.
static inline bool vt__trace_is_on(void) {
#ifdef VT__WITHOUT_HOOKS
  return false;  // for benches/runtime, which shows what the look costs
#endif
  // relaxed: vt__trace_emit() looks again.
  return atomic_load_explicit(&vt__trace_current, memory_order_relaxed) != NULL;
}

// Reports a begin or an end.
void vt__trace_emit(const vt_trace_event *event);

// Turns the trace file's part on or off; the hook of vt_trace_set() stays.
void vt__trace_set_file(bool on);

// An event with the name of its kind and nothing but its kind set.
vt_trace_event vt__trace_event_of(vt_trace_kind kind);

// Fills in what is known of a host call: asked before it runs, and behind it, with is_end set, on the same thread.
typedef void (*vt__trace_describe_fn)(const void *payload, vt_trace_event *event);

// Host calls with this `run` are described by `fn`; others are host functions. Only while the library is initialised.
void vt__trace_describe(vt_status (*run)(void *payload), vt__trace_describe_fn fn);
void vt__trace_describe_call(const vt_host_call *call, vt_trace_event *event);

#endif
