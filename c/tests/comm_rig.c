// comm_rig.c: groups with a queue per rank, and buffers with canaries.
#include "comm_rig.h"

#include <stdlib.h>

#define CANARY_BYTES 64
#define CANARY_VALUE 0xa7

static void rig_end(void *arg) {
  comm_rig *rig = arg;
  for (int32_t r = 0; r < rig->world; r++) {
    vt_queue_release(rig->queues[r]);
  }
  free(rig);
}

comm_rig *rig_begin(vt_case *c, int32_t world, const vt_comm_group_options *options) {
  comm_rig *rig = calloc(1, sizeof *rig);
  if (rig == NULL || world > RIG_MAX_WORLD) {
    abort();
  }
  rig->c = c;
  rig->world = world;
  vt_device devices[RIG_MAX_WORLD];
  for (int32_t r = 0; r < world; r++) {
    devices[r] = vt_test_device(c);
  }
  vt_comm_group_options mine = VT_COMM_GROUP_OPTIONS_INIT;
  if (options != NULL) {
    mine = *options;
  }
  mine.devices = devices;
  if (mine.timeout_ns == 0) {
    mine.timeout_ns = UINT64_C(20000000000);
  }
  rig->group = vt_test_group(c, world, &mine);
  vt_test_defer(c, rig_end, rig);
  for (int32_t r = 0; r < world; r++) {
    EXPECT_OK(c, vt_comm_group_get_comm(rig->group, r, &rig->comms[r]));
    rig_renew_queue(rig, r);
  }
  return rig;
}

void rig_renew_queue(comm_rig *rig, int32_t rank) {
  if (rig->queues[rank] != NULL && vt_queue_is_synchronous(rig->queues[rank])) {
    return;
  }
  vt_queue_options options = vt_test_queue_options(rig->c);
  vt_queue_release(rig->queues[rank]);
  rig->queues[rank] = NULL;
  EXPECT_OK(rig->c, vt_queue_create(vt_test_device(rig->c), &options, &rig->queues[rank]));
}

void rig_renew_queues(comm_rig *rig) {
  for (int32_t r = 0; r < rig->world; r++) {
    rig_renew_queue(rig, r);
  }
}

vt_status rig_finish(comm_rig *rig, int32_t rank, vt_status submitted) {
  return submitted != VT_OK ? submitted : vt_queue_synchronize(rig->queues[rank]);
}

void rig_run(comm_rig *rig, vt_test_thread_fn fn, void *arg) {
  vt_test_threads(rig->c, rig->world, fn, arg);
}

static void usable_rank(vt_case *c, int32_t rank, void *arg) {
  comm_rig *rig = arg;
  int32_t value = rank + 1;
  int32_t total = 0;
  vt_status status = vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], &value, &total, 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL);
  EXPECT_OK(c, rig_finish(rig, rank, status));
  EXPECT_EQ(c, rig->world * (rig->world + 1) / 2, total);
}

void rig_expect_usable(comm_rig *rig) {
  rig_renew_queues(rig);
  rig_run(rig, usable_rank, rig);
}

comm_space space_begin(vt_case *c, size_t capacity) {
  return (comm_space){.base = vt_test_guarded_alloc(c, capacity + 3 * CANARY_BYTES)};
}

void *space_place(comm_space *space, size_t bytes, size_t misalign) {
  space->block = space->base + CANARY_BYTES + misalign;
  space->block_bytes = bytes;
  memset(space->block - CANARY_BYTES, CANARY_VALUE, CANARY_BYTES);
  memset(space->block, SPACE_FILL, bytes);
  memset(space->block + bytes, CANARY_VALUE, CANARY_BYTES);
  return space->block;
}

int space_check(vt_case *c, const comm_space *space) {
  return EXPECT_FILLED(c, CANARY_VALUE, space->block - CANARY_BYTES, CANARY_BYTES) &&
         EXPECT_FILLED(c, CANARY_VALUE, space->block + space->block_bytes, CANARY_BYTES);
}
