// traits.h: what sets the operations apart, for everything but their algorithms.
#ifndef VT_COMM_TRAITS_H
#define VT_COMM_TRAITS_H

#include <stdbool.h>

#include "vllm_vt/comm_inspect.h"

typedef struct vt__comm_traits {
  const char *name;      // "all_reduce"
  const char *function;  // "vt_comm_all_reduce"
  bool has_data;         // elements of some type
  bool reduces;
  bool has_root;
  bool has_parts;    // a count for every rank
  bool sends_parts;  // with one count: the send buffer holds that many elements for every rank
  bool recvs_parts;  // likewise
  bool root_sends;   // only the root has a send buffer
  bool root_recvs;   // only the root has a receive buffer
  bool others_recv;  // only the others have one
} vt__comm_traits;

extern const vt__comm_traits vt__comm_traits_all[VT_COMM_OP_COUNT + 1];  // the last one is of what is no operation

static inline const vt__comm_traits *vt__comm_traits_of(vt_comm_op op) {
  return &vt__comm_traits_all[op >= 0 && op < VT_COMM_OP_COUNT ? op : VT_COMM_OP_COUNT];
}

static inline bool vt__comm_is_message(vt_comm_op op) {
  return op == VT_COMM_OP_SEND || op == VT_COMM_OP_RECV;
}
static inline bool vt__comm_is_send(vt_comm_op op) {
  return op == VT_COMM_OP_SEND;
}
static inline vt_comm_op vt__comm_other_side(vt_comm_op op) {
  return op == VT_COMM_OP_SEND ? VT_COMM_OP_RECV : VT_COMM_OP_SEND;
}

#endif
