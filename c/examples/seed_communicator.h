// seed_communicator.h: the declarations of communicator.h, each beside our call. Part of seed_contract.c.
#ifndef EXAMPLES_SEED_COMMUNICATOR_H
#define EXAMPLES_SEED_COMMUNICATOR_H

#include <string.h>

#include "seed_list.h"

enum { WORLD = 4, COUNT = 5 };

// A group whose ranks one thread drives: the batch holds every rank's call.
typedef struct group_under_test {
  vt_comm_group *group;
  vt_comm *comms[WORLD];
  vt_queue *queue;
} group_under_test;

static inline bool all_reduce_everywhere(group_under_test *t, void *data, size_t rank_bytes, size_t count, vt_dtype dtype,
                                         vt_reduce_op op) {
  must(vt_comm_batch_begin(), "vt_comm_batch_begin");
  for (int r = 0; r < WORLD; r++) {
    char *mine = (char *)data + (size_t)r * rank_bytes;
    (void)vt_comm_all_reduce(t->comms[r], t->queue, mine, mine, count, dtype, op, NULL);
  }
  return vt_comm_batch_end() == VT_OK;
}

static inline bool all_reduce_keeps_its_promise(group_under_test *t) {
  float sums[WORLD][COUNT];
  int32_t extremes[WORLD][4] = {{5, 1, 9, 2}, {3, 8, 0, 2}, {7, 8, 4, 2}, {1, 6, 9, 2}};
  const int32_t expected[4] = {7, 8, 9, 2};
  for (int r = 0; r < WORLD; r++) {
    for (int i = 0; i < COUNT; i++) {
      sums[r][i] = (float)(r + 1);
    }
  }
  bool ok = all_reduce_everywhere(t, sums, sizeof sums[0], COUNT, VT_DTYPE_F32, VT_REDUCE_SUM) &&
            all_reduce_everywhere(t, extremes, sizeof extremes[0], 4, VT_DTYPE_I32, VT_REDUCE_MAX);
  for (int r = 0; r < WORLD; r++) {
    for (int i = 0; i < COUNT; i++) {
      ok = ok && sums[r][i] == 10.0f;
    }
    ok = ok && memcmp(extremes[r], expected, sizeof expected) == 0;
  }
  return ok;
}

static inline bool all_gather_keeps_its_promise(group_under_test *t) {
  int32_t mine[WORLD][2];
  int32_t gathered[WORLD][WORLD * 2];
  must(vt_comm_batch_begin(), "vt_comm_batch_begin");
  for (int r = 0; r < WORLD; r++) {
    mine[r][0] = 10 * r;
    mine[r][1] = 10 * r + 1;
    (void)vt_comm_all_gather(t->comms[r], t->queue, mine[r], gathered[r], 2, VT_DTYPE_I32, NULL);
  }
  bool ok = vt_comm_batch_end() == VT_OK;
  for (int r = 0; r < WORLD; r++) {
    ok = ok && memcmp(gathered[r], mine, sizeof mine) == 0;
  }
  return ok;
}

// enum class ReduceOp and class Communicator.
static inline void communicator(group_under_test *t) {
  section("communicator.h: class Communicator");
  // enum class ReduceOp : uint8_t { kSum = 0, kMax, kMin, kProd }.
  row("ReduceOp::kSum, kMax, kMin, kProd", "VT_REDUCE_SUM, _MAX, _MIN, _PROD",
      VT_REDUCE_SUM == 0 && VT_REDUCE_MAX == 1 && VT_REDUCE_MIN == 2 && VT_REDUCE_PROD == 3);
  // virtual int rank() const.
  row("Communicator::rank()", "vt_comm_get_rank(comm)", vt_comm_get_rank(t->comms[2]) == 2);
  // virtual int world_size() const.
  row("Communicator::world_size()", "vt_comm_get_world(comm)", vt_comm_get_world(t->comms[2]) == WORLD);
  // virtual void AllReduce(Queue& q, void* data, size_t count, DType dtype, ReduceOp op): in place where send == recv.
  row("Communicator::AllReduce(q, data, count, dtype, op)", "vt_comm_all_reduce(comm, queue, send, recv, count, dtype, op, opts)",
      all_reduce_keeps_its_promise(t));
  // virtual void AllGather(Queue& q, const void* sendbuf, void* recvbuf, size_t count, DType dtype): rank r's at r * count.
  row("Communicator::AllGather(q, send, recv, count, dtype)", "vt_comm_all_gather(comm, queue, send, recv, count, dtype, opts)",
      all_gather_keeps_its_promise(t));

  // virtual void Send(Queue& q, const void* data, size_t count, DType dtype, int peer): completes after the receive has taken it.
  vt_queue *sender = async_queue();
  int64_t sent[2] = {100, 600};
  int64_t received[2] = {0, 0};
  row("Communicator::Send(q, data, count, dtype, peer)", "vt_comm_send(comm, queue, data, count, dtype, peer, opts)",
      vt_comm_send(t->comms[0], sender, sent, 2, VT_DTYPE_I64, 3, NULL) == VT_OK && vt_queue_query(sender) == VT_NOT_READY);
  // virtual void Recv(Queue& q, void* data, size_t count, DType dtype, int peer).
  row("Communicator::Recv(q, data, count, dtype, peer)", "vt_comm_recv(comm, queue, data, count, dtype, peer, opts)",
      vt_comm_recv(t->comms[3], t->queue, received, 2, VT_DTYPE_I64, 0, NULL) == VT_OK && received[0] == 100 &&
          received[1] == 600 && vt_queue_destroy(sender) == VT_OK);
}

