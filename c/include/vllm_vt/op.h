// op.h: operation providers: who implements an operation on a type of device.
//
// Operations are interned names ("vt.all_reduce", "engine.rope"). Per operation and device type there is a list of providers,
// ordered by priority, highest first, then by name, bytewise; the order of registration has no influence. The list is an immutable
// snapshot: a look-up is one atomic load.
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

// One provider of one operation. `fn` has the function type that the operation documents.
typedef struct vt_op_provider {
  size_t struct_size;
  const char *name;  // at most 63 bytes
  int32_t priority;
  vt_fn fn;
  // Says whether it wants this call, described by the struct that the operation documents (NULL: in general). NULL: always.
  int32_t (*supports)(void *user, const void *descriptor);
  void *user;
} vt_op_provider;

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
// Errors   VT_ERR_INVALID_ARGUMENT  unknown op or type, no name, no function
//          VT_ERR_ALREADY_EXISTS    the op has a provider of this name on this type
//          VT_ERR_OUT_OF_MEMORY     nothing was registered
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_provider_register(vt_op_id op, vt_device_type type, const vt_op_provider *provider);

// Finds the first provider that wants the call.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         unknown op, no provider, or none that wants the call
//          VT_ERR_INVALID_ARGUMENT  unknown type, or `out_provider` NULL
VT_API vt_status vt_op_get(vt_op_id op, vt_device_type type, const void *descriptor, const vt_op_provider **out_provider);

// Finds the next provider below `name` that wants the call: how a provider declines.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         unknown op, no provider of that name, or none below it that wants the call
//          VT_ERR_INVALID_ARGUMENT  unknown type, `name` or `out_provider` NULL
VT_API vt_status vt_op_get_below(vt_op_id op, vt_device_type type, const char *name, const void *descriptor,
                                 const vt_op_provider **out_provider);

#ifdef __cplusplus
}
#endif

#endif
