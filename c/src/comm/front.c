// front.c: the public operations: checks, then the provider that serves the queue's type of device.
#include <string.h>

#include "comm/arguments.h"
#include "comm/provider.h"
#include "comm/text.h"
#include "comm/transport.h"

// Brings `opts` into the call. A shorter struct of an earlier release leaves the later fields at their defaults.
vt_status vt__comm_take_options(vt__comm_call_data *call, const vt_comm_call *opts) {
  if (opts == NULL) {
    return VT_OK;
  }
  VT__CHECK_CALL(call, opts->struct_size >= sizeof(size_t), "opts->struct_size is %zu, start from VT_COMM_CALL_INIT",
                 opts->struct_size);
  vt_comm_call known = VT_COMM_CALL_INIT;
  memcpy(&known, opts, vt__min_size(opts->struct_size, sizeof(known)));
  VT__CHECK_CALL(call, known.timeout_ns != UINT64_MAX, "timeout_ns is infinite; no wait for another rank is without a deadline");
  VT__CHECK_CALL(call, vt__wait_mode_is_known(known.wait), "wait mode %d is unknown", known.wait);
  call->flags = (uint16_t)(call->flags | (uint32_t)known.wait << VT__CALL_WAIT_SHIFT);
  call->timeout_ns = known.timeout_ns;
  call->sequence = known.sequence;
  return VT_OK;
}

static vt_status check_device(const vt__comm_call_data *call, const vt_queue *queue) {
  vt_device own = call->comm->device;
  vt_device other = queue->backend->device;
  VT__CHECK_CALL(call, own.type == other.type && own.index == other.index, "the queue is of %s, the communicator of %s",
                 vt__device_name(other).text, vt__device_name(own).text);
  return VT_OK;
}

static vt_status check_peer(const vt__comm_call_data *call) {
  VT__CHECK_CALL(call, call->peer >= 0 && call->peer < call->comm->world, "peer %d is not a rank of a world of %d", call->peer,
                 call->comm->world);
  VT__CHECK_CALL(call, call->peer != call->comm->rank || vt__comm_in_batch(),
                 "rank %d sends to itself or receives from itself outside a batch", call->peer);
  return VT_OK;
}

// Fails the batch or the capture that a refused call stands in, where no peer can be told.
static vt_status refuse_silently(vt_queue *queue, vt_status status, const void *caller) {
  if (vt__comm_in_batch()) {
    vt__comm_batch_fail(status);
  }
  return vt__handle_is_live(queue, &vt__queue_pool) ? vt__queue_refused(queue, status, caller) : status;
}

// Everything that is checked before a call is routed. A refusal has been dealt with.
static vt_status admit(vt__comm_call_data *call, const vt__comm_arrays *arrays, vt_queue *queue, const vt_comm_call *opts,
                       vt__call_site site) {
  const char *function = vt__comm_op_function(call->op);
  VT_TRY(vt__check_usable(function));
  vt_status status = vt__check_live(call->comm, &vt__comm_pool, "communicator", function);
  status = status != VT_OK ? status : vt__comm_check_open(call->comm, function);
  status = status != VT_OK || !vt__comm_is_message(call->op) ? status : check_peer(call);
  if (VT_UNLIKELY(status != VT_OK)) {
    return refuse_silently(queue, status, site.caller);
  }
  status = vt__queue_check_submit(queue, function);
  if (VT_UNLIKELY(status != VT_OK)) {
    return vt__comm_refuse(NULL, call, status, site.caller);
  }
  status = vt__comm_take_options(call, opts);
  status = status != VT_OK ? status : check_device(call, queue);
  status = status != VT_OK ? status : vt__comm_check_arguments(call, arrays);
  if (VT_UNLIKELY(status != VT_OK)) {
    return vt__comm_refuse(queue, call, status, site.caller);
  }
  status = call->comm->transport->query(call->comm->state);
  if (VT_UNLIKELY(status != VT_OK)) {
    return refuse_silently(queue, status, site.caller);
  }
  if (vt__validate_is_on()) {
    vt__comm_validate_check(call, queue, site);
  }
  return VT_OK;
}

