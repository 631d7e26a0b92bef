// peer_mpi.c: an MPI library, one process per rank. Compiled once with each.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

static MPI_Datatype bf16_type = MPI_UINT16_T;
static MPI_Op bf16_sum;

static void require(int code, const char *what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  if (code != MPI_SUCCESS) {
    MPI_Error_string(code, text, &length);
  }
  harness_require(code == MPI_SUCCESS, what, text);
}

static float widen(uint16_t bits16) {
  uint32_t bits = (uint32_t)bits16 << 16;
  float number;
  memcpy(&number, &bits, sizeof(number));
  return number;
}

// To nearest, ties to even. NaN isn't among the inputs.
static uint16_t narrow(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof(bits));
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// MPI has no bf16: sums in f32, rounded at each step.
static void add_bf16(void *in, void *inout, int *length, MPI_Datatype *type) {
  const uint16_t *restrict a = in;
  uint16_t *restrict b = inout;
  (void)type;
  for (int i = 0; i < *length; i++) {
    b[i] = narrow(widen(a[i]) + widen(b[i]));
  }
}

static int ping_pong(const harness_rank *rank, int count, MPI_Datatype type) {
  int peer = 1 - rank->rank;
  if (rank->rank > 1) {
    return MPI_SUCCESS;
  }
  if (rank->rank == 0) {
    int code = MPI_Send(rank->send, count, type, peer, 0, MPI_COMM_WORLD);
    return code ? code : MPI_Recv(rank->recv, count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  int code = MPI_Recv(rank->recv, count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return code ? code : MPI_Send(rank->send, count, type, peer, 0, MPI_COMM_WORLD);
}

static void call(const harness_rank *rank) {
  const harness_case *row = &rank->row;
  int count = (int)row->count;
  int part = (int)row->part;
  MPI_Datatype type = row->bf16 ? bf16_type : MPI_FLOAT;
  MPI_Op sum = row->bf16 ? bf16_sum : MPI_SUM;
  switch (row->op) {
    case OP_ALL_REDUCE:
      require(MPI_Allreduce(MPI_IN_PLACE, rank->recv, count, type, sum, MPI_COMM_WORLD), "MPI_Allreduce");
      break;
    case OP_ALL_GATHER:
      require(MPI_Allgather(rank->send, part, type, rank->recv, part, type, MPI_COMM_WORLD), "MPI_Allgather");
      break;
    case OP_REDUCE_SCATTER:
      require(MPI_Reduce_scatter_block(rank->send, rank->recv, part, type, sum, MPI_COMM_WORLD), "MPI_Reduce_scatter_block");
      break;
    case OP_BROADCAST:
      require(MPI_Bcast(rank->recv, count, type, 0, MPI_COMM_WORLD), "MPI_Bcast");
      break;
    case OP_ALL_TO_ALL:
      require(MPI_Alltoall(rank->send, part, type, rank->recv, part, type, MPI_COMM_WORLD), "MPI_Alltoall");
      break;
    case OP_PING_PONG:
      require(ping_pong(rank, count, type), "MPI_Send and MPI_Recv");
      break;
    default:
      break;
  }
}

static const char *refuses(const harness_rank *rank) {
  return rank->row.op > OP_PING_PONG ? "no such operation" : NULL;
}

int main(int argc, char **argv) {
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  harness_rank state = {0};
  harness_library library = {version, "shared memory", refuses, call};
  require(MPI_Init(&argc, &argv), "MPI_Init");
  require(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  require(MPI_Comm_rank(MPI_COMM_WORLD, &state.rank), "MPI_Comm_rank");
  require(MPI_Comm_size(MPI_COMM_WORLD, &state.world), "MPI_Comm_size");
  require(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
  version[strcspn(version, "\n\"")] = '\0';
  for (char *tab = strchr(version, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
    *tab = ' ';
  }
  require(MPI_Op_create(add_bf16, 1, &bf16_sum), "MPI_Op_create");
#ifdef MPIX_C_BF16
  bf16_type = MPIX_C_BF16;
  bf16_sum = MPI_SUM;
#endif
  harness_serve(&state, &library);
  MPI_Finalize();
  return 0;
}
