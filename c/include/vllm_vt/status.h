// status.h: what a call answers, and the record of the last failure.
//
// Every function that can fail returns a vt_status: zero for success, a positive number for "not yet", a negative one for an error.
// The details of an error (which argument, which rank, what the driver said) are in a record of the calling thread.
#ifndef VLLM_VT_STATUS_H
#define VLLM_VT_STATUS_H

#include "vllm_vt/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_status;

enum {
  VT_OK = 0,
  // The work has not completed, or a ring that may not be waited for is full. Ask again later.
  VT_NOT_READY = 1,

  // The caller broke a rule that the message names. Nothing was done. Fix the call.
  VT_ERR_INVALID_ARGUMENT = -1,
  // Memory or another resource is exhausted. Nothing was done. Free something, or ask for less, and call again. Any call that uses
  // the library for the first time may answer this, and so may one that submits work: the first operation of a queue starts its
  // worker, and one that is recorded needs room in its graph.
  VT_ERR_OUT_OF_MEMORY = -2,
  // This device, build or provider can't do it. Choose another way.
  VT_ERR_UNSUPPORTED = -3,
  // No such device, provider or object. Check the name, or register it first.
  VT_ERR_NOT_FOUND = -4,
  // The place is taken by something else. Keep the first, or choose another place.
  VT_ERR_ALREADY_EXISTS = -5,
  // The call is right, the moment is not (inside a capture, in a forked child, from a callback). Call it elsewhere.
  VT_ERR_FAILED_PRECONDITION = -6,
  // A time limit passed. From a wait: the work goes on. From a collective: the message says who is missing, and the communicator
  // can't be used any more.
  VT_ERR_TIMEOUT = -7,
  // Somebody aborted. The communicator can't be used any more.
  VT_ERR_ABORTED = -8,
  // A rank has gone. The communicator can't be used any more.
  VT_ERR_PEER_LOST = -9,
  // The ranks did not make the same call. No user memory was touched, and the communicator stays usable.
  VT_ERR_MISMATCH = -10,
  // The device is lost. Every object of that device answers this.
  VT_ERR_DEVICE_LOST = -11,
  // A defect of this library or of a plug-in. Please report it.
  VT_ERR_INTERNAL = -12,
};

// Where a native error code comes from.
typedef int32_t vt_error_domain;

enum {
  VT_DOMAIN_VT = 0,
  VT_DOMAIN_ERRNO = 1,
  VT_DOMAIN_CUDA = 2,
  VT_DOMAIN_NCCL = 3,
  VT_DOMAIN_MPI = 4,
};

// Room for the text of an error, terminating zero included.
#define VT_ERROR_MESSAGE_MAX 512

// The record of a failed call.
typedef struct vt_error {
  vt_status status;
  vt_error_domain domain;
  int64_t native;        // code of `domain`, 0 where there is none
  const char *function;  // public function that failed; a string constant
  const char *message;   // never NULL
} vt_error;

// Reads the record of the last call on this thread that returned a negative status.
//
// Success and VT_NOT_READY leave the record alone. Before any failure the record holds VT_OK and an empty message.
//
// Order    none
// Memory   belongs to the thread; valid until the next failure on it, or its end
// Units    none
// Threads  each thread has its own
// Capture  allowed
// Errors   none
VT_API const vt_error *vt_last_error(void);

// Writes the record of the calling thread and returns `status`. For plug-ins: a method that fails calls this and returns the
// result.
//
// Order    none
// Memory   copies everything but `function`, which must be a string constant; longer texts are cut
// Units    none
// Threads  each thread has its own
// Capture  allowed
// Errors   none: returns `status`
VT_API vt_status vt_error_set(vt_status status, vt_error_domain domain, int64_t native, const char *function, const char *format,
                              ...) VT_PRINTF_LIKE(5, 6);

// Names a status: "INVALID_ARGUMENT" for VT_ERR_INVALID_ARGUMENT, "OK" for VT_OK, "unknown status" for what isn't one.
//
// Order    none
// Memory   a string constant
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API const char *vt_status_get_name(vt_status status);

#ifdef __cplusplus
}
#endif

#endif
