// provider.c: the native provider: forwards to the transport of the communicator. It serves CPU queues.
#include "comm/provider.h"

#include "comm/comm.h"
#include "core/log.h"
#include "core/registry.h"

static vt_status forward(vt_queue *queue, vt__comm_call_data *call, const vt_comm_call *opts) {
  call->timeout_ns = opts->timeout_ns;
  call->sequence = opts->sequence;
  call->provider = opts->provider;
  return vt__comm_submit(queue, call);
}

static vt_status all_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                            vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm,
      .send = send,
      .recv = recv,
      .count = count,
      .op = VT_COMM_OP_ALL_REDUCE,
      .dtype = dtype,
      .reduce_op = op,
      .peer = -1,
  };
  return forward(queue, &call, opts);
}

static vt_status all_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                            const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_ALL_GATHER, .dtype = dtype, .peer = -1};
  return forward(queue, &call, opts);
}

static vt_status send_to(vt_comm *comm, vt_queue *queue, const void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                         const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = buffer, .count = count, .op = VT_COMM_OP_SEND, .dtype = dtype, .peer = peer};
  return forward(queue, &call, opts);
}

static vt_status recv_from(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                           const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .recv = buffer, .count = count, .op = VT_COMM_OP_RECV, .dtype = dtype, .peer = peer};
  return forward(queue, &call, opts);
}

static vt_status barrier(vt_comm *comm, vt_queue *queue, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .op = VT_COMM_OP_BARRIER, .peer = -1};
  return forward(queue, &call, opts);
}

enum { OP_COUNT = VT_COMM_OP_BARRIER + 1 };

static const struct {
  const char *name;
  vt_fn fn;
} natives[OP_COUNT] = {
    [VT_COMM_OP_ALL_REDUCE] = {"vt.all_reduce", (vt_fn)all_reduce},
    [VT_COMM_OP_ALL_GATHER] = {"vt.all_gather", (vt_fn)all_gather},
    [VT_COMM_OP_SEND] = {"vt.send", (vt_fn)send_to},
    [VT_COMM_OP_RECV] = {"vt.recv", (vt_fn)recv_from},
    [VT_COMM_OP_BARRIER] = {"vt.barrier", (vt_fn)barrier},
};

// Written once, while the library is initialised, before a communicator can exist.
static vt_op_id ids[OP_COUNT];

vt_op_id vt__comm_op_id(vt_comm_op op) {
  return ids[op];
}

bool vt__comm_fn_is_native(vt_comm_op op, vt_fn fn) {
  return natives[op].fn == fn;
}

// What an earlier try, which had no memory, has registered already is fine.
static vt_status register_native(vt_comm_op op) {
  vt_op_provider native = {
      .struct_size = sizeof(native), .name = VT_OP_NATIVE_NAME, .priority = VT_OP_NATIVE_PRIORITY, .fn = natives[op].fn};
  VT_TRY(vt_op_intern(natives[op].name, &ids[op]));
  vt_status status = vt_op_provider_register(ids[op], VT_DEVICE_CPU, &native);
  return status == VT_ERR_ALREADY_EXISTS ? VT_OK : status;
}

bool vt__comm_providers_register(void) {
  vt__comm_submit_describe();
  vt__comm_batch_describe();
  for (vt_comm_op op = VT_COMM_OP_ALL_REDUCE; op < OP_COUNT; op++) {
    vt_status status = register_native(op);
    if (status == VT_ERR_OUT_OF_MEMORY) {
      return false;
    }
    if (status != VT_OK) {
      vt__log(VT_LOG_ERROR, "%s has no native provider: %s", natives[op].name, vt_last_error()->message);
    }
  }
  return true;
}
