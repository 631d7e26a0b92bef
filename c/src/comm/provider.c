// provider.c: the native provider: forwards to the transport of the communicator. It serves CPU queues.
#include "comm/provider.h"

#include "comm/arguments.h"
#include "core/log.h"
#include "core/registry.h"

static vt_status forward(vt_queue *queue, vt__comm_call_data *call, const vt_comm_call *opts) {
  call->flags = (uint16_t)((uint32_t)opts->wait << VT__CALL_WAIT_SHIFT);
  call->timeout_ns = opts->timeout_ns;
  call->sequence = opts->sequence;
  call->provider = opts->provider;
  return vt__comm_submit(queue, call);
}

// Another provider, which declined, may have passed other counts on.
static vt_status forward_parts(vt_queue *queue, vt__comm_call_data *call, const vt__comm_arrays *arrays, const vt_comm_call *opts) {
  vt_status status = vt__comm_check_arguments(call, arrays);
  status = status == VT_OK ? forward(queue, call, opts) : vt__comm_refuse(queue, call, status, NULL);
  vt__comm_parts_give_up(call->parts);
  return status;
}

static vt_status all_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                            vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm,
                             .send = send,
                             .recv = recv,
                             .count = count,
                             .op = VT_COMM_OP_ALL_REDUCE,
                             .dtype = dtype,
                             .reduce_op = op,
                             .peer = -1};
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

static vt_status reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype, vt_reduce_op op,
                        int32_t root, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm,
                             .send = send,
                             .recv = recv,
                             .count = count,
                             .op = VT_COMM_OP_REDUCE,
                             .dtype = dtype,
                             .reduce_op = op,
                             .peer = root};
  return forward(queue, &call, opts);
}

static vt_status broadcast(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t root,
                           const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = buffer, .recv = buffer, .count = count, .op = VT_COMM_OP_BROADCAST, .dtype = dtype, .peer = root};
  return forward(queue, &call, opts);
}

static vt_status gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype, int32_t root,
                        const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_GATHER, .dtype = dtype, .peer = root};
  return forward(queue, &call, opts);
}

static vt_status scatter(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype, int32_t root,
                         const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_SCATTER, .dtype = dtype, .peer = root};
  return forward(queue, &call, opts);
}

static vt_status reduce_scatter(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm,
                             .send = send,
                             .recv = recv,
                             .count = count,
                             .op = VT_COMM_OP_REDUCE_SCATTER,
                             .dtype = dtype,
                             .reduce_op = op,
                             .peer = -1};
  return forward(queue, &call, opts);
}

static vt_status all_to_all(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                            const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_ALL_TO_ALL, .dtype = dtype, .peer = -1};
  return forward(queue, &call, opts);
}

static vt_status all_gatherv(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                             const size_t *displs, vt_dtype dtype, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = send, .recv = recv, .op = VT_COMM_OP_ALL_GATHERV, .dtype = dtype, .peer = -1};
  vt__comm_arrays arrays = {.recv_counts = counts, .recv_displs = displs};
  return forward_parts(queue, &call, &arrays, opts);
}

static vt_status reduce_scatterv(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts, vt_dtype dtype,
                                 vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .op = VT_COMM_OP_REDUCE_SCATTERV, .dtype = dtype, .reduce_op = op, .peer = -1};
  vt__comm_arrays arrays = {.send_counts = counts};
  return forward_parts(queue, &call, &arrays, opts);
}

static vt_status all_to_allv(vt_comm *comm, vt_queue *queue, const void *send, const size_t *send_counts, const size_t *send_displs,
                             void *recv, const size_t *recv_counts, const size_t *recv_displs, vt_dtype dtype,
                             const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = send, .recv = recv, .op = VT_COMM_OP_ALL_TO_ALLV, .dtype = dtype, .peer = -1};
  vt__comm_arrays arrays = {send_counts, send_displs, recv_counts, recv_displs};
  return forward_parts(queue, &call, &arrays, opts);
}

static const struct {
  const char *name;
  vt_fn fn;
} natives[VT_COMM_OP_COUNT] = {
    [VT_COMM_OP_ALL_REDUCE] = {"vt.all_reduce", (vt_fn)all_reduce},
    [VT_COMM_OP_ALL_GATHER] = {"vt.all_gather", (vt_fn)all_gather},
    [VT_COMM_OP_SEND] = {"vt.send", (vt_fn)send_to},
    [VT_COMM_OP_RECV] = {"vt.recv", (vt_fn)recv_from},
    [VT_COMM_OP_BARRIER] = {"vt.barrier", (vt_fn)barrier},
    [VT_COMM_OP_REDUCE] = {"vt.reduce", (vt_fn)reduce},
    [VT_COMM_OP_BROADCAST] = {"vt.broadcast", (vt_fn)broadcast},
    [VT_COMM_OP_GATHER] = {"vt.gather", (vt_fn)gather},
    [VT_COMM_OP_SCATTER] = {"vt.scatter", (vt_fn)scatter},
    [VT_COMM_OP_REDUCE_SCATTER] = {"vt.reduce_scatter", (vt_fn)reduce_scatter},
    [VT_COMM_OP_ALL_TO_ALL] = {"vt.all_to_all", (vt_fn)all_to_all},
    [VT_COMM_OP_ALL_GATHERV] = {"vt.all_gatherv", (vt_fn)all_gatherv},
    [VT_COMM_OP_REDUCE_SCATTERV] = {"vt.reduce_scatterv", (vt_fn)reduce_scatterv},
    [VT_COMM_OP_ALL_TO_ALLV] = {"vt.all_to_allv", (vt_fn)all_to_allv},
};

// Written once, while the library is initialised, before a communicator can exist.
static vt_op_id ids[VT_COMM_OP_COUNT];

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
  for (vt_comm_op op = VT_COMM_OP_ALL_REDUCE; op < VT_COMM_OP_SPLIT; op++) {
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
