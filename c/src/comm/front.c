// front.c: the public operations: checks, then the provider that serves the queue's type of device.
#include <string.h>

#include "comm/comm.h"
#include "comm/provider.h"
#include "comm/text.h"
#include "comm/transport.h"

#define refuse_arg(call, ...) vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, vt__comm_op_function((call)->op), __VA_ARGS__)

#define CHECK_ARG(call, condition, ...)     \
  do {                                      \
    if (VT_UNLIKELY(!(condition))) {        \
      return refuse_arg(call, __VA_ARGS__); \
    }                                       \
  } while (0)

// Brings `opts` into the call. A shorter struct of an earlier release leaves the later fields at their defaults.
static vt_status take_options(vt__comm_call_data *call, const vt_comm_call *opts) {
  if (opts == NULL) {
    return VT_OK;
  }
  CHECK_ARG(call, opts->struct_size >= sizeof(size_t), "opts->struct_size is %zu, start from VT_COMM_CALL_INIT", opts->struct_size);
  vt_comm_call known = VT_COMM_CALL_INIT;
  memcpy(&known, opts, vt__min_size(opts->struct_size, sizeof(known)));
  CHECK_ARG(call, known.timeout_ns != UINT64_MAX, "timeout_ns is infinite; no wait for another rank is without a deadline");
  call->timeout_ns = known.timeout_ns;
  call->sequence = known.sequence;
  return VT_OK;
}

static bool is_reducible(vt_dtype dtype) {
  switch (dtype) {
    case VT_DTYPE_F32:
    case VT_DTYPE_F64:
    case VT_DTYPE_F16:
    case VT_DTYPE_BF16:
    case VT_DTYPE_I8:
    case VT_DTYPE_U8:
    case VT_DTYPE_I32:
    case VT_DTYPE_I64:
      return true;
    default:
      return false;
  }
}

// The bytes of this rank's elements.
static vt_status take_bytes(const vt__comm_call_data *call, size_t *out_bytes) {
  size_t elements;
  size_t block;
  CHECK_ARG(call, vt_dtype_get_name(call->dtype) != NULL, "dtype %d is unknown", call->dtype);
  (void)vt_dtype_get_block(call->dtype, &elements, &block);
  CHECK_ARG(call, call->count % elements == 0, "count %zu of %s is not in whole blocks of %zu", call->count,
            vt_dtype_get_name(call->dtype), elements);
  CHECK_ARG(call, !vt__mul_overflows(call->count / elements, block, out_bytes) && *out_bytes <= PTRDIFF_MAX,
            "the bytes of count %zu of %s overflow", call->count, vt_dtype_get_name(call->dtype));
  return VT_OK;
}

static vt_status check_all_reduce(const vt__comm_call_data *call) {
  size_t bytes;
  VT_TRY(take_bytes(call, &bytes));
  CHECK_ARG(call, is_reducible(call->dtype), "%s can't be reduced", vt_dtype_get_name(call->dtype));
  CHECK_ARG(call, call->reduce_op >= 0 && call->reduce_op < VT_REDUCE_COUNT, "reduce op %d is unknown", call->reduce_op);
  CHECK_ARG(call, call->count == 0 || call->send != NULL, "send is NULL with count %zu", call->count);
  CHECK_ARG(call, call->count == 0 || call->recv != NULL, "recv is NULL with count %zu", call->count);
  CHECK_ARG(call, call->send == call->recv || !vt__overlaps(call->send, bytes, call->recv, bytes),
            "send %p and recv %p of %zu bytes overlap and are not equal", call->send, call->recv, bytes);
  return VT_OK;
}

