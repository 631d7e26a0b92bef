// transport.h: what carries the operations of a communicator.
//
// A transport is one table. Operations come from the front with checked arguments; the transport numbers them, makes the ranks meet
// and moves the data. No function but describe() and create_like() may allocate, and none waits: what can't go on answers "not
// yet".
#ifndef VT_COMM_TRANSPORT_H
#define VT_COMM_TRANSPORT_H

#include "base/wait.h"
#include "comm/comm.h"

typedef struct vt__transport_ops {
  const char *name;
  uint32_t guarantees;  // VT_COMM_GUARANTEE_* bits

  // Gives an operation its turn among those of its rank. Called in order before the first step.
  void (*begin)(vt__comm_op *op);

  // Does what can be done without waiting. Answers whether the operation has ended: then op->status is set and the stage is END. A
  // failure has written the thread's record.
  bool (*step)(vt__comm_op *op);

  // What rings after that for which an operation waits now, or NULL. Only a hint: each sleep is short.
  vt__bell *(*bell)(const vt__comm_op *op);

  // The deadline has passed: poisons the group; later steps end the operation.
  void (*expire)(vt__comm_op *op);

  // The thread ends inside the operation: takes it out of its rank's gate and poisons the group.
  void (*forsake)(vt__comm_op *op);

  // Notes that an operation was recorded into a graph, for the texts of time-outs.
  void (*note_recorded)(vt_comm *comm, vt_comm_op op);

  // VT_OK, or what poisoned the group, with its record.
  vt_status (*query)(void *state);
  void (*abort)(vt_comm *comm, const char *reason);

  // Fills in how many ranks are alive, and the status of the group.
  void (*health)(void *state, vt_comm_health *out);

  // The state of another group with the same settings, with one reference. NULL if there is no memory.
  void *(*create_like)(void *state, int32_t world);

  // Makes a communicator, whose rank and world are set, a member.
  void (*join)(void *state, vt_comm *comm);

  // Where a communicator lies that was made for `rank` by a split, with a reference, until that rank takes it.
  _Atomic(vt_comm *) *(*offered)(void *state, int32_t rank);
  size_t (*describe)(void *state, char *buffer, size_t capacity);

  // The last reference to a rank, or to the group, has gone.
  void (*rank_gone)(vt_comm *comm);
  void (*group_gone)(void *state);
} vt__transport_ops;

#endif
