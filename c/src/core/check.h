// check.h: the checks at the door of every public function.
#ifndef VT_CORE_CHECK_H
#define VT_CORE_CHECK_H

#include <stdatomic.h>

#include "base/handle.h"
#include "base/thread.h"
#include "core/error.h"
#include "core/site.h"
#include "vllm_vt/event.h"
#include "vllm_vt/handle.h"

// The pools of the public handle kinds.
extern vt__handle_pool vt__queue_pool;
extern vt__handle_pool vt__event_pool;
extern vt__handle_pool vt__graph_pool;
extern vt__handle_pool vt__arena_pool;
extern vt__handle_pool vt__comm_pool;
extern vt__handle_pool vt__comm_group_pool;

// Above 0 while this thread has captures open.
extern _Thread_local int32_t vt__capture_depth;

// Fails in a forked child and inside a callback. `function` is the public function.
vt_status vt__check_usable_slow(const char *function);
static inline vt_status vt__check_usable(const char *function) {
  // relaxed: set by the fork handler of this very thread, before anything else ran in the child.
  if (VT_LIKELY((atomic_load_explicit(&vt__forked, memory_order_relaxed) | (uint32_t)vt__callback_depth) == 0)) {
    return VT_OK;
  }
  return vt__check_usable_slow(function);
}

// Fails in a forked child, where a lock may be held by a thread that isn't there. For calls that a callback may make.
vt_status vt__check_not_forked(const char *function);

// Fails where the runtime is unusable or this thread is capturing.
vt_status vt__check_not_capturing(vt__call_site site);

static inline bool vt__wait_mode_is_known(vt_wait_mode mode) {
  return mode >= VT_WAIT_MODE_DEFAULT && mode <= VT_WAIT_MODE_SPIN;
}

// Fails unless `object` is a live handle of `pool`. `what` names the kind: "queue".
vt_status vt__check_live_slow(const void *object, const char *what, const char *function);
static inline vt_status vt__check_live(const void *object, const vt__handle_pool *pool, const char *what, const char *function) {
  return VT_LIKELY(vt__handle_is_live(object, pool)) ? VT_OK : vt__check_live_slow(object, what, function);
}

// What the public retain and release functions do for every kind.
vt_status vt__retain(void *object, const vt__handle_pool *pool, const char *what, const char *function);
void vt__release(void *object, const vt__handle_pool *pool, const char *what, const char *function);

#endif
