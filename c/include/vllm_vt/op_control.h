// op_control.h: steering and watching the choice of operation providers.
//
// Every change here makes new snapshots of the lists concerned, so look-ups pay nothing for it. The environment variable
// VT_OP_PROVIDER_DISABLE, names separated by commas, disables providers like vt_op_provider_disable(); it is read once, on first
// use of the library.
#ifndef VLLM_VT_OP_CONTROL_H
#define VLLM_VT_OP_CONTROL_H

#include "vllm_vt/op.h"

#ifdef __cplusplus
extern "C" {
#endif

// Disables all providers of a name, of every operation and type, also those to be registered later, and the reference tier by its
// name. A disabled provider is passed over as if it were not registered; calls that have chosen it go on. A name that no provider
// has so far is noted in the log.
//
// Order    holds for every look-up that begins after the return
// Memory   copies the name; repeated changes between the same states take no more memory
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     NULL or empty name, or longer than 63 bytes
//          VT_ERR_OUT_OF_MEMORY        nothing was disabled
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_provider_disable(const char *name);

// Enables all providers of a name again, whoever disabled them.
//
// Order    holds for every look-up that begins after the return
// Memory   as vt_op_provider_disable()
// Units    none
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND            the name isn't disabled
//          VT_ERR_INVALID_ARGUMENT     NULL or empty name, or longer than 63 bytes
//          VT_ERR_OUT_OF_MEMORY        nothing was enabled
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_provider_enable(const char *name);

// Forbids (1) or allows (0) that another provider, or the reference tier, stands in where the first choice refuses.
//
// Order    holds for every look-up that begins after the return
// Memory   none
// Units    none
// Threads  any; of the whole process. One look-up is made strict with VT_OP_STRICT
// Capture  allowed
// Errors   none
VT_API void vt_op_set_strict(int32_t strict);

// Publishes what devices of a type can do, for the supports() functions of providers. The type of `caps` is agreed between the
// publisher, an engine or a backend, and the providers; without it supports() gets NULL. Publishing again replaces it.
//
// Order    holds for every look-up that begins after the return
// Memory   copies `bytes` bytes, aligned to 16; each copy stays as long as the process, equal ones are made once
// Units    bytes
// Threads  any, also before main()
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     unknown type, `caps` NULL, or `bytes` 0
//          VT_ERR_OUT_OF_MEMORY        what was published before stays
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_caps_publish(vt_device_type type, const void *caps, size_t bytes);

// Reads a number that changes with every registration, disabling, enabling, publication and change of the strict mode: for callers
// that keep what a look-up found.
//
// Order    acquire: sees all that was changed before the number that it reads
// Memory   none
// Units    changes
// Threads  any; lock-free
// Capture  allowed
// Errors   none
VT_API uint64_t vt_op_get_generation(void);

// Distinct reasons kept per provider; further ones are counted together in the last place, as "other reasons".
#define VT_OP_STATS_REASONS 6

// How often a reason was given.
typedef struct vt_op_refusal {
  const char *reason;  // NULL: unused
  uint64_t count;
} vt_op_refusal;

// What a provider did. The caller sets struct_size; fields that the library doesn't know stay zero.
typedef struct vt_op_stats {
  size_t struct_size;
  uint64_t selections;      // look-ups that found it; for the reference tier, calls queued
  uint64_t fallbacks;       // among these: others had refused or declined before
  uint64_t declines;        // look-ups that passed it over since it refused, and vt_op_get_below() with its name
  int32_t disabled;         // now
  const char *last_reason;  // of the last decline; NULL: there was none
  vt_op_refusal reasons[VT_OP_STATS_REASONS];
} vt_op_stats;

#define VT_OP_STATS_INIT                     \
  {                                          \
    sizeof(vt_op_stats), 0, 0, 0, 0, NULL, { \
      { NULL, 0 }                            \
    }                                        \
  }

// Reads the counters of a provider, or of the reference tier where the operation has one. They are kept per thread and summed here.
//
// Order    counts everything that happens-before the call; of what goes on meanwhile, some
// Memory   fills at most out_stats->struct_size bytes; texts live as long as the process
// Units    see vt_op_stats
// Threads  any
// Capture  allowed
// Errors   VT_ERR_NOT_FOUND            unknown op, or no provider of that name on this type
//          VT_ERR_INVALID_ARGUMENT     unknown type, `name` or `out_stats` NULL, struct_size too small
//          VT_ERR_FAILED_PRECONDITION  in a forked child
VT_API vt_status vt_op_provider_get_stats(vt_op_id op, vt_device_type type, const char *name, vt_op_stats *out_stats);

// Reads the name of the provider that was selected last. NULL if none was so far.
//
// Order    a snapshot
// Memory   lives as long as the process
// Units    none
// Threads  any; lock-free
// Capture  allowed
// Errors   none: unknown ops and types answer NULL
VT_API const char *vt_op_get_last_selected(vt_op_id op, vt_device_type type);

// Writes how a look-up would choose now, as text for people: every provider, and what was refused and why. Asks the providers, and
// counts nothing. `policy` may be NULL.
//
// Order    a snapshot
// Memory   writes at most `capacity` bytes, terminating zero included
// Units    returns the length of the whole text, which may exceed `capacity`
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse answers 0 and goes to the last error
VT_API size_t vt_op_explain(vt_op_id op, vt_device_type type, const vt_op_policy *policy, const void *descriptor, char *buffer,
                            size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
