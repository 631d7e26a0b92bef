// validate.c: turning the validation layer on and off, and its reports.
#include "core/validate.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/validate_state.h"

// Where a libc has it in a library of its own that isn't linked, call sites have no names.
extern int dladdr(const void *address, Dl_info *info) __attribute__((weak));

_Atomic uint32_t vt__validate_on;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hook_mutex = PTHREAD_MUTEX_INITIALIZER;  // guards the hook
static vt_validate_fn hook_fn;
static void *hook_user;
static _Atomic uint64_t counts[VT_VALIDATE_KIND_COUNT];
static bool limit_said;

static bool is_on_locked(void) {
  // relaxed: changed under the lock.
  return atomic_load_explicit(&vt__validate_on, memory_order_relaxed) != 0;
}

bool vt__validate_begin(vt__reports *reports) {
  // relaxed: see vt__check_usable(). In a forked child the lock may be held by a thread that isn't there.
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return false;
  }
  pthread_mutex_lock(&mutex);
  if (!is_on_locked()) {
    pthread_mutex_unlock(&mutex);
    return false;
  }
  reports->count = 0;
  return true;
}

void vt__shadow_lock(void) {
  pthread_mutex_lock(&mutex);
}

void vt__shadow_unlock(void) {
  pthread_mutex_unlock(&mutex);
}

uint64_t vt__ticket_of(vt_queue *queue) {
  uint64_t ticket = 0;
  const vt_backend *backend = queue->backend;
  return backend->ops.queue_get_ticket(backend->self, queue->native, &ticket) == VT_OK ? ticket : 0;
}

vt__found *vt__report(vt__reports *reports, vt_validate_kind kind, const vt__use *use, vt__site now, vt__site before) {
  enum { ROOM = sizeof(reports->found) / sizeof(reports->found[0]) };
  // relaxed: a statistic.
  atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed);
  vt__found *found = &reports->found[reports->count < ROOM ? reports->count++ : ROOM - 1];
  *found = (vt__found){.kind = kind, .now = now, .before = before};
  if (use != NULL) {
    found->ptr = use->ptr;
    found->bytes = use->bytes;
  }
  return found;
}

void vt__report_limit(vt__reports *reports, const char *what) {
  if (!limit_said) {
    limit_said = true;
    vt__found *found = vt__report(reports, VT_VALIDATE_LIMIT, NULL, (vt__site){0}, (vt__site){0});
    (void)snprintf(found->action, sizeof(found->action), "%s; what is wrong there may be missed from here on", what);
  }
}

typedef struct symbol_text {
  char text[160];
} symbol_text;

// The function that holds the address, or the file and the offset in it, for addr2line.
static symbol_text symbol_of(const void *caller) {
  symbol_text out = {""};
  Dl_info info;
  if (caller == NULL || dladdr == NULL || dladdr(caller, &info) == 0) {
    return out;
  }
  if (info.dli_sname != NULL) {
    (void)snprintf(out.text, sizeof(out.text), "%s+0x%zx", info.dli_sname, (size_t)((const char *)caller - (char *)info.dli_saddr));
  } else if (info.dli_fname != NULL) {
    const char *slash = strrchr(info.dli_fname, '/');
    (void)snprintf(out.text, sizeof(out.text), "%s+0x%zx", slash == NULL ? info.dli_fname : slash + 1,
                   (size_t)((const char *)caller - (char *)info.dli_fbase));
  }
  return out;
}

typedef struct site_text {
  char text[320];
} site_text;

// "vt_copy (called from step+0x1f) on queue 7, operation 12"
static site_text describe(const vt__site *site, const char *symbol) {
  site_text out = {""};
  char place[80] = "";
  if (site->function == NULL) {
    return out;
  }
  if (site->queue_id != 0 && site->sequence != 0) {
    (void)snprintf(place, sizeof(place), " on queue %llu, operation %llu", (unsigned long long)site->queue_id,
                   (unsigned long long)site->sequence);
  } else if (site->queue_id != 0) {
    (void)snprintf(place, sizeof(place), " on queue %llu", (unsigned long long)site->queue_id);
  }
  (void)snprintf(out.text, sizeof(out.text), symbol[0] == '\0' ? "%s%s%s" : "%s (called from %s)%s", site->function,
                 symbol[0] == '\0' ? place : symbol, symbol[0] == '\0' ? "" : place);
  return out;
}

static vt_validate_site as_public(const vt__site *site, const char *symbol) {
  return (vt_validate_site){
      .function = site->function, .caller = site->caller, .symbol = symbol, .queue_id = site->queue_id, .sequence = site->sequence};
}

static bool is_notice(vt_validate_kind kind) {
  return kind == VT_VALIDATE_UNRECORDED_EVENT || kind == VT_VALIDATE_LIMIT;
}

static void tell(const vt__found *found) {
  char message[1280];
  symbol_text now_symbol = symbol_of(found->now.caller);
  symbol_text before_symbol = symbol_of(found->before.caller);
  site_text now = describe(&found->now, now_symbol.text);
  site_text before = describe(&found->before, before_symbol.text);
  (void)snprintf(message, sizeof(message), "%s: %s%s%s%s%s%s", vt_validate_kind_get_name(found->kind), now.text,
                 now.text[0] == '\0' ? "" : " ", found->action, before.text[0] == '\0' ? "" : " ", before.text, found->tail);
  vt_validate_report report = {.struct_size = sizeof(report),
                               .kind = found->kind,
                               .severity = is_notice(found->kind) ? VT_SEVERITY_NOTICE : VT_SEVERITY_ERROR,
                               .ptr = found->ptr,
                               .bytes = found->bytes,
                               .now = as_public(&found->now, now_symbol.text),
                               .before = as_public(&found->before, before_symbol.text),
                               .message = message};
  vt__log(is_notice(found->kind) ? VT_LOG_INFO : VT_LOG_ERROR, "validation: %s", message);
  pthread_mutex_lock(&hook_mutex);
  vt_validate_fn fn = hook_fn;
  void *user = hook_user;
  pthread_mutex_unlock(&hook_mutex);
  if (fn != NULL) {
    vt__callback_depth++;
    fn(user, &report);
    vt__callback_depth--;
  }
}

