// comm_rig.h: a group with one queue per rank, and buffers with canaries, for the communicator cases.
#ifndef VT_TESTS_COMM_RIG_H
#define VT_TESTS_COMM_RIG_H

#include "vt_test.h"

#define RIG_MAX_WORLD 8

// Fails the case where the expectation doesn't hold, and tells the caller's loop to go on with the calls all the same, so that the
// peers of a rank that failed don't wait for it.
typedef struct comm_rig {
  vt_case *c;
  int32_t world;
  vt_comm_group *group;
  vt_comm *comms[RIG_MAX_WORLD];
  vt_queue *queues[RIG_MAX_WORLD];
} comm_rig;

// A group of `world` ranks on the row's device with one queue of the row's kind per rank. `options` may be NULL; a deadline of 0 is
// replaced by one that is shorter than the watchdog's. Given back by the harness.
comm_rig *rig_begin(vt_case *c, int32_t world, const vt_comm_group_options *options);

// Gives one rank, or all, a fresh queue in place of one in which an operation failed. A synchronous queue lives on and is kept.
void rig_renew_queue(comm_rig *rig, int32_t rank);
void rig_renew_queues(comm_rig *rig);

// Waits for what rank `rank` submitted. `submitted` is what the submission answered: the first failure of the two is answered.
vt_status rig_finish(comm_rig *rig, int32_t rank, vt_status submitted);

// Runs fn(c, rank, arg) for every rank on a thread of its own.
void rig_run(comm_rig *rig, vt_test_thread_fn fn, void *arg);

// Renews all queues and checks that all ranks still get right results from one all_reduce.
void rig_expect_usable(comm_rig *rig);

// Memory in which blocks are laid out with canaries right before and right behind.
typedef struct comm_space {
  unsigned char *base;
  unsigned char *block;
  size_t block_bytes;
} comm_space;

#define SPACE_FILL 0x5e  // what a fresh block holds

// Room for blocks of up to `capacity` bytes.
comm_space space_begin(vt_case *c, size_t capacity);

// Lays out a block of `bytes` bytes, `misalign` bytes behind a 64-byte boundary, filled with SPACE_FILL.
void *space_place(comm_space *space, size_t bytes, size_t misalign);

// Checks that the canaries around the block are whole.
int space_check(vt_case *c, const comm_space *space);

#endif
