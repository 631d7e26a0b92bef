// inputs.h: what the ranks reduce and move, and what must come out.
#ifndef PEERS_INPUTS_H
#define PEERS_INPUTS_H

#include "harness.h"

// Rewrites the rank's own input, other values at each call: operands that still lie in the caller's cache from the call before make
// any algorithm look better than it is.
void inputs_fill(const harness_rank *rank, size_t call);

// Whether the whole result of that call is right.
bool inputs_correct(const harness_rank *rank, size_t call);

#endif