void vt__validate_end(vt__reports *reports) {
  pthread_mutex_unlock(&mutex);
  for (size_t i = 0; i < reports->count; i++) {
    tell(&reports->found[i]);
  }
}

static void set_on_locked(bool on) {
  // relaxed: who sees it looks again under the lock.
  atomic_store_explicit(&vt__validate_on, on ? 1 : 0, memory_order_relaxed);
}

vt_status vt_validate_enable(void) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(vt__runtime_init(__func__));
  bool noted = true;
  pthread_mutex_lock(&mutex);
  if (!is_on_locked()) {
    limit_said = false;
    vt__shadow_order_open();
    // Blocks that come meanwhile are noted by who allocates them, behind this lock.
    set_on_locked(true);
    noted = vt__shadow_memory_open();
    if (!noted) {
      set_on_locked(false);
      vt__shadow_memory_close();
    }
  }
  pthread_mutex_unlock(&mutex);
  return noted ? VT_OK : vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory to note the live blocks");
}

vt_status vt_validate_disable(void) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(vt__runtime_init(__func__));
  pthread_mutex_lock(&mutex);
  if (is_on_locked()) {
    set_on_locked(false);
    vt__shadow_graphs_close();
    vt__shadow_memory_close();
    vt__uses_clear(&vt__host_uses);
    vt__shadow_complete_all();
  }
  pthread_mutex_unlock(&mutex);
  vt__memory_give_back_expired();
  return VT_OK;
}

int32_t vt_validate_is_enabled(void) {
  return vt__runtime_init(__func__) == VT_OK && vt__validate_is_on() ? 1 : 0;
}

void vt_validate_set(vt_validate_fn fn, void *user) {
  // relaxed: see vt__validate_begin().
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return;
  }
  pthread_mutex_lock(&hook_mutex);
  hook_fn = fn;
  hook_user = user;
  pthread_mutex_unlock(&hook_mutex);
}

uint64_t vt_validate_get_count(vt_validate_kind kind) {
  if (kind < 0 || kind >= VT_VALIDATE_KIND_COUNT) {
    return 0;
  }
  // relaxed: a statistic.
  return atomic_load_explicit(&counts[kind], memory_order_relaxed);
}

const char *vt_validate_kind_get_name(vt_validate_kind kind) {
  static const char *const names[VT_VALIDATE_KIND_COUNT] = {
      [VT_VALIDATE_RACE] = "race",
      [VT_VALIDATE_USE_AFTER_FREE] = "use after free",
      [VT_VALIDATE_USE_AFTER_RESET] = "use after reset",
      [VT_VALIDATE_OUT_OF_BOUNDS] = "out of bounds",
      [VT_VALIDATE_PENDING] = "pending",
      [VT_VALIDATE_FREED_UNDER_GRAPH] = "freed under a graph",
      [VT_VALIDATE_CAPTURE] = "capture",
      [VT_VALIDATE_UNRECORDED_EVENT] = "unrecorded event",
      [VT_VALIDATE_LIMIT] = "limit",
  };
  return kind >= 0 && kind < VT_VALIDATE_KIND_COUNT ? names[kind] : NULL;
}

bool vt__validate_init(void) {
  const char *wanted = getenv("VT_VALIDATE");
  if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "0") == 0) {
    return true;
  }
  if (strcmp(wanted, "1") != 0) {
    vt__log(VT_LOG_WARN, "VT_VALIDATE=%s is neither 0 nor 1; validation is off", wanted);
    return true;
  }
  return vt_validate_enable() == VT_OK;
}

static vt_status check_range(const void *ptr, size_t bytes, uint32_t mode, const char *function) {
  if (mode == 0 || (mode & ~(uint32_t)(VT_TOUCH_READ | VT_TOUCH_WRITE)) != 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "mode 0x%x is none of read (1), write (2) and both (3)",
                        mode);
  }
  if (ptr == NULL && bytes != 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "ptr is NULL");
  }
  return VT_OK;
}

vt_status vt_validate_touch(vt_queue *queue, const void *ptr, size_t bytes, uint32_t mode) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  VT_TRY(check_range(ptr, bytes, mode, __func__));
  if (vt__validate_is_on() && bytes != 0) {
    vt__use use = {ptr, bytes, mode};
    vt__validate_check(queue, &use, 1, VT__HERE);
    vt__validate_note(queue, &use, 1, VT__HERE);
  }
  return VT_OK;
}

vt_status vt_validate_host_access(const void *ptr, size_t bytes, uint32_t mode) {
  VT_TRY(vt__check_usable(__func__));
  VT_TRY(check_range(ptr, bytes, mode, __func__));
  vt__reports reports;
  if (vt__validate_is_on() && bytes != 0 && vt__validate_begin(&reports)) {
    vt__use use = {ptr, bytes, mode};
    vt__site now = {.function = __func__, .caller = __builtin_return_address(0)};
    if (vt__shadow_check_place(&reports, &use, now)) {
      vt__use_check_pending(&reports, &use, now, vt__use_verb(mode));
    }
    vt__validate_end(&reports);
  }
  return VT_OK;
}
