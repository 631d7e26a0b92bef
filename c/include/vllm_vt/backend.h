// backend.h: what a device must be able to do, and the registry of those that can.
//
// A backend is one table of functions for one device. The built-in ones are registered on first use; a plug-in registers its own at
// any time, also before main(). The runtime checks arguments, lifetimes and capture rules before it calls a method, so a method
// sees only its own objects, alive and of its own device.
#ifndef VLLM_VT_BACKEND_H
#define VLLM_VT_BACKEND_H

#include "vllm_vt/device.h"
#include "vllm_vt/event.h"
#include "vllm_vt/memory.h"
#include "vllm_vt/memory_options.h"
#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VT_BACKEND_ABI_MAJOR 1
#define VT_BACKEND_ABI_MINOR 1

#define VT_HOST_CALL_PAYLOAD 80

// A closure that a queue runs on the host in stream order. Backends copy it by value; `payload` is passed to each function by
// address and is aligned to 8 bytes. A queue calls run() once, a graph once per launch; where the work may not run since the queue
// has failed, cancel() is called in place of run(), with the failure in vt_last_error(). drop() is called exactly once, when
// neither will be called any more, also where submitting the call fails.
typedef struct vt_host_call {
  vt_status (*run)(void *payload);
  void (*cancel)(void *payload);  // may be NULL
  void (*drop)(void *payload);    // may be NULL
  uint64_t payload[VT_HOST_CALL_PAYLOAD / 8];
} vt_host_call;

// The table. Every method gets `self` as registered; `queue`, `event` and `graph` are what the create methods of the same table
// gave. A method that fails calls vt_error_set() and returns its result; it leaves everything as it was. Methods may be called from
// any thread, and on one object from several at once unless said otherwise. None is called inside another one of the same thread.
// "required": registration refuses a table without it. Otherwise the default is stated; no default pretends.
typedef struct vt_backend_ops {
  size_t struct_size;
  uint32_t abi_major;  // VT_BACKEND_ABI_MAJOR; another one is refused
  uint32_t abi_minor;

  // Memory.
  vt_status (*alloc)(void *self, size_t bytes, void **out_ptr);         // required; 64-byte aligned; bytes is never 0
  vt_status (*free)(void *self, void *ptr);                             // required
  vt_status (*pinned_alloc)(void *self, size_t bytes, void **out_ptr);  // required with async queues; else UNSUPPORTED
  vt_status (*pinned_free)(void *self, void *ptr);                      // comes with pinned_alloc
  vt_status (*copy)(void *self, void *queue, void *dst, const void *src, size_t bytes);  // required; bytes is never 0
  vt_status (*memset)(void *self, void *queue, void *ptr, uint8_t value, size_t bytes);  // required; bytes is never 0

  // Queue. queue_destroy never waits: the queue runs what it holds, then calls done(user), once, on a thread that may call the
  // runtime.
  vt_status (*queue_create)(void *self, const vt_queue_options *options, uint64_t id, void **out_queue);  // required
  void (*queue_destroy)(void *self, void *queue, void (*done)(void *user), void *user);                   // required
  vt_status (*queue_synchronize)(void *self, void *queue);                                                // required
  vt_status (*queue_query)(void *self, void *queue);                                                      // required
  vt_status (*queue_get_ticket)(void *self, void *queue, uint64_t *out_ticket);                           // required
  vt_status (*queue_wait_ticket)(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns);          // required
  vt_status (*queue_host_call)(void *self, void *queue, const vt_host_call *call);  // required; takes over `call` in any case
  void *(*queue_get_native)(void *self, void *queue);                               // else NULL

  // Events: all but the last two, or none. None is legal only without async queues: then an event is complete once it is recorded,
  // since the work before it is. `flags` are VT_EVENT_BLOCKING, with which event_wait sleeps at once, and VT_EVENT_TIMING.
  vt_status (*event_create)(void *self, uint32_t flags, void **out_event);
  void (*event_destroy)(void *self, void *event);  // at any time; never waits
  vt_status (*event_record)(void *self, void *event, void *queue);
  vt_status (*event_query)(void *self, void *event);
  vt_status (*event_wait)(void *self, void *event, uint64_t timeout_ns);  // timeout_ns is never 0
  vt_status (*queue_after_event)(void *self, void *queue, void *event);   // event may be of another device of the same table
  vt_status (*event_get_elapsed)(void *self, void *start, void *end, uint64_t *out_ns);  // else UNSUPPORTED
  void *(*event_get_native)(void *self, void *event);                                    // else NULL

  // Graphs: all but the last two, or none, which VT_CAP_GRAPH_CAPTURE rules out. The runtime sees to it that begin and end match,
  // that forks are joined and which queues are members; queue_after_event with an event recorded in the capture is how a queue
  // joins. After end or abort every member is usable.
  vt_status (*capture_begin)(void *self, void *queue);
  vt_status (*capture_end)(void *self, void *queue, void **out_graph);
  vt_status (*capture_abort)(void *self, void *queue);
  vt_status (*graph_launch)(void *self, void *graph, void *queue);
  void (*graph_destroy)(void *self, void *graph);                                 // at any time; never waits
  vt_status (*graph_get_node_count)(void *self, void *graph, size_t *out_count);  // else UNSUPPORTED
  void *(*graph_get_native)(void *self, void *graph);                             // else NULL

  // Device.
  vt_status (*get_info)(void *self, vt_device_info *out_info);  // required; struct_size is set
  vt_status (*flush)(void *self);                               // else nothing: work is submitted as it comes

  // Since ABI 1.1.
  // As event_wait, in the way of `mode`, which is never the default. Else UNSUPPORTED, but for what VT_EVENT_BLOCKING gives.
  vt_status (*event_wait_by)(void *self, void *event, vt_wait_mode mode, uint64_t timeout_ns);
  // Many copies as one operation, queued wholly or not at all. The ranges were checked. `ops` is valid during the call only; there
  // is an entry with bytes, and those without are to be skipped. Neither width nor rows is 0, and rows lie apart.
  vt_status (*copy_batch)(void *self, void *queue, const vt_copy_op *ops, size_t count);  // else a copy for each entry
  vt_status (*copy_2d)(void *self, void *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                       size_t rows);  // else a copy for each row
  // Memory with options: both or none; none ignores hints, and has no shareable memory. Hints that aren't followed are taken out of
  // `options`. What it gives goes back with free, or pinned_free, by options->kind.
  vt_status (*alloc_with)(void *self, size_t bytes, vt_alloc_options *options, void **out_ptr);
  vt_status (*export_fd)(void *self, const void *ptr, int32_t *out_fd, size_t *out_offset, size_t *out_bytes);
} vt_backend_ops;

