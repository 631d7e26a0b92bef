// peer_oneccl.cpp: oneCCL on the CPU, one process per rank, over MPI.
#include <mpi.h>

#include <oneapi/ccl.hpp>
#include <optional>

#include "harness.h"

// The archive calls a tracer through these, which the wheels don't define. Null: there is none.
extern "C" {
void *__itt_domain_create_ptr__3_0;
void *__itt_event_create_ptr__3_0;
void *__itt_event_end_ptr__3_0;
void *__itt_event_start_ptr__3_0;
void *__itt_metadata_add_ptr__3_0;
void *__itt_string_handle_create_ptr__3_0;
void *__itt_task_begin_ptr__3_0;
void *__itt_task_end_ptr__3_0;
void *__itt_thread_set_name_ptr__3_0;
}

namespace {

std::optional<ccl::communicator> comm;

ccl::event ping_pong_half(const harness_rank *rank, bool sends, ccl::datatype type) {
  int peer = 1 - rank->rank;
  return sends ? ccl::send(rank->send, rank->row.count, type, peer, *comm)
               : ccl::recv(rank->recv, rank->row.count, type, peer, *comm);
}

void ping_pong(const harness_rank *rank, ccl::datatype type) {
  if (rank->rank < 2) {
    ping_pong_half(rank, rank->rank == 0, type).wait();
    ping_pong_half(rank, rank->rank == 1, type).wait();
  }
}

void call(const harness_rank *rank) {
  const harness_case &row = rank->row;
  ccl::datatype type = row.bf16 ? ccl::datatype::bfloat16 : ccl::datatype::float32;
  switch (row.op) {
    case OP_ALL_REDUCE:
      ccl::allreduce(rank->send, rank->recv, row.count, type, ccl::reduction::sum, *comm).wait();
      break;
    case OP_ALL_GATHER:
      ccl::allgather(rank->send, rank->recv, row.part, type, *comm).wait();
      break;
    case OP_REDUCE_SCATTER:
      ccl::reduce_scatter(rank->send, rank->recv, row.part, type, ccl::reduction::sum, *comm).wait();
      break;
    case OP_BROADCAST:
      ccl::broadcast(rank->recv, row.count, type, 0, *comm).wait();
      break;
    case OP_ALL_TO_ALL:
      ccl::alltoall(rank->send, rank->recv, row.part, type, *comm).wait();
      break;
    case OP_PING_PONG:
      ping_pong(rank, type);
      break;
    default:
      break;
  }
}

const char *refuses(const harness_rank *rank) {
  return rank->row.op > OP_PING_PONG ? "no such operation" : nullptr;
}

void make_communicator(const harness_rank &rank) {
  ccl::shared_ptr_class<ccl::kvs> store;
  ccl::kvs::address_type address;
  if (rank.rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank.rank != 0) {
    store = ccl::create_kvs(address);
  }
  comm.emplace(ccl::create_communicator(rank.world, rank.rank, store));
}

}  // namespace

int main(int argc, char **argv) {
  harness_rank state = {};
  ccl::init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &state.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &state.world);
  make_communicator(state);
  ccl::library_version version = ccl::get_library_version();
  ccl::string_class text =
      std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.update);
  harness_library library = {text.c_str(), "MPI", refuses, call};
  try {
    harness_serve(&state, &library);
  } catch (const std::exception &error) {
    harness_require(false, "oneCCL", error.what());
  }
  comm.reset();
  MPI_Finalize();
  return 0;
}
