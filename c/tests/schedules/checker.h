// checker.h: runs a schedule of all ranks with symbols in place of bytes, and tells what is wrong with it.
#ifndef VT_TESTS_SCHEDULES_CHECKER_H
#define VT_TESTS_SCHEDULES_CHECKER_H

#include "comm/algo/algo.h"

#define MOST_RANKS 16

// Where a rank's buffers lie, as byte offsets in its own memory. Equal or overlapping ones are in place.
typedef struct layout {
  size_t send_at;
  size_t recv_at;
} layout;

// One call of all ranks.
typedef struct scenario {
  vt__algo_call call;  // of rank 0: `rank` is filled in
  vt__algo_part parts[MOST_RANKS][MOST_RANKS];
  layout layouts[MOST_RANKS];
  const char *form;  // "apart", "in place"
} scenario;

// The call of one rank.
vt__algo_call scenario_call(const scenario *s, int32_t rank);

// What operations have.
bool scenario_is_rooted(vt_comm_op op);
bool scenario_has_parts(vt_comm_op op);

// What stands in a byte. A symbol is what a buffer held before the call, or a sum over all ranks of one place of their SEND.
typedef uint64_t symbol;
symbol symbol_initial(int32_t rank, size_t memory_at);
symbol symbol_sum(size_t send_at);

// What byte `at` of the RECV of a rank must hold in the end; false if it must be as before. expect.c
bool expected_symbol(const scenario *s, int32_t rank, size_t at, symbol *out);

// Bytes of a rank's RECV and SEND.
size_t recv_bytes(const scenario *s, int32_t rank);
size_t send_bytes(const scenario *s, int32_t rank);

// How an action is broken on purpose, to see that the checker finds it.
typedef enum breakage {
  BREAK_NOTHING,
  BREAK_DROP,        // it isn't done
  BREAK_TWICE,       // another rank does it as well
  BREAK_SOURCE,      // it reads one element too far
  BREAK_TARGET,      // it writes one element too far
  BREAK_EARLY,       // it is done one step earlier
  BREAK_OTHER_RANK,  // it reads from the next rank
  BREAK_COUNT,
} breakage;

// Checks one schedule. Answers NULL, or what is wrong. With a breakage, one action that moves bytes is broken;
// *out_broken says whether there was one to break.
const char *check_schedule(const vt__algo *algo, scenario *s, breakage how, bool *out_broken);

#endif
