// arguments.h: what is checked of a call before it is routed.
#ifndef VT_COMM_ARGUMENTS_H
#define VT_COMM_ARGUMENTS_H

#include "comm/parts.h"
#include "comm/traits.h"

// Refuses a call as its public function, unless the condition holds.
#define VT__CHECK_CALL(call, condition, ...)                                                                                \
  do {                                                                                                                      \
    if (VT_UNLIKELY(!(condition))) {                                                                                        \
      return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, vt__comm_traits_of((call)->op)->function, __VA_ARGS__); \
    }                                                                                                                       \
  } while (0)

// Refuses a communicator that was finalized.
static inline vt_status vt__comm_check_open(const vt_comm *comm, const char *function) {
  // relaxed: who calls has been told of the end in some other way.
  if (VT_UNLIKELY(atomic_load_explicit(&((vt_comm *)(uintptr_t)comm)->finalized, memory_order_relaxed) != 0)) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function, "rank %d was finalized", comm->rank);
  }
  return VT_OK;
}

// Types, counts, buffers and the root. Gives the call its parts where it has some: `arrays`, else NULL.
vt_status vt__comm_check_arguments(vt__comm_call_data *call, const vt__comm_arrays *arrays);

#endif