static vt_status check_all_gather(const vt__comm_call_data *call) {
  size_t bytes;
  size_t all;
  VT_TRY(take_bytes(call, &bytes));
  CHECK_ARG(call, !vt__mul_overflows(bytes, (size_t)call->comm->world, &all) && all <= PTRDIFF_MAX,
            "the bytes of %d times count %zu of %s overflow", call->comm->world, call->count, vt_dtype_get_name(call->dtype));
  CHECK_ARG(call, call->count == 0 || call->send != NULL, "send is NULL with count %zu", call->count);
  CHECK_ARG(call, call->count == 0 || call->recv != NULL, "recv is NULL with count %zu", call->count);
  // As numbers: with count 0 the pointers may be NULL.
  uintptr_t place = (uintptr_t)call->recv + (uintptr_t)call->comm->rank * bytes;
  CHECK_ARG(call, (uintptr_t)call->send == place || !vt__overlaps(call->send, bytes, call->recv, all),
            "send %p overlaps recv %p of %zu bytes and is not its part for rank %d", call->send, call->recv, all, call->comm->rank);
  return VT_OK;
}

// Of a message whose peer is a rank.
static vt_status check_message(const vt__comm_call_data *call) {
  size_t bytes;
  const void *buffer = call->op == VT_COMM_OP_SEND ? call->send : call->recv;
  VT_TRY(take_bytes(call, &bytes));
  CHECK_ARG(call, call->count == 0 || buffer != NULL, "buffer is NULL with count %zu", call->count);
  return VT_OK;
}

static vt_status check_arguments(const vt__comm_call_data *call) {
  switch (call->op) {
    case VT_COMM_OP_ALL_REDUCE:
      return check_all_reduce(call);
    case VT_COMM_OP_ALL_GATHER:
      return check_all_gather(call);
    case VT_COMM_OP_BARRIER:
      return VT_OK;
    default:
      return check_message(call);
  }
}

static vt_status check_device(const vt__comm_call_data *call, const vt_queue *queue) {
  vt_device own = call->comm->device;
  vt_device other = queue->backend->device;
  CHECK_ARG(call, own.type == other.type && own.index == other.index, "the queue is of %s, the communicator of %s",
            vt__device_name(other).text, vt__device_name(own).text);
  return VT_OK;
}

static vt_status check_peer(const vt__comm_call_data *call) {
  CHECK_ARG(call, call->peer >= 0 && call->peer < call->comm->world, "peer %d is not a rank of a world of %d", call->peer,
            call->comm->world);
  CHECK_ARG(call, call->peer != call->comm->rank || vt__comm_in_batch(),
            "rank %d sends to itself or receives from itself outside a batch", call->peer);
  return VT_OK;
}

// Fails the batch or the capture that a refused call stands in, where no peer can be told.
static vt_status refuse_silently(vt_queue *queue, vt_status status) {
  if (vt__comm_in_batch()) {
    vt__comm_batch_fail(status);
  }
  return vt__handle_is_live(queue, &vt__queue_pool) ? vt__queue_refused(queue, status) : status;
}

// Everything that is checked before a call is routed. A refusal has been dealt with.
static vt_status admit(vt__comm_call_data *call, vt_queue *queue, const vt_comm_call *opts, vt__call_site site) {
  const char *function = vt__comm_op_function(call->op);
  VT_TRY(vt__check_usable(function));
  vt_status status = vt__check_live(call->comm, &vt__comm_pool, "communicator", function);
  if (VT_UNLIKELY(status != VT_OK)) {
    return refuse_silently(queue, status);
  }
  bool is_message = call->op == VT_COMM_OP_SEND || call->op == VT_COMM_OP_RECV;
  status = is_message ? check_peer(call) : VT_OK;
  if (VT_UNLIKELY(status != VT_OK)) {
    return refuse_silently(queue, status);
  }
  status = vt__queue_check_submit(queue, function);
  if (VT_UNLIKELY(status != VT_OK)) {
    return vt__comm_refuse(NULL, call, status);
  }
  status = take_options(call, opts);
  status = status != VT_OK ? status : check_device(call, queue);
  status = status != VT_OK ? status : check_arguments(call);
  if (VT_UNLIKELY(status != VT_OK)) {
    return vt__comm_refuse(queue, call, status);
  }
  status = call->comm->transport->query(call->comm->state);
  if (VT_UNLIKELY(status != VT_OK)) {
    return refuse_silently(queue, status);
  }
  if (vt__validate_is_on()) {
    vt__comm_validate_check(call, queue, site);
  }
  return VT_OK;
}

