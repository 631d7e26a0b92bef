// device.h: naming a device and asking what it can do.
#ifndef VLLM_VT_DEVICE_H
#define VLLM_VT_DEVICE_H

#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_device_type;

enum {
  VT_DEVICE_CPU = 0,
  VT_DEVICE_CUDA = 1,
  VT_DEVICE_METAL = 2,
  VT_DEVICE_VULKAN = 3,
  VT_DEVICE_XPU = 4,
  VT_DEVICE_TYPE_COUNT = 5,
};

// Indices of one type run from 0 to 15.
#define VT_MAX_DEVICES_PER_TYPE 16

// One device. Passed by value.
typedef struct vt_device {
  vt_device_type type;
  int32_t index;
} vt_device;

// What a device can do: bits of vt_device_info.caps.
enum {
  VT_CAP_ASYNC_QUEUES = 1 << 0,   // has queues that work behind the caller's back
  VT_CAP_EVENTS = 1 << 1,         // events that order queues and can be waited for
  VT_CAP_GRAPH_CAPTURE = 1 << 2,  // vt_graph_begin_capture() works
  VT_CAP_AUX_QUEUE = 1 << 3,      // work on a second queue overlaps with the first
  VT_CAP_STREAM_ALLOC = 1 << 4,   // vt_alloc_async() works; every device has it, from the runtime's pool
};

// Facts of a device. The caller sets struct_size; fields that the library doesn't know stay zero.
typedef struct vt_device_info {
  size_t struct_size;
  int32_t unified_memory;    // host and device share one memory
  int32_t host_addressable;  // host code may dereference what vt_alloc() gives; narrower than unified_memory
  int32_t compute_major;     // 0.0 where the notion has no meaning
  int32_t compute_minor;
  uint64_t memory_free;  // bytes; 0 if unknown
  uint64_t memory_total;
  uint32_t caps;  // VT_CAP_* bits
  char name[64];
} vt_device_info;

#define VT_DEVICE_INFO_INIT                        \
  {                                                \
    sizeof(vt_device_info), 0, 0, 0, 0, 0, 0, 0, { \
      0                                            \
    }                                              \
  }

// Names a device type: "cpu". NULL for a number that isn't a type.
//
// Order    none
// Memory   a string constant
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API const char *vt_device_type_get_name(vt_device_type type);

// Reads the facts of a device.
//
// Order    none
// Memory   fills at most out_info->struct_size bytes
// Units    bytes
// Threads  any
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND         nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT  unknown type, index outside 0..15, `out_info` NULL or its struct_size too small
VT_API vt_status vt_device_get_info(vt_device device, vt_device_info *out_info);

// Counts the registered devices of a type. Their indices need not be contiguous.
//
// Order    none
// Memory   none
// Units    devices
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  unknown type, or `out_count` is NULL
VT_API vt_status vt_device_get_count(vt_device_type type, int32_t *out_count);

// Submits whatever the device holds back, without a queue at hand. It does not wait for completion.
//
// Order    work submitted to any queue of the device before the call is on its way when it returns
// Memory   none
// Units    none
// Threads  any
// Capture  refused on a thread that is capturing
// Errors   VT_ERR_NOT_FOUND            nothing is registered for `device`
//          VT_ERR_INVALID_ARGUMENT     unknown type or index
//          VT_ERR_FAILED_PRECONDITION  inside a capture, in a forked child, or from a callback
VT_API vt_status vt_device_flush(vt_device device);

#ifdef __cplusplus
}
#endif

#endif
