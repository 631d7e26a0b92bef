// event.h: marks in a queue that other queues and the host can wait for.
//
// An event that was never recorded counts as complete. Whoever waits takes the latest record at the time of the call.
#ifndef VLLM_VT_EVENT_H
#define VLLM_VT_EVENT_H

#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vt_event vt_event;

enum {
  VT_EVENT_BLOCKING = 1 << 0,  // the host waits as with VT_WAIT_MODE_BLOCK
  VT_EVENT_TIMING = 1 << 1,    // records carry a time, see vt_event_get_elapsed()
  VT_EVENT_SPINNING = 1 << 2,  // the host waits as with VT_WAIT_MODE_SPIN
  VT_EVENT_YIELDING = 1 << 3,  // the host waits as with VT_WAIT_MODE_YIELD
};

// How a host thread waits for an event.
typedef int32_t vt_wait_mode;
enum {
  VT_WAIT_MODE_DEFAULT = 0,  // as the event's flags say; without one it spins for some tens of microseconds, then sleeps
  VT_WAIT_MODE_BLOCK = 1,    // sleeps at once: costs no CPU time, and the time that it takes to be woken
  VT_WAIT_MODE_YIELD = 2,    // polls without end, and offers its CPU to others in between
  VT_WAIT_MODE_SPIN = 3,     // polls without end: the shortest wait, at the price of a whole CPU
};

// Creates an event on `device`.
//
// Order    none
// Memory   the caller owns one reference, see vt_event_release()
// Units    `flags` are VT_EVENT_* bits
// Threads  any
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type, index or flag, two ways to wait, or `out_event` NULL
//          VT_ERR_UNSUPPORTED          VT_EVENT_TIMING, VT_EVENT_SPINNING or VT_EVENT_YIELDING on a backend that can't
//          VT_ERR_OUT_OF_MEMORY        no memory for the event
//          VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_event_create(vt_device device, uint32_t flags, vt_event **out_event);

// Takes one more reference.
//
// Order    none
// Memory   to be given back with vt_event_release()
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live event
VT_API vt_status vt_event_retain(vt_event *event);

// Gives up one reference. Never waits: queues that were told to wait for the event still do.
//
// Order    none
// Memory   NULL is fine; a misuse goes to the last error and the log. A thread that still waits for the event must hold a
//          reference of its own: else the release is a use after free
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned
VT_API void vt_event_release(vt_event *event);

// Records the event: it completes when everything submitted to `queue` so far has completed.
//
// Order    replaces the earlier record; who waits already keeps waiting for that one
// Memory   none
// Units    none
// Threads  any
// Capture  recorded: marks a point of the capture, for queues that join it; the host can't wait for such a record
// Errors   VT_ERR_INVALID_ARGUMENT     not live, or queue and event are of different devices
//          VT_NOT_READY                timing events only: the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_event_record(vt_event *event, vt_queue *queue);

// Waits on the host until the event has completed.
//
// Order    the work before the record happens-before the return
// Memory   none
// Units    none
// Threads  any
// Capture  refused where the latest record was made in a capture; also on a thread that is capturing
// Errors   VT_ERR_INVALID_ARGUMENT     not a live event
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
//          or the failure of the queue at or before the record
VT_API vt_status vt_event_synchronize(vt_event *event);

// Waits as vt_event_synchronize() does, for a limited time.
//
// Order    VT_OK: the work before the record happens-before the return
// Memory   none
// Units    ns; 0 polls (then a pending event answers VT_NOT_READY), VT_WAIT_FOREVER never times out
// Threads  any
// Capture  as vt_event_synchronize(); a poll is legal on a thread that is capturing
// Errors   VT_NOT_READY    `timeout_ns` is 0 and the event is pending
//          VT_ERR_TIMEOUT  the time passed; the work goes on
//          and those of vt_event_synchronize()
VT_API vt_status vt_event_wait(vt_event *event, uint64_t timeout_ns);

// Waits as vt_event_wait() does, in a way that is chosen for this call, whatever the event's flags say.
//
// Order    VT_OK: the work before the record happens-before the return
// Memory   none
// Units    ns, as vt_event_wait()
// Threads  any
// Capture  as vt_event_wait()
// Errors   VT_ERR_INVALID_ARGUMENT  unknown mode
//          VT_ERR_UNSUPPORTED       the backend can't wait in this way: it leaves out event_wait_by. Every backend can by
//                                   VT_WAIT_MODE_DEFAULT, and by VT_WAIT_MODE_BLOCK for an event of VT_EVENT_BLOCKING
//          and those of vt_event_wait()
VT_API vt_status vt_event_wait_by(vt_event *event, vt_wait_mode mode, uint64_t timeout_ns);

// Asks whether the event has completed, without blocking.
//
// Order    VT_OK: the work before the record happens-before the return
// Memory   none
// Units    none
// Threads  any
// Capture  allowed on a thread that is capturing; refused where the latest record was made in a capture
// Errors   VT_NOT_READY                pending
//          VT_ERR_INVALID_ARGUMENT     not a live event
//          VT_ERR_FAILED_PRECONDITION  recorded in a capture, in a forked child, or from a callback
//          or the failure of the queue at or before the record
VT_API vt_status vt_event_query(vt_event *event);

// Makes later work of `queue` wait for the latest record of `event`. The host isn't blocked, except on a synchronous queue, whose
// call returns when the event has completed.
//
// Order    the work before the record happens-before the work submitted to `queue` afterwards
// Memory   the event may be released at once
// Units    none
// Threads  any
// Capture  with an event recorded in a capture: `queue` joins that capture. With any other event on a capturing queue: refused
// Errors   VT_ERR_INVALID_ARGUMENT     not live, or backends that can't wait for each other
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the event is of another capture, or of one that has ended; the queue was destroyed; in a
//                                      forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_queue_after_event(vt_queue *queue, vt_event *event);

// Reads the time between two completed timing events.
//
// Order    none
// Memory   none
// Units    ns; `end` may not lie before `start`
// Threads  any
// Capture  allowed
// Errors   VT_NOT_READY                one of them is pending
//          VT_ERR_INVALID_ARGUMENT     not live, without VT_EVENT_TIMING, of different devices, `out_ns` NULL, or end before start
//          VT_ERR_FAILED_PRECONDITION  one of them was never recorded, or recorded in a capture
VT_API vt_status vt_event_get_elapsed(vt_event *start, vt_event *end, uint64_t *out_ns);

// Reads the device of an event.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live event, or `out_device` NULL
VT_API vt_status vt_event_get_device(vt_event *event, vt_device *out_device);

// Reads the id of an event: unique in the process, growing, never used again. 0 for what isn't a live event.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API uint64_t vt_event_get_id(vt_event *event);

// Reads the backend's own handle (a cudaEvent_t). NULL where there is none.
//
// Order    none
// Memory   borrowed from the event
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API void *vt_event_get_native(vt_event *event);

#ifdef __cplusplus
}
#endif

#endif