// Finds who serves the call, and makes the options that it gets. Where that isn't the native provider, the ranks first agree on the
// call, so that differing providers end in MISMATCH before one of them waits for the others in its own way.
static vt_status route(vt__comm_call_data *call, vt_queue *queue, vt_comm_call *out_opts, vt_fn *out_fn) {
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
    return vt__comm_refuse(queue, call, status);
  }
  *out_fn = provider->fn;
  *out_opts = (vt_comm_call){
      .struct_size = sizeof(*out_opts), .timeout_ns = call->timeout_ns, .sequence = call->sequence, .provider = provider->name};
  if (VT_UNLIKELY(!vt__comm_fn_is_native(call->op, provider->fn)) && call->peer < 0) {
    vt__comm_call_data agree = *call;
    agree.provider = provider->name;
    agree.flags |= VT__CALL_AGREE;
    return vt__comm_submit(queue, &agree);
  }
  return VT_OK;
}

// The end of a call that a provider took: its failure fails the batch. What a batch has collected is noted when that is submitted.
static vt_status routed(const vt__comm_call_data *call, vt_queue *queue, vt_status status, vt__call_site site) {
  if (vt__validate_is_on() && status == VT_OK && !vt__comm_in_batch()) {
    vt__comm_validate_note(call, queue, site);
  }
  if (VT_UNLIKELY(status < 0) && vt__comm_in_batch()) {
    vt__comm_batch_fail(status);
  }
  return status;
}

vt_status vt_comm_all_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
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
  vt_comm_call routed_opts;
  vt_fn fn = NULL;
  VT_TRY(admit(&call, queue, opts, VT__HERE));
  VT_TRY(route(&call, queue, &routed_opts, &fn));
  return routed(&call, queue, ((vt_comm_all_reduce_fn)fn)(comm, queue, send, recv, count, dtype, op, &routed_opts), VT__HERE);
}

vt_status vt_comm_all_gather(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                             const vt_comm_call *opts) {
  vt__comm_call_data call = {
      .comm = comm, .send = send, .recv = recv, .count = count, .op = VT_COMM_OP_ALL_GATHER, .dtype = dtype, .peer = -1};
  vt_comm_call routed_opts;
  vt_fn fn = NULL;
  VT_TRY(admit(&call, queue, opts, VT__HERE));
  VT_TRY(route(&call, queue, &routed_opts, &fn));
  return routed(&call, queue, ((vt_comm_all_gather_fn)fn)(comm, queue, send, recv, count, dtype, &routed_opts), VT__HERE);
}

vt_status vt_comm_send(vt_comm *comm, vt_queue *queue, const void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                       const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .send = buffer, .count = count, .op = VT_COMM_OP_SEND, .dtype = dtype, .peer = peer};
  vt_comm_call routed_opts;
  vt_fn fn = NULL;
  VT_TRY(admit(&call, queue, opts, VT__HERE));
  VT_TRY(route(&call, queue, &routed_opts, &fn));
  return routed(&call, queue, ((vt_comm_send_fn)fn)(comm, queue, buffer, count, dtype, peer, &routed_opts), VT__HERE);
}

vt_status vt_comm_recv(vt_comm *comm, vt_queue *queue, void *buffer, size_t count, vt_dtype dtype, int32_t peer,
                       const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .recv = buffer, .count = count, .op = VT_COMM_OP_RECV, .dtype = dtype, .peer = peer};
  vt_comm_call routed_opts;
  vt_fn fn = NULL;
  VT_TRY(admit(&call, queue, opts, VT__HERE));
  VT_TRY(route(&call, queue, &routed_opts, &fn));
  return routed(&call, queue, ((vt_comm_recv_fn)fn)(comm, queue, buffer, count, dtype, peer, &routed_opts), VT__HERE);
}

vt_status vt_comm_barrier(vt_comm *comm, vt_queue *queue, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .op = VT_COMM_OP_BARRIER, .peer = -1};
  vt_comm_call routed_opts;
  vt_fn fn = NULL;
  VT_TRY(admit(&call, queue, opts, VT__HERE));
  VT_TRY(route(&call, queue, &routed_opts, &fn));
  return routed(&call, queue, ((vt_comm_barrier_fn)fn)(comm, queue, &routed_opts), VT__HERE);
}
