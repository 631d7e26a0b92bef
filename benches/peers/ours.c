// ours.c: this library, through its public interface on synchronous queues, one thread per rank.
#include <stdio.h>
#include <stdlib.h>
#include <vllm_vt/vt.h>

#include "harness.h"

typedef struct ours {
  vt_comm *comm;
  vt_queue *queue;
} ours;

static vt_comm_group *group;
static harness_library library;

static void require(vt_status status, const char *what) {
  harness_require(status == VT_OK, what, status == VT_OK ? "" : vt_last_error()->message);
}

static vt_status ping_pong(const harness_rank *rank, const ours *o, vt_dtype dtype) {
  const harness_case *row = &rank->row;
  int32_t peer = 1 - rank->rank;
  if (rank->rank > 1) {
    return VT_OK;
  }
  if (rank->rank == 0) {
    vt_status status = vt_comm_send(o->comm, o->queue, rank->send, row->count, dtype, peer, NULL);
    return status ? status : vt_comm_recv(o->comm, o->queue, rank->recv, row->count, dtype, peer, NULL);
  }
  vt_status status = vt_comm_recv(o->comm, o->queue, rank->recv, row->count, dtype, peer, NULL);
  return status ? status : vt_comm_send(o->comm, o->queue, rank->send, row->count, dtype, peer, NULL);
}

static void call(const harness_rank *rank) {
  const ours *o = rank->library;
  const harness_case *row = &rank->row;
  vt_dtype dtype = row->bf16 ? VT_DTYPE_BF16 : VT_DTYPE_F32;
  switch (row->op) {
    case OP_ALL_REDUCE:
      require(vt_comm_all_reduce(o->comm, o->queue, rank->send, rank->recv, row->count, dtype, VT_REDUCE_SUM, NULL), "all_reduce");
      break;
    case OP_ALL_GATHER:
      require(vt_comm_all_gather(o->comm, o->queue, rank->send, rank->recv, row->part, dtype, NULL), "all_gather");
      break;
    case OP_REDUCE_SCATTER:
      require(vt_comm_reduce_scatter(o->comm, o->queue, rank->send, rank->recv, row->part, dtype, VT_REDUCE_SUM, NULL),
              "reduce_scatter");
      break;
    case OP_BROADCAST:
      require(vt_comm_broadcast(o->comm, o->queue, rank->recv, row->count, dtype, 0, NULL), "broadcast");
      break;
    case OP_ALL_TO_ALL:
      require(vt_comm_all_to_all(o->comm, o->queue, rank->send, rank->recv, row->part, dtype, NULL), "all_to_all");
      break;
    case OP_PING_PONG:
      require(ping_pong(rank, o, dtype), "send and recv");
      break;
    default:
      break;
  }
}

static const char *refuses(const harness_rank *rank) {
  return rank->row.op > OP_PING_PONG ? "no such operation" : NULL;
}

static void body(int rank, int world) {
  ours own;
  harness_rank state = {.rank = rank, .world = world, .library = &own};
  require(vt_comm_group_get_comm(group, rank, &own.comm), "vt_comm_group_get_comm");
  require(vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, NULL, &own.queue), "vt_queue_create");
  harness_serve(&state, &library);
  vt_queue_release(own.queue);
}

int main(int argc, char **argv) {
  static char version[32];
  vt_comm *first;
  harness_require(argc == 2, "usage", "ours WORLD");
  int world = atoi(argv[1]);
  require(vt_comm_group_create(world, NULL, &group), "vt_comm_group_create");
  require(vt_comm_group_get_comm(group, 0, &first), "vt_comm_group_get_comm");
  (void)snprintf(version, sizeof(version), "%d.%d.%d", vt_version() / 10000, vt_version() / 100 % 100, vt_version() % 100);
  library = (harness_library){version, vt_comm_get_transport(first), refuses, call};
  harness_threads(world, body);
  vt_comm_group_release(group);
  return 0;
}
