// host_func.c: the user's callbacks as host calls.
#include <string.h>

#include "core/queue.h"
#include "core/validate.h"

typedef struct host_func {
  vt_host_fn fn;
  void *user;
  void (*drop)(void *user);
  vt__host_token token;
} host_func;

_Static_assert(sizeof(host_func) <= VT_HOST_CALL_PAYLOAD, "the payload must hold a host function");

static vt_status run(void *payload) {
  const host_func *func = payload;
  if (VT_UNLIKELY(func->token.place != 0)) {
    vt__validate_host_runs(func->token);
  }
  uint64_t serial = vt__error_serial();
  vt__callback_depth++;
  vt_status status = func->fn(func->user);
  vt__callback_depth--;
  if (status >= 0) {
    return VT_OK;
  }
  if (vt__error_serial() == serial || vt_last_error()->status != status) {
    return vt_error_set(status, VT_DOMAIN_VT, 0, "vt_queue_host_func", "a host function answered %s (%d)",
                        vt_status_get_name(status), status);
  }
  return status;
}

// Only for the validation layer: what stands before a cancelled function is over as well.
static void cancel(void *payload) {
  vt__validate_host_runs(((const host_func *)payload)->token);
}

static void drop_func(void *payload) {
  const host_func *func = payload;
  if (func->drop != NULL) {
    vt__callback_depth++;
    func->drop(func->user);
    vt__callback_depth--;
  }
}

static vt_status check_func(vt_queue *queue, vt_host_fn fn, const void *caller) {
  VT_TRY(vt__queue_check_submit(queue, "vt_queue_host_func"));
  if (fn == NULL) {
    vt_status status = vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_queue_host_func", "fn is NULL");
    return vt__queue_refused(queue, status, caller);
  }
  return VT_OK;
}

vt_status vt_queue_host_func(vt_queue *queue, vt_host_fn fn, void *user, void (*drop)(void *user)) {
  host_func func = {.fn = fn, .user = user, .drop = drop};
  vt_status status = check_func(queue, fn, VT__CALLER);
  if (status != VT_OK) {
    drop_func(&func);
    return status;
  }
  if (vt__validate_is_on()) {
    func.token = vt__validate_host_token(queue);
  }
  vt_host_call call = {.run = run, .drop = drop == NULL ? NULL : drop_func};
  call.cancel = func.token.place != 0 ? cancel : NULL;
  memcpy(call.payload, &func, sizeof(func));
  return vt__queue_submit_call(queue, &call, VT__HERE);
}
