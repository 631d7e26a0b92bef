// plain.h: choosing between bits, where there is no instruction for it.
#ifndef VT_COMM_REDUCE_PLAIN_H
#define VT_COMM_REDUCE_PLAIN_H

#include "comm/reduce/vectors.h"

// `yes` where the mask is set, else `no`.
VT__INLINE v_u32 choose(v_u32 mask, v_u32 yes, v_u32 no) {
  return (mask & yes) | (~mask & no);
}

// The low halves of one and the high halves of the other.
VT__INLINE v_u32 mix(v_u32 low, v_u32 high) {
  return (low & 0xffffu) | (high & 0xffff0000u);
}

#endif
