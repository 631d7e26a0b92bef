// op_reference.h: the reference tier: operations that no provider serves, run by a CPU function.
//
// An operation may have one reference: a plain function of the host. Where a device has no provider for the operation and its
// memory is host-addressable, vt_op_call_reference() runs the function in stream order. It is slow and says so once in the log. It
// is the last resort below all providers: vt_op_get() never finds it, vt_op_is_registered() doesn't count it, and a caller asks for
// it in so many words. Its name disables it and reads its statistics.
#ifndef VLLM_VT_OP_REFERENCE_H
#define VLLM_VT_OP_REFERENCE_H

#include "vllm_vt/op.h"
#include "vllm_vt/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VT_OP_REFERENCE_NAME "vt-cpu-ref"
#define VT_OP_REFERENCE_PRIORITY (-1000)

// Room for the arguments of a reference, in bytes.
#define VT_OP_REFERENCE_ARGS_MAX 72

// The CPU function of an operation. `fn` gets a copy of the arguments, aligned to 8 bytes; an error that it returns sticks to the
// queue. It may not call the runtime, except vt_last_error(), vt_error_set() and plain conversions.
typedef struct vt_op_reference {
  size_t struct_size;
  vt_status (*fn)(void *args);
  size_t args_bytes;  // at most VT_OP_REFERENCE_ARGS_MAX
} vt_op_reference;

// Gives an operation its CPU function.
//
// Order    visible to every call that begins after the return
// Memory   copies `reference`
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     unknown op, `reference` or its function NULL, args_bytes too large
//          VT_ERR_ALREADY_EXISTS       the op has another reference; the same one again is fine
//          VT_ERR_OUT_OF_MEMORY        nothing was registered
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_reference_register(vt_op_id op, const vt_op_reference *reference);

// Queues the CPU function of an operation on a queue of any device whose memory the host can address. Where the result is needed at
// once, flush the device, then synchronize the queue.
//
// Order    runs after everything submitted before, and before everything submitted after
// Memory   copies args_bytes bytes of `args`; what these point to must live until the function has run
// Units    none
// Threads  any; the function runs where host functions of the queue run
// Capture  refused, and the refusal fails the capture: a graph would bake the slow path in
// Errors   VT_ERR_NOT_FOUND             the op is unknown or has no reference
//          VT_ERR_UNSUPPORTED           the device's memory is not host-addressable, the tier is disabled, or strict mode is on
//          VT_ERR_FAILED_PRECONDITION   inside a capture; the queue was destroyed, in a forked child, or from a callback
//          VT_ERR_INVALID_ARGUMENT      not a live queue, or `args` NULL where the reference takes some
//          VT_NOT_READY                 the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          or the failure that stuck to the queue; on a synchronous queue the status of the function
VT_API vt_status vt_op_call_reference(vt_op_id op, vt_queue *queue, const void *args);

#ifdef __cplusplus
}
#endif

#endif