// Who serves a call, and the options that it gets.
typedef struct route {
  vt_fn fn;
  vt_comm_call opts;
} route;

// Finds who serves the call. Where that isn't the native provider, the ranks first agree on the call, so that differing providers
// end in MISMATCH before one of them waits for the others in its own way.
static vt_status find_route(vt__comm_call_data *call, vt_queue *queue, vt__call_site site, route *out) {
  vt_comm_descriptor descriptor = {
      .struct_size = sizeof(descriptor),
      .comm = call->comm,
      .queue = queue,
      .count = call->count,
      .op = call->op,
      .dtype = call->dtype,
      .reduce_op = call->reduce_op,
      .peer = call->peer,
  };
  const vt_op_provider *provider;
  vt_status status = vt_op_get(vt__comm_op_id(call->op), queue->backend->device.type, &descriptor, &provider);
  if (VT_UNLIKELY(status != VT_OK)) {
    return vt__comm_refuse(queue, call, status, site.caller);
  }
  out->fn = provider->fn;
  out->opts = (vt_comm_call){
      .struct_size = sizeof(out->opts),
      .timeout_ns = call->timeout_ns,
      .sequence = call->sequence,
      .provider = provider->name,
      .wait = (vt_wait_mode)((uint32_t)call->flags >> VT__CALL_WAIT_SHIFT),
  };
  if (VT_UNLIKELY(!vt__comm_fn_is_native(call->op, provider->fn)) && !vt__comm_is_message(call->op)) {
    vt__comm_call_data agree = *call;
    agree.provider = provider->name;
    agree.flags |= VT__CALL_AGREE;
    return vt__comm_submit(queue, &agree);
  }
  return VT_OK;
}

// What comes before a provider: checks and the route. `arrays` are the counts of operations with a count for every rank.
static vt_status begin(vt__comm_call_data *call, const vt__comm_arrays *arrays, vt_queue *queue, const vt_comm_call *opts,
                       vt__call_site site, route *out) {
  vt_status status = admit(call, arrays, queue, opts, site);
  status = VT_LIKELY(status == VT_OK) ? find_route(call, queue, site, out) : status;
  if (VT_UNLIKELY(status != VT_OK)) {
    vt__comm_parts_give_up(call->parts);
  }
  return status;
}

// The end of a call that a provider took: its failure fails the batch. What a batch has collected is noted when that is submitted.
static vt_status routed(const vt__comm_call_data *call, vt_queue *queue, vt_status status, vt__call_site site) {
  if (vt__validate_is_on() && status == VT_OK && !vt__comm_in_batch()) {
    vt__comm_validate_note(call, queue, site);
  }
  if (VT_UNLIKELY(status < 0) && vt__comm_in_batch()) {
    vt__comm_batch_fail(status);
  }
  vt__comm_parts_give_up(call->parts);
  return status;
}

