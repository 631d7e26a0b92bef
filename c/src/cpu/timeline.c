// timeline.c: see timeline.h.
#include "cpu/timeline.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cpu/cpu.h"

vt__timeline *vt__timeline_new(uint64_t queue_id) {
  vt__timeline *timeline = vt__calloc_lines(sizeof(*timeline));
  if (timeline != NULL) {
    timeline->queue_id = queue_id;
    // relaxed: not shared yet.
    atomic_store_explicit(&timeline->refs, 1, memory_order_relaxed);
  }
  return timeline;
}

void vt__timeline_ref(vt__timeline *timeline) {
  // relaxed: the caller holds a reference already, or a lock under which one is held.
  atomic_fetch_add_explicit(&timeline->refs, 1, memory_order_relaxed);
}

void vt__timeline_unref(vt__timeline *timeline) {
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (timeline != NULL && atomic_fetch_sub_explicit(&timeline->refs, 1, memory_order_acq_rel) == 1) {
    vt__free(timeline);
  }
}

void vt__timeline_fail(vt__timeline *timeline, uint64_t ticket, vt_status status) {
  vt__error_save(&timeline->error, status);
  // release: partner is the acquire load in failed_at().
  atomic_store_explicit(&timeline->failed_at, ticket, memory_order_release);
}

static uint64_t failed_at(const vt__timeline *timeline) {
  // acquire: partner is the release store in vt__timeline_fail(): the error is complete.
  return atomic_load_explicit(&((vt__timeline *)(uintptr_t)timeline)->failed_at, memory_order_acquire);
}

vt_status vt__timeline_get_failure(const vt__timeline *timeline) {
  return failed_at(timeline) == 0 ? VT_OK : vt__error_restore(&timeline->error);
}

vt_status vt__timeline_query(const vt__timeline *timeline, uint64_t ticket) {
  if (vt__counter_load(&timeline->done) < ticket) {
    return VT_NOT_READY;
  }
  uint64_t failed = failed_at(timeline);
  return failed != 0 && failed <= ticket ? vt__error_restore(&timeline->error) : VT_OK;
}

static bool wait_until_done(vt__timeline *timeline, uint64_t ticket, uint64_t timeout_ns, vt_wait_mode mode) {
  uint64_t deadline_ns = vt__deadline_after(timeout_ns);
  if (mode == VT_WAIT_MODE_SPIN || mode == VT_WAIT_MODE_YIELD) {
    return vt__counter_poll(&timeline->done, ticket, deadline_ns, mode == VT_WAIT_MODE_YIELD);
  }
  return vt__counter_wait(&timeline->done, ticket, deadline_ns, NULL, mode == VT_WAIT_MODE_BLOCK ? 0 : VT__CPU_SPINS);
}

vt_status vt__timeline_wait(vt__timeline *timeline, uint64_t ticket, uint64_t timeout_ns, vt_wait_mode mode, const char *function) {
  vt_status status = vt__timeline_query(timeline, ticket);
  if (status != VT_NOT_READY) {
    return status;
  }
  if (!wait_until_done(timeline, ticket, timeout_ns, mode)) {
    return vt_error_set(VT_ERR_TIMEOUT, VT_DOMAIN_VT, 0, function,
                        "waited %llu ns for operation %llu of queue %llu, which is at %llu", (unsigned long long)timeout_ns,
                        (unsigned long long)ticket, (unsigned long long)timeline->queue_id,
                        (unsigned long long)vt__counter_load(&timeline->done));
  }
  return vt__timeline_query(timeline, ticket);
}