// One registered backend.
typedef struct vt_backend vt_backend;

// Registers a backend for one device. Registering the same table, name and self again is fine.
//
// Order    visible to every look-up that begins after the return
// Memory   copies at most sizeof(vt_backend_ops) bytes of the table, and the name; `self` must live as long as the process
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  unknown type, index outside 0..15, no or too long a name (63 bytes), another ABI major, a
//                                   struct_size that is too small or ends inside a method, a
//                                   required method missing, half a group of methods, or none of a group that the caps need
//          VT_ERR_ALREADY_EXISTS    the device is taken
//          VT_ERR_OUT_OF_MEMORY     nothing was registered
//          VT_ERR_FAILED_PRECONDITION  in a forked child
//          or what get_info answered
VT_API vt_status vt_backend_register(vt_device device, const char *name, const vt_backend_ops *ops, void *self);

// Looks a backend up.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         nothing is registered for `device`; index 0 never stands in
//          VT_ERR_INVALID_ARGUMENT  unknown type, index outside 0..15, or `out_backend` NULL
VT_API vt_status vt_backend_get(vt_device device, const vt_backend **out_backend);

// Looks a backend up. NULL where none is registered or `device` isn't one.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   none returned; where there is no memory for the first use of the library, NULL and the last error say so
VT_API const vt_backend *vt_backend_find(vt_device device);

// The type-level forms: index 0 of `type`.
//
// Order    none
// Memory   as vt_backend_get()
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   as vt_backend_get()
VT_API vt_status vt_backend_get_default(vt_device_type type, const vt_backend **out_backend);

// The type-level form of vt_backend_find().
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   as vt_backend_find()
VT_API const vt_backend *vt_backend_find_default(vt_device_type type);

// Reads the name under which a backend was registered. NULL for NULL.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API const char *vt_backend_get_name(const vt_backend *backend);

// A device's own way to get memory and queues. All four or none. `create_queue` gives a queue for the methods of the backend that
// is registered for the same device; `destroy_queue` is as vt_backend_ops.queue_destroy.
typedef struct vt_device_resource_ops {
  size_t struct_size;
  vt_status (*alloc)(vt_device device, size_t bytes, void **out_ptr);
  vt_status (*free)(vt_device device, void *ptr);
  vt_status (*create_queue)(vt_device device, const vt_queue_options *options, uint64_t id, void **out_queue);
  void (*destroy_queue)(vt_device device, void *queue, void (*done)(void *user), void *user);
} vt_device_resource_ops;

// Registers the resource table of one device; where none is registered, the backend of that device serves. Blocks and queues go
// back to the table that made them. Registering the same table again is fine.
//
// Order    visible to every call that begins after the return
// Memory   copies the table
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  unknown type or index, or one of the four is missing
//          VT_ERR_ALREADY_EXISTS    the device has another table
//          VT_ERR_OUT_OF_MEMORY     nothing was registered
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_device_resource_register(vt_device device, const vt_device_resource_ops *ops);

#ifdef __cplusplus
}
#endif

#endif
