// check.c: see check.h.
#include "core/check.h"

#include "core/log.h"
#include "core/validate.h"

_Thread_local int32_t vt__capture_depth;

#define fail_as(function, status, ...) vt_error_set((status), VT_DOMAIN_VT, 0, (function), __VA_ARGS__)

vt_status vt__check_usable_slow(const char *function) {
  // relaxed: see vt__check_usable().
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return fail_as(
        function, VT_ERR_FAILED_PRECONDITION,
        "%s was called in a forked child: the library's threads live in the parent only; use exec, or fork before first use",
        function);
  }
  return fail_as(function, VT_ERR_FAILED_PRECONDITION, "%s was called from a callback, which may not call the runtime", function);
}

vt_status vt__check_not_forked(const char *function) {
  // relaxed: see vt__check_usable().
  return atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0 ? vt__check_usable_slow(function) : VT_OK;
}

vt_status vt__check_not_capturing(vt__call_site site) {
  const char *function = site.function;
  VT_TRY(vt__check_usable(function));
  if (vt__capture_depth > 0) {
    vt_status status =
        fail_as(function, VT_ERR_FAILED_PRECONDITION, "%s is illegal inside a capture, and this thread is capturing", function);
    if (vt__validate_is_on()) {
      vt__validate_capture_breach(0, site.caller);
    }
    return status;
  }
  return VT_OK;
}

vt_status vt__check_live_slow(const void *object, const char *what, const char *function) {
  if (object == NULL) {
    return fail_as(function, VT_ERR_INVALID_ARGUMENT, "%s is NULL", what);
  }
  return fail_as(function, VT_ERR_INVALID_ARGUMENT, "%s %p is not a live %s (released, or of another kind)", what, object, what);
}

vt_status vt__retain(void *object, const vt__handle_pool *pool, const char *what, const char *function) {
  VT_TRY(vt__check_usable(function));
  VT_TRY(vt__check_live(object, pool, what, function));
  if (!vt__handle_try_ref(object)) {
    return vt__check_live_slow(object, what, function);
  }
  return VT_OK;
}

void vt__release(void *object, const vt__handle_pool *pool, const char *what, const char *function) {
  // relaxed: see vt__check_usable(). A forked child has no threads to finish the work, so releasing is silent there.
  if (object == NULL || atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return;
  }
  if (vt__check_live(object, pool, what, function) != VT_OK) {
    vt__log(VT_LOG_ERROR, "%s: %s", function, vt_last_error()->message);
    return;
  }
  vt__handle_unref(object);
}

size_t vt_handle_get_live_count(vt_handle_kind kind) {
  static vt__handle_pool *const pools[VT_HANDLE_KIND_COUNT] = {
      &vt__queue_pool, &vt__event_pool, &vt__graph_pool, &vt__arena_pool, &vt__comm_pool, &vt__comm_group_pool,
  };
  if (kind < 0 || kind >= VT_HANDLE_KIND_COUNT) {
    return 0;
  }
  // acquire: partner is the decrement in vt__handle_recycle().
  return atomic_load_explicit(&pools[kind]->live, memory_order_acquire);
}
