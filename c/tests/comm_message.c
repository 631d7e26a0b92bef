// comm_message.c: messages between two ranks, and barriers.
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

#include "comm_rig.h"

static const size_t message_bytes[] = {0, 1, 7, 1023, 1024, 1025, 4096, 65535, 65536, 65537, (size_t)1 << 20};
#define MESSAGE_COUNT (sizeof message_bytes / sizeof message_bytes[0])
#define MESSAGE_MAX ((size_t)1 << 20)

typedef struct message_run {
  comm_rig *rig;
  unsigned char *outgoing[RIG_MAX_WORLD];  // of MESSAGE_MAX bytes
  unsigned char *scratch;
  comm_space incoming[RIG_MAX_WORLD];
  int32_t shift;
} message_run;

static message_run message_begin(vt_case *c, int32_t world) {
  message_run run = {.rig = rig_begin(c, world, NULL)};
  for (int32_t r = 0; r < world; r++) {
    run.outgoing[r] = vt_test_guarded_alloc(c, MESSAGE_MAX);
    run.incoming[r] = space_begin(c, MESSAGE_MAX);
    vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)r);
    vt_test_random_fill(&rng, run.outgoing[r], MESSAGE_MAX);
  }
  return run;
}

static vt_status send_bytes(comm_rig *rig, int32_t rank, const void *buffer, size_t bytes, int32_t peer) {
  return vt_comm_send(rig->comms[rank], rig->queues[rank], buffer, bytes, VT_DTYPE_U8, peer, NULL);
}

static vt_status recv_bytes(comm_rig *rig, int32_t rank, void *buffer, size_t bytes, int32_t peer) {
  return vt_comm_recv(rig->comms[rank], rig->queues[rank], buffer, bytes, VT_DTYPE_U8, peer, NULL);
}

// Rank 0 sends every size to rank 1, then the other way round; odd addresses on one side. The sender may write its buffer again as
// soon as its call has completed.
static void every_size_rank(vt_case *c, int32_t rank, void *arg) {
  message_run *run = arg;
  for (int32_t sender = 0; sender < 2; sender++) {
    for (size_t i = 0; i < MESSAGE_COUNT; i++) {
      size_t bytes = message_bytes[i];
      if (rank == sender) {
        memcpy(run->scratch, run->outgoing[rank], bytes);
        vt_status status = send_bytes(run->rig, rank, bytes == 0 ? NULL : run->scratch, bytes, 1 - rank);
        EXPECT_OK(c, rig_finish(run->rig, rank, status));
        memset(run->scratch, 0, bytes);
      } else {
        void *got = space_place(&run->incoming[rank], bytes, i % 2);
        EXPECT_OK(c, rig_finish(run->rig, rank, recv_bytes(run->rig, rank, bytes == 0 ? NULL : got, bytes, sender)));
        EXPECT_BYTES(c, run->outgoing[sender], got, bytes);
        space_check(c, &run->incoming[rank]);
      }
    }
  }
}

static void messages_of_every_size_arrive(vt_case *c) {
  message_run run = message_begin(c, 2);
  run.scratch = vt_test_guarded_alloc(c, MESSAGE_MAX);
  rig_run(run.rig, every_size_rank, &run);
}

// Rank 0 sends to 1 and 2 alternately; each receiver gets its own in order.
static void fifo_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  enum { ROUNDS = 200 };
  static int32_t values[3][ROUNDS * 2];
  if (rank == 0) {
    for (int32_t i = 0; i < ROUNDS * 2; i++) {
      values[0][i] = i;
      EXPECT_OK(c, vt_comm_send(rig->comms[0], rig->queues[0], &values[0][i], 1, VT_DTYPE_I32, 1 + i % 2, NULL));
    }
  } else {
    for (int32_t i = 0; i < ROUNDS; i++) {
      EXPECT_OK(c, vt_comm_recv(rig->comms[rank], rig->queues[rank], &values[rank][i], 1, VT_DTYPE_I32, 0, NULL));
    }
  }
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
  int32_t wrong = 0;
  for (int32_t i = 0; rank != 0 && i < ROUNDS; i++) {
    wrong += values[rank][i] != 2 * i + rank - 1;
  }
  EXPECT_EQ(c, 0, wrong);
}

static void messages_of_a_pair_arrive_in_order(vt_case *c) {
  comm_rig *rig = rig_begin(c, 3, NULL);
  rig_run(rig, fifo_rank, rig);
}

// Every rank sends `shift` to the right and receives from the left, in one batch: the order of the two calls differs by rank.
static void shift_rank(vt_case *c, int32_t rank, void *arg) {
  message_run *run = arg;
  comm_rig *rig = run->rig;
  int32_t to = (rank + run->shift) % rig->world;
  int32_t from = (rank + rig->world - run->shift) % rig->world;
  for (size_t i = 0; i < MESSAGE_COUNT; i++) {
    size_t bytes = message_bytes[i];
    void *got = space_place(&run->incoming[rank], bytes, 0);
    EXPECT_OK(c, vt_comm_batch_begin());
    if (rank % 2 == 0) {
      EXPECT_OK(c, send_bytes(rig, rank, run->outgoing[rank], bytes, to));
    }
    EXPECT_OK(c, recv_bytes(rig, rank, got, bytes, from));
    if (rank % 2 != 0) {
      EXPECT_OK(c, send_bytes(rig, rank, run->outgoing[rank], bytes, to));
    }
    EXPECT_OK(c, rig_finish(rig, rank, vt_comm_batch_end()));
    EXPECT_BYTES(c, run->outgoing[from], got, bytes);
    space_check(c, &run->incoming[rank]);
  }
}

