// timeline.h: how far a queue has come, and where it failed.
//
// Commands of a queue are numbered from 1. `done` is the number up to which all have completed. Events keep (timeline, number) and
// may outlive the queue.
#ifndef VT_CPU_TIMELINE_H
#define VT_CPU_TIMELINE_H

#include <stdatomic.h>

#include "base/wait.h"
#include "core/error.h"
#include "vllm_vt/event.h"

typedef struct vt__timeline {
  vt__counter done;
  // Behind here on another line: `done` moves with every command, and submitters look at the failure.
  _Alignas(VT_NO_SHARING) _Atomic uint64_t failed_at;  // number of the command that failed; 0: none did
  _Atomic uint32_t refs;
  uint64_t queue_id;
  vt__saved_error error;  // valid once failed_at isn't 0
} vt__timeline;

// Makes a timeline with one reference. NULL if there is no memory.
vt__timeline *vt__timeline_new(uint64_t queue_id);

void vt__timeline_ref(vt__timeline *timeline);
void vt__timeline_unref(vt__timeline *timeline);

// Notes that command `ticket` failed with the thread's record. Called by the queue's worker, once at most, before it is done.
void vt__timeline_fail(vt__timeline *timeline, uint64_t ticket, vt_status status);

// The failure of the queue, if it has failed: restores its record.
vt_status vt__timeline_get_failure(const vt__timeline *timeline);

// Whether command `ticket` is done: VT_OK, VT_NOT_READY, or the failure at or before it.
vt_status vt__timeline_query(const vt__timeline *timeline, uint64_t ticket);

// Waits for command `ticket`, in the default mode spinning a little before it sleeps. Answers VT_ERR_TIMEOUT after `timeout_ns`,
// which isn't 0.
vt_status vt__timeline_wait(vt__timeline *timeline, uint64_t ticket, uint64_t timeout_ns, vt_wait_mode mode, const char *function);

#endif