vt_status vt_comm_all_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                             vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm,
                             .send = send,
                             .recv = recv,
                             .count = count,
                             .op = VT_COMM_OP_ALL_REDUCE,
                             .dtype = dtype,
                             .reduce_op = op,
                             .peer = -1};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_all_reduce_fn)to.fn)(comm, queue, send, recv, count, dtype, op, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_all_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                             const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_ALL_GATHER, .dtype = dtype, .peer = -1};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_all_gather_fn)to.fn)(comm, queue, send, recv, count, dtype, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_send(vt_comm *comm, vt_queue *queue, const void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                       const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = buffer, .count = count, .op = VT_COMM_OP_SEND, .dtype = dtype, .peer = peer};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_send_fn)to.fn)(comm, queue, buffer, count, dtype, peer, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_recv(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                       const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .recv = buffer, .count = count, .op = VT_COMM_OP_RECV, .dtype = dtype, .peer = peer};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_recv_fn)to.fn)(comm, queue, buffer, count, dtype, peer, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_barrier(vt_comm *comm, vt_queue *queue, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .op = VT_COMM_OP_BARRIER, .peer = -1};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_barrier_fn)to.fn)(comm, queue, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                         vt_reduce_op op, int32_t root, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm,
                             .send = send,
                             .recv = recv,
                             .count = count,
                             .op = VT_COMM_OP_REDUCE,
                             .dtype = dtype,
                             .reduce_op = op,
                             .peer = root};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_reduce_fn)to.fn)(comm, queue, send, recv, count, dtype, op, root, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_broadcast(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t root,
                            const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = buffer, .recv = buffer, .count = count, .op = VT_COMM_OP_BROADCAST, .dtype = dtype, .peer = root};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_broadcast_fn)to.fn)(comm, queue, buffer, count, dtype, root, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype, int32_t root,
                         const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_GATHER, .dtype = dtype, .peer = root};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_gather_fn)to.fn)(comm, queue, send, recv, count, dtype, root, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_scatter(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype, int32_t root,
                          const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_SCATTER, .dtype = dtype, .peer = root};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_scatter_fn)to.fn)(comm, queue, send, recv, count, dtype, root, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_reduce_scatter(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                                 vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm,
                             .send = send,
                             .recv = recv,
                             .count = count,
                             .op = VT_COMM_OP_REDUCE_SCATTER,
                             .dtype = dtype,
                             .reduce_op = op,
                             .peer = -1};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_reduce_scatter_fn)to.fn)(comm, queue, send, recv, count, dtype, op, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_all_to_all(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                             const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_ALL_TO_ALL, .dtype = dtype, .peer = -1};
  route to;
  VT_TRY(begin(&call, NULL, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_all_to_all_fn)to.fn)(comm, queue, send, recv, count, dtype, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_all_gatherv(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                              const size_t *displs, vt_dtype dtype, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = send, .recv = recv, .op = VT_COMM_OP_ALL_GATHERV, .dtype = dtype, .peer = -1};
  vt__comm_arrays arrays = {.recv_counts = counts, .recv_displs = displs};
  route to;
  VT_TRY(begin(&call, &arrays, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_all_gatherv_fn)to.fn)(comm, queue, send, recv, counts, displs, dtype, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_reduce_scatterv(vt_comm *comm, vt_queue *queue, const void *send, void *recv, const size_t *counts,
                                  vt_dtype dtype, vt_reduce_op op, const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .op = VT_COMM_OP_REDUCE_SCATTERV, .dtype = dtype, .reduce_op = op, .peer = -1};
  vt__comm_arrays arrays = {.send_counts = counts};
  route to;
  VT_TRY(begin(&call, &arrays, queue, opts, VT__HERE, &to));
  vt_status status = ((vt_comm_reduce_scatterv_fn)to.fn)(comm, queue, send, recv, counts, dtype, op, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}

vt_status vt_comm_all_to_allv(vt_comm *comm, vt_queue *queue, const void *send, const size_t *send_counts,
                              const size_t *send_displs, void *recv, const size_t *recv_counts, const size_t *recv_displs,
                              vt_dtype dtype, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = send, .recv = recv, .op = VT_COMM_OP_ALL_TO_ALLV, .dtype = dtype, .peer = -1};
  vt__comm_arrays arrays = {send_counts, send_displs, recv_counts, recv_displs};
  route to;
  VT_TRY(begin(&call, &arrays, queue, opts, VT__HERE, &to));
  vt_status status =
      ((vt_comm_all_to_allv_fn)to.fn)(comm, queue, send, send_counts, send_displs, recv, recv_counts, recv_displs, dtype, &to.opts);
  return routed(&call, queue, status, VT__HERE);
}