static void batched_exchanges_in_both_directions_complete(vt_case *c) {
  message_run run = message_begin(c, 2);
  run.shift = 1;
  rig_run(run.rig, shift_rank, &run);
}

static void a_ring_shift_completes_at_every_distance(vt_case *c) {
  message_run run = message_begin(c, 5);
  for (run.shift = 1; run.shift < 5; run.shift += 2) {
    rig_run(run.rig, shift_rank, &run);
  }
}

typedef struct rendezvous_run {
  comm_rig *rig;
  _Atomic int32_t received;
  size_t bytes;
} rendezvous_run;

static void rendezvous_rank(vt_case *c, int32_t rank, void *arg) {
  rendezvous_run *run = arg;
  static unsigned char data[2][65536];
  if (rank == 0) {
    EXPECT_OK(c, rig_finish(run->rig, 0, send_bytes(run->rig, 0, data[0], run->bytes, 1)));
    // acquire: partner is the store before the receive.
    EXPECT_EQ(c, 1, atomic_load_explicit(&run->received, memory_order_acquire));
  } else {
    vt_test_sleep_ns(100000000);
    // release: partner is the load after the send.
    atomic_store_explicit(&run->received, 1, memory_order_release);
    EXPECT_OK(c, rig_finish(run->rig, 1, recv_bytes(run->rig, 1, data[1], run->bytes, 0)));
  }
}

static void a_send_completes_only_after_its_receive_was_posted(vt_case *c) {
  static const size_t sizes[] = {0, 8, 65536};
  for (size_t i = 0; i < 3; i++) {
    rendezvous_run run = {.rig = rig_begin(c, 2, NULL), .bytes = sizes[i]};
    rig_run(run.rig, rendezvous_rank, &run);
  }
}

// What the two ends of a message call; they must not fit.
typedef struct message_pair {
  comm_rig *rig;
  size_t send_count, recv_count;
  vt_dtype send_dtype, recv_dtype;
  const char *send_text, *recv_text;  // in the message of both
  uint64_t send_sequence, recv_sequence;
} message_pair;

static void mismatched_rank(vt_case *c, int32_t rank, void *arg) {
  const message_pair *pair = arg;
  comm_rig *rig = pair->rig;
  unsigned char *buffer = vt_test_guarded_alloc(c, 65536);
  memset(buffer, SPACE_FILL, 65536);
  vt_status status = VT_ERR_MISMATCH;
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.sequence = rank == 0 ? pair->send_sequence : pair->recv_sequence;
  if (rank == 0) {
    status = vt_comm_send(rig->comms[0], rig->queues[0], buffer, pair->send_count, pair->send_dtype, 1, &opts);
  } else if (rank == 1) {
    status = vt_comm_recv(rig->comms[1], rig->queues[1], buffer, pair->recv_count, pair->recv_dtype, 0, &opts);
  } else {
    return;
  }
  if (EXPECT_STATUS(c, VT_ERR_MISMATCH, rig_finish(rig, rank, status))) {
    EXPECT_MESSAGE(c, "rank 0");
    EXPECT_MESSAGE(c, "rank 1");
    EXPECT_MESSAGE(c, pair->send_text);
    EXPECT_MESSAGE(c, pair->recv_text);
  }
  EXPECT_FILLED(c, SPACE_FILL, buffer, 65536);
}

static void matching_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t value = rank == 0 ? 17 : 0;
  if (rank == 0) {
    EXPECT_OK(c, rig_finish(rig, 0, vt_comm_send(rig->comms[0], rig->queues[0], &value, 1, VT_DTYPE_I32, 1, NULL)));
  } else if (rank == 1) {
    EXPECT_OK(c, rig_finish(rig, 1, vt_comm_recv(rig->comms[1], rig->queues[1], &value, 1, VT_DTYPE_I32, 0, NULL)));
    EXPECT_EQ(c, 17, value);
  }
}

