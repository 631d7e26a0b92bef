// queue.h: ordered streams of work on a device.
//
// Operations of one queue run in the order in which they were submitted. A CPU queue is synchronous unless VT_QUEUE_ASYNC is asked
// for: then the work is done when the call returns. An asynchronous queue has a worker; a failure sticks to it: what stands behind
// the failed operation does not run, and every later call answers that failure.
#ifndef VLLM_VT_QUEUE_H
#define VLLM_VT_QUEUE_H

#include "vllm_vt/device.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vt_queue vt_queue;

enum {
  VT_QUEUE_ASYNC = 1 << 0,      // CPU: a worker runs the work. Other devices are asynchronous anyway
  VT_QUEUE_FAIL_FULL = 1 << 1,  // a submission to a full ring answers VT_NOT_READY and queues nothing, instead of waiting
};

// Waits of this length never time out.
#define VT_WAIT_FOREVER UINT64_MAX

// How to make a queue. Start from VT_QUEUE_OPTIONS_INIT.
typedef struct vt_queue_options {
  size_t struct_size;
  uint32_t flags;          // VT_QUEUE_* bits
  uint32_t ring_capacity;  // operations that fit before submission waits; 0 = 1024; rounded up to a power of two, at most 65536
  const char *name;        // of the worker thread, copied; NULL = "vt-queue"
  uint64_t cpu_mask;       // CPUs 0..63 on which the worker may run; those it may not use are a warning; 0 = as who starts it
  int32_t priority;        // of the worker: -20 (urgent) to 19 (background); a refusal is a warning; 0 = as who starts it
} vt_queue_options;

#define VT_QUEUE_OPTIONS_INIT \
  { sizeof(vt_queue_options), 0, 0, NULL, 0, 0 }

// Creates a queue on `device`.
//
// Order    none
// Memory   the caller owns one reference, see vt_queue_release()
// Units    see vt_queue_options; `options` may be NULL
// Threads  any; a worker is started by the first operation. It takes no signals: all are blocked in it
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type, index or flag, capacity above 65536, priority out of range, `out_queue` NULL
//          VT_ERR_OUT_OF_MEMORY        no memory for the queue
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_queue_create(vt_device device, const vt_queue_options *options, vt_queue **out_queue);

// Takes one more reference.
//
// Order    none
// Memory   to be given back with vt_queue_release()
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  `queue` is not a live queue
VT_API vt_status vt_queue_retain(vt_queue *queue);

// Gives up one reference. With the last one the queue runs what it holds, then goes away; a capture on it is aborted. Never waits.
//
// Order    none
// Memory   NULL is fine; a misuse goes to the last error and the log. A thread that still waits for the queue must hold a
//          reference of its own: else the release is a use after free
// Units    none
// Threads  any
// Capture  allowed; the last reference of a capturing queue aborts the capture it belongs to
// Errors   none returned
VT_API void vt_queue_release(vt_queue *queue);

// Waits for the queue's work, then gives up the caller's reference. Other references stay valid but refuse new work.
//
// Order    everything submitted before has completed when it returns
// Memory   the reference is gone whatever is returned, except for VT_ERR_INVALID_ARGUMENT and VT_ERR_FAILED_PRECONDITION
// Units    none
// Threads  any
// Capture  refused on a capturing queue, which fails that capture, and on a thread that is capturing
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_queue_destroy(vt_queue *queue);

// Waits until everything submitted so far has completed.
//
// Order    everything submitted before happens-before the return
// Memory   none
// Units    none
// Threads  any
// Capture  refused on a capturing queue, which fails that capture, and on a thread that is capturing
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
//          or the failure that stuck to the queue
VT_API vt_status vt_queue_synchronize(vt_queue *queue);

