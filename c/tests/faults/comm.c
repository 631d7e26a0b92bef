// comm.c: groups, collectives and batches.
#include "faults.h"

enum { WORLD = 2, MANY_CALLS = 40 };  // more calls than a batch has room for at first

static const vt_device cpu = {VT_DEVICE_CPU, 0};

typedef struct rig {
  vt_comm_group *group;
  vt_comm *comms[WORLD];
  vt_queue *queues[WORLD];
} rig;

static float sent[WORLD][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
static float received[WORLD][8];

static rig begin(uint32_t flags) {
  rig r;
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = flags;
  DO(vt_comm_group_create, (WORLD, NULL, &r.group));
  for (int32_t i = 0; i < WORLD; i++) {
    ASK(vt_comm_group_get_comm, (r.group, i, &r.comms[i]));
    DO(vt_queue_create, (cpu, &options, &r.queues[i]));
  }
  memset(received, 0, sizeof(received));
  return r;
}

static void end(rig *r) {
  for (int i = 0; i < WORLD; i++) {
    vt_queue_release(r->queues[i]);
  }
  TELL(vt_comm_group_release, (r->group));
}

static void groups(int pass) {
  rig r = begin(0);
  vt_comm_record records[2];
  vt_device device;
  vt_comm_health health = {.struct_size = sizeof(health)};
  uint32_t guarantees;
  size_t count;
  char text[256];
  (void)pass;
  ASK(vt_comm_group_retain, (r.group));
  TELL(vt_comm_group_release, (r.group));
  ASK(vt_comm_retain, (r.comms[0]));
  TELL(vt_comm_release, (r.comms[0]));
  LOOK(vt_comm_group_get_world, (r.group));
  LOOK(vt_comm_group_describe, (r.group, text, sizeof(text)));
  LOOK(vt_comm_group_describe_algorithms, (r.group, text, sizeof(text)));
  LOOK(vt_comm_get_rank, (r.comms[0]));
  LOOK(vt_comm_get_world, (r.comms[0]));
  LOOK(vt_comm_get_transport, (r.comms[0]));
  ASK(vt_comm_get_device, (r.comms[0], &device));
  ASK(vt_comm_get_records, (r.comms[0], records, 2, &count));
  ASK(vt_comm_get_guarantees, (r.comms[0], &guarantees));
  ASK(vt_comm_get_health, (r.comms[0], &health));
  ASK(vt_comm_query, (r.comms[0]));
  ASK(vt_comm_abort, (r.comms[0], "as wanted"));
  end(&r);
}

// A rank alone needs nobody to divide its group with.
static void divided(int pass) {
  vt_comm_group *group;
  vt_comm *comm;
  vt_comm *part;
  (void)pass;
  DO(vt_comm_group_create, (1, NULL, &group));
  ASK(vt_comm_group_get_comm, (group, 0, &comm));
  DO(vt_comm_split, (comm, 0, 0, NULL, &part));
  ASK(vt_comm_finalize, (part, NULL));
  vt_comm_release(part);
  vt_comm_group_release(group);
}

// A call that fails drops its batch and tells the peers; then the whole batch is made again.
static bool all_reduce_in_a_batch(rig *r, int calls) {
  bool good = true;
  ASK(vt_comm_batch_begin, ());
  for (int k = 0; good && k < calls; k++) {
    for (int i = 0; good && i < WORLD; i++) {
      good =
          TRY_EITHER(vt_comm_all_reduce, (r->comms[i], r->queues[i], sent[i], received[i], 4, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
    }
  }
  if (!good) {
    SURE(vt_comm_batch_end() == VT_ERR_OUT_OF_MEMORY);
    return false;
  }
  return TRY_EITHER(vt_comm_batch_end, ());
}

static void check_sums(const rig *r) {
  for (int i = 0; i < WORLD; i++) {
    ASK(vt_queue_synchronize, (r->queues[i]));
    for (int k = 0; k < 4; k++) {
      SURE(received[i][k] == sent[0][k] + sent[1][k]);
    }
  }
}

static void batches(int pass) {
  rig r = begin(0);
  (void)pass;
  while (!all_reduce_in_a_batch(&r, MANY_CALLS)) {
  }
  check_sums(&r);
  ASK(vt_comm_batch_begin, ());
  ASK(vt_comm_batch_abandon, ());
  end(&r);
}

// What was queued fails its queue, since the peer failed: another one takes its place when it is done.
static void renew(rig *r) {
  for (int i = 0; i < WORLD; i++) {
    vt_status status = vt_queue_destroy(r->queues[i]);
    SURE(status == VT_OK || status == VT_ERR_MISMATCH);
    DO(vt_queue_create, (cpu, &(vt_queue_options){sizeof(vt_queue_options), VT_QUEUE_ASYNC, 0, NULL, 0, 0}, &r->queues[i]));
  }
}

// The workers of the queues are started by the batch: without one, that queue's part is refused, and all ranks are told.
static void queued_batches(int pass) {
  rig r = begin(VT_QUEUE_ASYNC);
  (void)pass;
  while (!all_reduce_in_a_batch(&r, 1)) {
    renew(&r);
  }
  check_sums(&r);
  end(&r);
}

enum { OPS = 13 };

static bool call_plain(rig *r, int op, int i) {
  vt_comm *comm = r->comms[i];
  vt_queue *queue = r->queues[i];
  switch (op) {
    case 0:
      return TRY_EITHER(vt_comm_all_reduce, (comm, queue, sent[i], received[i], 4, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
    case 1:
      return TRY_EITHER(vt_comm_all_gather, (comm, queue, sent[i], received[i], 4, VT_DTYPE_F32, NULL));
    case 2:
      return TRY_EITHER(vt_comm_barrier, (comm, queue, NULL));
    default:
      return i == 0 ? TRY_EITHER(vt_comm_send, (comm, queue, sent[0], 4, VT_DTYPE_F32, 1, NULL))
                    : TRY_EITHER(vt_comm_recv, (comm, queue, received[1], 4, VT_DTYPE_F32, 0, NULL));
  }
}

static bool call_with_parts(rig *r, int op, int i) {
  static const size_t twos[WORLD] = {2, 2};
  vt_comm *comm = r->comms[i];
  vt_queue *queue = r->queues[i];
  switch (op) {
    case 10:
      return TRY_EITHER(vt_comm_all_gatherv, (comm, queue, sent[i], received[i], twos, NULL, VT_DTYPE_F32, NULL));
    case 11:
      return TRY_EITHER(vt_comm_reduce_scatterv, (comm, queue, sent[i], received[i], twos, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
    default:
      return TRY_EITHER(vt_comm_all_to_allv, (comm, queue, sent[i], twos, NULL, received[i], twos, NULL, VT_DTYPE_F32, NULL));
  }
}

static bool call(rig *r, int op, int i) {
  vt_comm *comm = r->comms[i];
  vt_queue *queue = r->queues[i];
  switch (op) {
    case 4:
      return TRY_EITHER(vt_comm_reduce, (comm, queue, sent[i], received[i], 4, VT_DTYPE_F32, VT_REDUCE_SUM, 0, NULL));
    case 5:
      return TRY_EITHER(vt_comm_broadcast, (comm, queue, received[i], 4, VT_DTYPE_F32, 0, NULL));
    case 6:
      return TRY_EITHER(vt_comm_gather, (comm, queue, sent[i], received[i], 4, VT_DTYPE_F32, 0, NULL));
    case 7:
      return TRY_EITHER(vt_comm_scatter, (comm, queue, sent[i], received[i], 2, VT_DTYPE_F32, 0, NULL));
    case 8:
      return TRY_EITHER(vt_comm_reduce_scatter, (comm, queue, sent[i], received[i], 2, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
    case 9:
      return TRY_EITHER(vt_comm_all_to_all, (comm, queue, sent[i], received[i], 2, VT_DTYPE_F32, NULL));
    default:
      return op < 4 ? call_plain(r, op, i) : call_with_parts(r, op, i);
  }
}

// One round, each rank on its own asynchronous queue. Answers whether it worked for all; where one rank fails, its peer is told.
static bool one_round(rig *r, int op) {
  bool good = true;
  for (int i = 0; i < WORLD; i++) {
    good = call(r, op, i) && good;
  }
  return good;
}

static void queued(int pass) {
  (void)pass;
  for (int op = 0; op < OPS; op++) {
    rig r = begin(VT_QUEUE_ASYNC);
    while (!one_round(&r, op)) {
      renew(&r);
    }
    for (int i = 0; i < WORLD; i++) {
      ASK(vt_queue_synchronize, (r.queues[i]));
    }
    SURE(op != 3 || memcmp(received[1], sent[0], sizeof(sent[0])) == 0);
    SURE(op != 12 || memcmp(received[1], sent[0] + 2, 2 * sizeof(float)) == 0);
    end(&r);
    fault_await_queues(0);
  }
}

const scenario fault_scenarios_comm[] = {{"groups", groups, false},   {"divided", divided, false},
                                         {"batches", batches, false}, {"queued_batches", queued_batches, false},
                                         {"queued", queued, false},   {NULL, NULL, false}};
