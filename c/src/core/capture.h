// capture.h: which queues are being captured together, and what depends on what.
//
// A capture belongs to the thread that began it. Every member queue has a position (operations recorded so far) and a vector clock:
// the positions of all members that its next operation comes after. An event recorded in the capture carries a copy of that clock;
// waiting for it merges the clock into the waiting member's. At the end the origin's clock must cover every member's position.
#ifndef VT_CORE_CAPTURE_H
#define VT_CORE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue.h"

#define VT__CAPTURE_MAX_QUEUES 64

typedef struct vt__clock {
  uint32_t position[VT__CAPTURE_MAX_QUEUES];
} vt__clock;

typedef struct vt__capture vt__capture;

// Makes `queue` the origin of a new capture of this thread, as far as the core is concerned.
vt_status vt__capture_begin(vt_queue *queue, const char *function);

// Fails unless `queue` is the origin of a capture of this thread.
vt_status vt__capture_check_origin(vt_queue *queue, const char *function);

// Fails where something went wrong in the capture, or a member isn't joined.
vt_status vt__capture_check_complete(vt_queue *origin, vt__call_site site);

// Lets all members go.
void vt__capture_close(vt_queue *origin);

// Ends the capture in which `queue` is a member, in the backend too. For a queue whose last reference goes.
void vt__capture_abandon(vt_queue *queue, const char *why, const void *caller);

// Notes the first failure of the capture in which `queue` is a member: the thread's record.
void vt__capture_fail(vt_queue *queue, vt_status status, const void *caller);

// Moves the clock of a member on, after an operation was recorded.
void vt__capture_advance(vt_queue *queue);

// The capture with this id, if it is open and of this thread.
vt__capture *vt__capture_find(uint64_t id);

uint64_t vt__capture_get_id(const vt__capture *capture);

// What the next operation of a member comes after.
const vt__clock *vt__capture_clock(const vt_queue *queue);

// Makes `queue` a member of `capture` whose next operation comes after `clock`; merges the clocks if it is one already.
vt_status vt__capture_join(vt__capture *capture, vt_queue *queue, const vt__clock *clock, const char *function);

// Undoes the join that made `queue` the latest member.
void vt__capture_leave(vt_queue *queue);

#endif