// Asks whether everything submitted so far has completed, without blocking.
//
// Order    VT_OK: everything submitted before happens-before the return
// Memory   none
// Units    none
// Threads  any
// Capture  refused on a capturing queue; the refusal fails that capture
// Errors   VT_NOT_READY             work is pending
//          VT_ERR_INVALID_ARGUMENT  not a live queue
//          or the failure that stuck to the queue
VT_API vt_status vt_queue_query(vt_queue *queue);

// Reads the ticket of the last operation submitted. Tickets of a queue start at 1 and grow by at least one per operation.
//
// Order    none
// Memory   none
// Units    tickets; 0 before the first operation
// Threads  any
// Capture  allowed; recording takes no tickets
// Errors   VT_ERR_INVALID_ARGUMENT  not a live queue, or `out_ticket` NULL
VT_API vt_status vt_queue_get_ticket(vt_queue *queue, uint64_t *out_ticket);

// Waits until the operation of `ticket`, and all before it, have completed.
//
// Order    they happen-before the return
// Memory   none
// Units    ns; 0 polls (then a pending ticket answers VT_NOT_READY), VT_WAIT_FOREVER never times out
// Threads  any
// Capture  a poll is allowed; a wait is refused on a capturing queue, which fails that capture, and on a thread that is capturing
// Errors   VT_NOT_READY             `timeout_ns` is 0 and the ticket is pending
//          VT_ERR_TIMEOUT           the time passed; the work goes on
//          VT_ERR_INVALID_ARGUMENT  not a live queue, or a ticket that wasn't given out yet
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
//          or the failure that stuck to the queue at or before that ticket
VT_API vt_status vt_queue_wait_ticket(vt_queue *queue, uint64_t ticket, uint64_t timeout_ns);

// A host callback in stream order. An error that it returns sticks to the queue like that of any operation. It may not call the
// runtime, except vt_last_error(), vt_error_set() and plain conversions. It returns: where its thread ends in it (pthread_exit(),
// cancellation), the queue's work, and other launches of the graph that it is of, wait for ever.
typedef vt_status (*vt_host_fn)(void *user);

// Queues a host callback.
//
// Order    `fn` runs after everything submitted before, and before everything submitted after
// Memory   `drop(user)`, where given, is called exactly once, when neither queue nor graph can call `fn` any more, whether `fn` ran
//          or not, and also where this call fails. It may not call the runtime
// Units    none
// Threads  any; `fn` runs on the queue's worker, on a synchronous queue on the calling thread
// Capture  recorded: `fn` runs at each launch
// Errors   VT_NOT_READY                 the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_INVALID_ARGUMENT      not a live queue, or `fn` is NULL
//          VT_ERR_FAILED_PRECONDITION   the queue was destroyed, in a forked child, or from a callback
//          or the failure that stuck to the queue; on a synchronous queue the status of `fn`
VT_API vt_status vt_queue_host_func(vt_queue *queue, vt_host_fn fn, void *user, void (*drop)(void *user));

// Adds a callback for the end of the queue: it runs after the queue's last work has completed, whichever way the queue goes, in
// reverse order of registration, on a thread that may call the runtime.
//
// Order    after all work of the queue
// Memory   `user` must live until `fn` was called
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live queue, or `fn` is NULL
//          VT_ERR_OUT_OF_MEMORY     nothing was registered
VT_API vt_status vt_queue_on_destroy(vt_queue *queue, void (*fn)(void *user), void *user);

// Reads the device of a queue.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live queue, or `out_device` NULL
VT_API vt_status vt_queue_get_device(vt_queue *queue, vt_device *out_device);

// Reads the id of a queue: unique in the process, growing, never used again. 0 for what isn't a live queue.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API uint64_t vt_queue_get_id(vt_queue *queue);

// Reads the backend's own handle (a cudaStream_t). It is no identity: it may be used again. NULL where there is none.
//
// Order    none
// Memory   borrowed from the queue
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API void *vt_queue_get_native(vt_queue *queue);

// Answers 1 if operations of this queue are done when the call returns, else 0.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse answers 0 and goes to the last error
VT_API int32_t vt_queue_is_synchronous(vt_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
