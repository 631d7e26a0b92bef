// op.h: operation providers: who implements an operation on a type of device.
//
// Operations are interned names ("vt.all_reduce", "engine.rope"). Per operation and device type there is a list of providers,
// ordered by priority, highest first, then by name, bytewise; the order of registration has no influence. The list is an immutable
// snapshot: a look-up is one atomic load. How to steer and watch the choice is in op_control.h, the reference tier for operations
// without a provider in op_reference.h.
#ifndef VLLM_VT_OP_H
#define VLLM_VT_OP_H

#include "vllm_vt/device.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// An interned operation name. 0 is none.
typedef int32_t vt_op_id;

// The name and priority under which this library provides its own operations.
#define VT_OP_NATIVE_NAME "vt-native"
#define VT_OP_NATIVE_PRIORITY 0

// What a provider is asked by a look-up.
typedef struct vt_op_question {
  size_t struct_size;
  const void *descriptor;  // the call, in the struct that the operation documents; NULL: in general
  const void *caps;        // see vt_op_caps_publish(); NULL until then, and who needs them declines
  size_t caps_bytes;
  const char *reason;  // out: why it doesn't want the call, a string that lives as long as the process; NULL: no reason given
} vt_op_question;

// One provider of one operation. `fn` has the function type that the operation documents.
typedef struct vt_op_provider {
  size_t struct_size;
  const char *name;  // at most 63 bytes
  int32_t priority;
  vt_fn fn;
  // Answers 1 if it wants the call. Called on the thread that looks up; may look up and must not wait. NULL: always.
  int32_t (*supports)(void *user, vt_op_question *question);
  void *user;
} vt_op_provider;

// Flags of vt_op_policy.
enum {
  VT_OP_STRICT = 1 << 0,  // the first choice serves the call, or nobody does
};

// How one look-up chooses. Start from VT_OP_POLICY_INIT.
typedef struct vt_op_policy {
  size_t struct_size;
  uint32_t flags;            // VT_OP_* bits
  const char *const *names;  // these providers only, in this order; NULL: all, by priority
  size_t count;              // of `names`
} vt_op_policy;

#define VT_OP_POLICY_INIT \
  { sizeof(vt_op_policy), 0, NULL, 0 }

// Interns an operation name: the same name gives the same id.
//
// Order    none
// Memory   copies the name
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  NULL or empty name, longer than 63 bytes, or `out_id` NULL
//          VT_ERR_OUT_OF_MEMORY     nothing was interned
VT_API vt_status vt_op_intern(const char *name, vt_op_id *out_id);

// Reads the name of an operation. NULL for an unknown id.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API const char *vt_op_get_name(vt_op_id op);

// Registers a provider. There is no limit to their number.
//
// Order    visible to every look-up that begins after the return
// Memory   copies `provider` and its name; `user` must live as long as the process
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  unknown op or type, no name, the name of the reference tier, no function
//          VT_ERR_ALREADY_EXISTS    the op has a provider of this name on this type
//          VT_ERR_OUT_OF_MEMORY     nothing was registered
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_provider_register(vt_op_id op, vt_device_type type, const vt_op_provider *provider);

// Answers 1 if the operation has a provider on this type, be it disabled; the reference tier is none.
//
// Order    none
// Memory   none
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   none: unknown ops and types answer 0
VT_API int32_t vt_op_is_registered(vt_op_id op, vt_device_type type);

// Finds the first provider that wants the call.
//
// Order    none
// Memory   lives as long as the process; a choice may be kept as long as vt_op_get_generation() stays the same
// Units    none
// Threads  any; lock-free, but for the first uses on a thread, which allocate its counters
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         unknown op, no provider, or none that wants the call: the message names who refused and why
//          VT_ERR_UNSUPPORTED       strict mode is on and the first one refused
//          VT_ERR_INVALID_ARGUMENT  unknown type, or `out_provider` NULL
VT_API vt_status vt_op_get(vt_op_id op, vt_device_type type, const void *descriptor, const vt_op_provider **out_provider);

// Finds the next provider below `name` that wants the call: how a provider declines. Counted as a decline of `name` in any case.
//
// Order    none
// Memory   as vt_op_get()
// Units    none
// Threads  as vt_op_get()
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         unknown op, no provider of that name, or none below it that wants the call
//          VT_ERR_UNSUPPORTED       strict mode is on
//          VT_ERR_INVALID_ARGUMENT  unknown type, `name` or `out_provider` NULL
VT_API vt_status vt_op_get_below(vt_op_id op, vt_device_type type, const char *name, const void *descriptor,
                                 const vt_op_provider **out_provider);

// Finds a provider under a policy of the caller. With `below`, the look-up goes on behind that provider, which has declined.
//
// Order    none
// Memory   as vt_op_get(); nothing of `policy` is kept
// Units    none
// Threads  as vt_op_get()
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         as vt_op_get(); nobody that the policy names wants the call; strict: its first name isn't
//                                   registered; `below` isn't among those to choose from
//          VT_ERR_UNSUPPORTED       strict, and the first choice refused or is disabled, or `below` was given
//          VT_ERR_INVALID_ARGUMENT  as vt_op_get(); `policy` NULL, an unknown flag, a count without names, or a NULL name
VT_API vt_status vt_op_get_with(vt_op_id op, vt_device_type type, const vt_op_policy *policy, const char *below,
                                const void *descriptor, const vt_op_provider **out_provider);

#ifdef __cplusplus
}
#endif

#endif
