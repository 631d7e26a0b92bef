// log.c: the log hook.
#include "core/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/check.h"
#include "core/error.h"

// A published log hook. Nodes are never freed, so a reader needs no lock; setting the same hook again uses its node again.
typedef struct log_hook {
  vt_log_fn fn;
  void *user;
  vt_log_level level;
  struct log_hook *next;
} log_hook;

static pthread_mutex_t hook_mutex = PTHREAD_MUTEX_INITIALIZER;
static log_hook *log_hooks;
static _Atomic(log_hook *) log_current;

static log_hook *find_or_add_log(vt_log_fn fn, void *user, vt_log_level level) {
  for (log_hook *hook = log_hooks; hook != NULL; hook = hook->next) {
    if (hook->fn == fn && hook->user == user && hook->level == level) {
      return hook;
    }
  }
  log_hook *hook = vt__malloc(sizeof(*hook));
  if (hook != NULL) {
    *hook = (log_hook){.fn = fn, .user = user, .level = level, .next = log_hooks};
    log_hooks = hook;
  }
  return hook;
}

vt_status vt_log_set(vt_log_fn fn, void *user, vt_log_level level) {
  VT_CHECK_ARG(level >= VT_LOG_OFF && level <= VT_LOG_DEBUG, "log level %d is not one of 0 (off) to 4 (debug)", level);
  log_hook *hook = NULL;
  if (fn != NULL && level != VT_LOG_OFF) {
    VT_TRY(vt__check_not_forked(__func__));
    pthread_mutex_lock(&hook_mutex);
    hook = find_or_add_log(fn, user, level);
    pthread_mutex_unlock(&hook_mutex);
    if (hook == NULL) {
      return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for the log hook");
    }
  }
  // release: partner is the acquire load in vt__log().
  atomic_store_explicit(&log_current, hook, memory_order_release);
  return VT_OK;
}

void vt__log(vt_log_level level, const char *format, ...) {
  // What the hook itself provokes is dropped: it could provoke the same again.
  static _Thread_local bool in_hook;
  // acquire: partner is the release store in vt_log_set().
  const log_hook *hook = atomic_load_explicit(&log_current, memory_order_acquire);
  if (hook == NULL || level > hook->level || in_hook) {
    return;
  }
  char message[VT_ERROR_MESSAGE_MAX + 128];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  if (length >= 0) {
    in_hook = true;
    vt__callback_depth++;
    hook->fn(hook->user, level, message);
    vt__callback_depth--;
    in_hook = false;
  }
}

static void write_to_stderr(void *user, vt_log_level level, const char *message) {
  static const char *const names[] = {"off", "error", "warn", "info", "debug"};
  (void)user;
  (void)fprintf(stderr, "vllm_vt %s: %s\n", names[level], message);
}

bool vt__log_init(void) {
  static const char *const names[] = {"off", "error", "warn", "info", "debug"};
  const char *wanted = getenv("VT_LOG");
  // relaxed: only asks whether a hook was set by hand, which wins.
  if (wanted == NULL || atomic_load_explicit(&log_current, memory_order_relaxed) != NULL) {
    return true;
  }
  for (vt_log_level level = VT_LOG_ERROR; level <= VT_LOG_DEBUG; level++) {
    if (strcmp(wanted, names[level]) == 0) {
      return vt_log_set(write_to_stderr, NULL, level) == VT_OK;
    }
  }
  return true;
}