static void a_mismatched_message_fails_both_ends_and_leaves_the_pair_usable(vt_case *c) {
  message_pair pairs[] = {
      {NULL, 4, 5, VT_DTYPE_F32, VT_DTYPE_F32, "4", "5", 0, 0},
      {NULL, 0, 1, VT_DTYPE_F32, VT_DTYPE_F32, "0", "1", 0, 0},
      {NULL, 8, 16384, VT_DTYPE_I32, VT_DTYPE_I32, "8", "16384", 0, 0},
      {NULL, 16384, 8, VT_DTYPE_I32, VT_DTYPE_I32, "16384", "8", 0, 0},
      {NULL, 64, 64, VT_DTYPE_F16, VT_DTYPE_BF16, "f16", "bf16", 0, 0},
      {NULL, 64, 32, VT_DTYPE_U8, VT_DTYPE_F16, "u8", "f16", 0, 0},
      {NULL, 64, 64, VT_DTYPE_I32, VT_DTYPE_I32, "1001", "1002", 1001, 1002},
  };
  comm_rig *rig = rig_begin(c, 3, NULL);
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    pairs[i].rig = rig;
    rig_run(rig, mismatched_rank, &pairs[i]);
    rig_renew_queues(rig);
    rig_run(rig, matching_rank, rig);
  }
  rig_expect_usable(rig);
}

static void a_peer_that_is_no_rank_is_refused(vt_case *c) {
  for (int32_t world = 1; world <= 2; world++) {
    comm_rig *rig = rig_begin(c, world, NULL);
    const int32_t peers[] = {-1, world, INT_MAX};
    unsigned char byte = 1;
    for (size_t i = 0; i < 3; i++) {
      char text[32];
      snprintf(text, sizeof text, "%d", peers[i]);
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, text, send_bytes(rig, 0, &byte, 1, peers[i]));
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, text, recv_bytes(rig, 0, &byte, 1, peers[i]));
    }
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "itself", send_bytes(rig, 0, &byte, 1, 0));
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "itself", recv_bytes(rig, 0, &byte, 1, 0));
    EXPECT_EQ(c, 1, byte);
    rig_expect_usable(rig);
  }
}

static void a_message_to_oneself_works_as_a_pair_in_a_batch(vt_case *c) {
  for (int32_t world = 1; world <= 2; world++) {
    message_run run = message_begin(c, world);
    comm_rig *rig = run.rig;
    int32_t self = world - 1;
    for (size_t i = 0; i < MESSAGE_COUNT; i++) {
      size_t bytes = message_bytes[i];
      void *got = space_place(&run.incoming[self], bytes, 1);
      EXPECT_OK(c, vt_comm_batch_begin());
      EXPECT_OK(c, send_bytes(rig, self, run.outgoing[self], bytes, self));
      EXPECT_OK(c, recv_bytes(rig, self, got, bytes, self));
      EXPECT_OK(c, rig_finish(rig, self, vt_comm_batch_end()));
      EXPECT_BYTES(c, run.outgoing[self], got, bytes);
      space_check(c, &run.incoming[self]);
    }
    for (int32_t receive = 0; receive < 2; receive++) {
      unsigned char byte = 3;
      EXPECT_OK(c, vt_comm_batch_begin());
      vt_status status = receive ? recv_bytes(rig, self, &byte, 1, self) : send_bytes(rig, self, &byte, 1, self);
      EXPECT_OK(c, status);
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "itself", vt_comm_batch_end());
    }
    rig_expect_usable(rig);
  }
}

typedef struct barrier_run {
  comm_rig *rig;
  _Atomic int32_t arrived;
} barrier_run;

static void barrier_rank(vt_case *c, int32_t rank, void *arg) {
  barrier_run *run = arg;
  comm_rig *rig = run->rig;
  vt_test_rng rng = vt_test_rng_begin(c, (uint64_t)rank);
  for (int32_t round = 1; round <= 60; round++) {
    if (vt_test_random_below(&rng, 8) == 0) {
      vt_test_sleep_ns(vt_test_random_below(&rng, 2000000));
    }
    // relaxed: the barrier is what orders this.
    atomic_fetch_add_explicit(&run->arrived, 1, memory_order_relaxed);
    EXPECT_OK(c, rig_finish(rig, rank, vt_comm_barrier(rig->comms[rank], rig->queues[rank], NULL)));
    EXPECT_TRUE(c, atomic_load_explicit(&run->arrived, memory_order_relaxed) >= round * rig->world);
  }
}

static void nobody_passes_a_barrier_before_all_have_come(vt_case *c) {
  for (int32_t world = 1; world <= 5; world += 2) {
    barrier_run run = {.rig = rig_begin(c, world, NULL)};
    rig_run(run.rig, barrier_rank, &run);
  }
}

#define ROW(name, needs) \
  { #name, NEED_COMM | (needs), name }

const vt_test_case vt_cases_comm_message[] = {
    ROW(messages_of_every_size_arrive, 0),
    ROW(messages_of_a_pair_arrive_in_order, 0),
    ROW(batched_exchanges_in_both_directions_complete, 0),
    ROW(a_ring_shift_completes_at_every_distance, 0),
    ROW(a_send_completes_only_after_its_receive_was_posted, 0),
    ROW(a_mismatched_message_fails_both_ends_and_leaves_the_pair_usable, 0),
    ROW(a_peer_that_is_no_rank_is_refused, 0),
    ROW(a_message_to_oneself_works_as_a_pair_in_a_batch, 0),
    ROW(nobody_passes_a_barrier_before_all_have_come, 0),
    VT_TEST_END,
};
