// execute.h: executing the steps of a schedule.
#ifndef VT_COMM_INPROC_EXECUTE_H
#define VT_COMM_INPROC_EXECUTE_H

#include "comm/inproc/inproc.h"
#include "comm/schedule.h"

// Executes step 0: brings this rank's contribution into its post.
void vt__execute_post(const vt__comm_op *op, vt__post *post);

// Executes this rank's later actions. Inside the gate, answers false if that was closed meanwhile; else always true.
bool vt__execute(const vt__comm_op *op);

// The parts of a rank of the operation `user`: its own, or what a peer has published.
const vt__algo_part *vt__execute_parts(const void *user, int32_t rank);

#endif