// The function of the provider that serves `name` on CPU. NULL if there is none.
static inline vt_fn provider_fn(const char *name) {
  vt_op_id op = 0;
  const vt_op_provider *provider = NULL;
  if (vt_op_intern(name, &op) != VT_OK || vt_op_get(op, VT_DEVICE_CPU, NULL, &provider) != VT_OK) {
    return NULL;
  }
  return provider->fn;
}

// The data planes that the operation providers route to, called as a provider calls them.
static inline void data_planes(group_under_test *t) {
  vt_comm_call call = VT_COMM_CALL_INIT;
  vt_comm_group *lone = NULL;
  vt_comm *comm = NULL;
  const int32_t one[2] = {3, 4};
  int32_t reduced[2] = {0};
  int32_t gathered[2] = {0};
  int32_t received[2] = {0};
  section("communicator.h: data planes routed through the operation providers");
  call.provider = VT_OP_NATIVE_NAME;
  must(vt_comm_group_create(1, NULL, &lone), "vt_comm_group_create");
  must(vt_comm_group_get_comm(lone, 0, &comm), "vt_comm_group_get_comm");

  // using CommAllReduceFn. A world of 1 is the identity.
  vt_comm_all_reduce_fn all_reduce = (vt_comm_all_reduce_fn)provider_fn("vt.all_reduce");
  row("CommAllReduceFn, OpId kAllReduce", "vt_comm_all_reduce_fn, op \"vt.all_reduce\"",
      all_reduce != NULL && all_reduce(comm, t->queue, one, reduced, 2, VT_DTYPE_I32, VT_REDUCE_SUM, &call) == VT_OK &&
          memcmp(reduced, one, sizeof one) == 0);
  // using CommAllGatherFn. A world of 1 copies.
  vt_comm_all_gather_fn all_gather = (vt_comm_all_gather_fn)provider_fn("vt.all_gather");
  row("CommAllGatherFn, OpId kAllGather", "vt_comm_all_gather_fn, op \"vt.all_gather\"",
      all_gather != NULL && all_gather(comm, t->queue, one, gathered, 2, VT_DTYPE_I32, &call) == VT_OK &&
          memcmp(gathered, one, sizeof one) == 0);
  // using CommSendFn, using CommRecvFn: both ends on this thread, so in one batch.
  vt_comm_send_fn send = (vt_comm_send_fn)provider_fn("vt.send");
  vt_comm_recv_fn recv = (vt_comm_recv_fn)provider_fn("vt.recv");
  must(vt_comm_batch_begin(), "vt_comm_batch_begin");
  const bool sent = send != NULL && send(t->comms[1], t->queue, one, 2, VT_DTYPE_I32, 2, &call) == VT_OK;
  const bool taken = recv != NULL && recv(t->comms[2], t->queue, received, 2, VT_DTYPE_I32, 1, &call) == VT_OK;
  const bool ended = vt_comm_batch_end() == VT_OK;
  row("CommSendFn, OpId kSend", "vt_comm_send_fn, op \"vt.send\"", sent && ended);
  row("CommRecvFn, OpId kRecv", "vt_comm_recv_fn, op \"vt.recv\"", taken && ended && memcmp(received, one, sizeof one) == 0);
  vt_comm_group_release(lone);
}

// class CpuCommGroup. Copying is deleted there; here a second owner is a second reference.
static inline void comm_group(void) {
  group_under_test t = {0};
  vt_comm_group *refused = NULL;
  section("communicator.h: class CpuCommGroup");
  // explicit CpuCommGroup(int world_size).
  row("CpuCommGroup(world_size)", "vt_comm_group_create(world, options, &group)",
      vt_comm_group_create(-1, NULL, &refused) == VT_ERR_INVALID_ARGUMENT && vt_comm_group_create(WORLD, NULL, &t.group) == VT_OK);
  // int world_size() const.
  row("CpuCommGroup::world_size()", "vt_comm_group_get_world(group)", vt_comm_group_get_world(t.group) == WORLD);
  // Communicator& Rank(int r): owned by the group.
  bool ok = vt_comm_group_get_comm(t.group, WORLD, &t.comms[0]) == VT_ERR_INVALID_ARGUMENT;
  for (int r = 0; r < WORLD; r++) {
    ok = ok && vt_comm_group_get_comm(t.group, r, &t.comms[r]) == VT_OK;
  }
  row("CpuCommGroup::Rank(r)", "vt_comm_group_get_comm(group, rank, &comm)", ok);
  // struct Shared: private. What it coordinates can be read.
  char text[1024];
  row("CpuCommGroup::Shared", "opaque; vt_comm_group_describe(group, text, capacity)",
      vt_comm_group_describe(t.group, text, sizeof text) > 0);

  must(vt_queue_create(cpu, NULL, &t.queue), "vt_queue_create");
  communicator(&t);
  data_planes(&t);

  section("communicator.h: ends of life");
  // virtual ~Communicator(): a rank that is retained outlives its group.
  must(vt_comm_retain(t.comms[1]), "vt_comm_retain");
  // ~CpuCommGroup().
  vt_comm_group_release(t.group);
  row("~CpuCommGroup()", "vt_comm_group_release(group)",
      vt_comm_group_get_world(t.group) == 0 && vt_comm_get_rank(t.comms[0]) == -1 && vt_comm_get_rank(t.comms[1]) == 1);
  vt_comm_release(t.comms[1]);
  row("~Communicator()", "vt_comm_release(comm)", vt_comm_get_rank(t.comms[1]) == -1);
  must(vt_queue_destroy(t.queue), "vt_queue_destroy");
}

#endif
