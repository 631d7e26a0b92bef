// trace_hook.c: who gets the trace events, and what is known of them.
#include <pthread.h>

#include "base/alloc.h"
#include "core/check.h"
#include "core/log.h"
#include "core/trace_file.h"

// One user's hook, without and with the trace file. Never freed; setting the same hook again uses its pair again.
typedef struct hook_pair {
  vt__trace_hook hooks[2];
  struct hook_pair *next;
} hook_pair;

static hook_pair nobody = {.hooks = {{NULL, NULL, false}, {NULL, NULL, true}}};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards these three
static hook_pair *pairs = &nobody;
static hook_pair *chosen = &nobody;
static bool file_on;

_Atomic(const vt__trace_hook *) vt__trace_current;

static hook_pair *find_or_add_locked(vt_trace_fn fn, void *user) {
  for (hook_pair *pair = pairs; pair != NULL; pair = pair->next) {
    if (pair->hooks[0].fn == fn && (fn == NULL || pair->hooks[0].user == user)) {
      return pair;
    }
  }
  hook_pair *pair = vt__malloc(sizeof(*pair));
  if (pair != NULL) {
    *pair = (hook_pair){.hooks = {{fn, user, false}, {fn, user, true}}, .next = pairs};
    pairs = pair;
  }
  return pair;
}

static void publish_locked(void) {
  const vt__trace_hook *hook = &chosen->hooks[file_on ? 1 : 0];
  // release: partner is the acquire load in vt__trace_emit().
  atomic_store_explicit(&vt__trace_current, hook->fn == NULL && !hook->to_file ? NULL : hook, memory_order_release);
}

vt_status vt_trace_set(vt_trace_fn fn, void *user) {
  VT_TRY(vt__check_not_forked(__func__));
  pthread_mutex_lock(&mutex);
  hook_pair *pair = find_or_add_locked(fn, user);
  if (pair != NULL) {
    chosen = pair;
    publish_locked();
  }
  pthread_mutex_unlock(&mutex);
  return pair != NULL ? VT_OK : vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for the trace hook");
}

void vt__trace_set_file(bool on) {
  pthread_mutex_lock(&mutex);
  file_on = on;
  publish_locked();
  pthread_mutex_unlock(&mutex);
}

// The file's times are nearest to the operation, so that they are without the hook's.
void vt__trace_emit(const vt_trace_event *event) {
  // acquire: partner is the release store in publish_locked().
  const vt__trace_hook *hook = atomic_load_explicit(&vt__trace_current, memory_order_acquire);
  if (hook == NULL) {
    return;
  }
  if (hook->to_file && event->is_end != 0) {
    vt__trace_file_take(event);
  }
  if (hook->fn != NULL) {
    vt__callback_depth++;
    hook->fn(hook->user, event);
    vt__callback_depth--;
  }
  if (hook->to_file && event->is_end == 0) {
    vt__trace_file_take(event);
  }
}

vt_trace_event vt__trace_event_of(vt_trace_kind kind) {
  static const char *const names[] = {
      [VT_TRACE_COPY] = "copy", [VT_TRACE_MEMSET] = "memset", [VT_TRACE_HOST_CALL] = "host function",
      [VT_TRACE_WAIT] = "wait", [VT_TRACE_RECORD] = "record", [VT_TRACE_GRAPH] = "graph",
  };
  return (vt_trace_event){.kind = kind, .name = names[kind], .queue_name = "", .dtype = -1, .rank = -1};
}

enum { MAX_DESCRIBERS = 8 };

// Written once, while the library is initialised, before a queue can exist.
static struct {
  vt_status (*run)(void *payload);
  vt__trace_describe_fn fn;
} describers[MAX_DESCRIBERS];
static size_t describer_count;

void vt__trace_describe(vt_status (*run)(void *payload), vt__trace_describe_fn fn) {
  for (size_t i = 0; i < describer_count; i++) {
    if (describers[i].run == run) {
      return;
    }
  }
  if (describer_count == MAX_DESCRIBERS) {
    vt__log(VT_LOG_ERROR, "no place for one more description of host calls: raise MAX_DESCRIBERS");
    return;
  }
  describers[describer_count].run = run;
  describers[describer_count].fn = fn;
  describer_count++;
}

void vt__trace_describe_call(const vt_host_call *call, vt_trace_event *event) {
  for (size_t i = 0; i < describer_count; i++) {
    if (describers[i].run == call->run) {
      describers[i].fn(call->payload, event);
    }
  }
}
