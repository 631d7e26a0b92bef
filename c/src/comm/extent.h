// extent.h: the memory that a call of one rank uses.
#ifndef VT_COMM_EXTENT_H
#define VT_COMM_EXTENT_H

#include "comm/comm.h"

// A stretch of memory, as numbers: with no bytes the address may be anything.
typedef struct vt__comm_extent {
  uintptr_t begin;
  size_t bytes;
  uintptr_t own;  // where the rank's own part of it begins
} vt__comm_extent;

// The bytes of the call's count, which the front has checked.
size_t vt__comm_bytes(const vt__comm_call_data *call);

// What is read and what is written: no bytes for a buffer that this rank has no part in.
vt__comm_extent vt__comm_sent(const vt__comm_call_data *call);
vt__comm_extent vt__comm_received(const vt__comm_call_data *call);

#endif
