// arguments.c: see arguments.h.
#include "comm/arguments.h"

#include "comm/extent.h"

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

static vt_status check_type(const vt__comm_call_data *call, const vt__comm_traits *traits) {
  const char *type = vt_dtype_get_name(call->dtype);
  VT__CHECK_CALL(call, type != NULL, "dtype %d is unknown", call->dtype);
  VT__CHECK_CALL(call, !traits->reduces || is_reducible(call->dtype), "%s can't be reduced", type);
  VT__CHECK_CALL(call, !traits->reduces || (call->reduce_op >= 0 && call->reduce_op < VT_REDUCE_COUNT), "reduce op %d is unknown",
                 call->reduce_op);
  return VT_OK;
}

static vt_status check_count(const vt__comm_call_data *call, const vt__comm_traits *traits, size_t *out_bytes) {
  size_t elements;
  size_t block;
  size_t bytes;
  size_t all;
  const char *type = vt_dtype_get_name(call->dtype);
  (void)vt_dtype_get_block(call->dtype, &elements, &block);
  VT__CHECK_CALL(call, call->count % elements == 0, "count %zu of %s is not in whole blocks of %zu", call->count, type, elements);
  VT__CHECK_CALL(call, !vt__mul_overflows(call->count / elements, block, &bytes) && bytes <= PTRDIFF_MAX,
                 "the bytes of count %zu of %s overflow", call->count, type);
  if (traits->sends_parts || traits->recvs_parts) {
    VT__CHECK_CALL(call, !vt__mul_overflows(bytes, (size_t)call->comm->world, &all) && all <= PTRDIFF_MAX,
                   "the bytes of %d times count %zu of %s overflow", call->comm->world, call->count, type);
  }
  *out_bytes = bytes;
  return VT_OK;
}

static vt_status check_counts(vt__comm_call_data *call, const vt__comm_arrays *arrays) {
  bool given = call->op == VT_COMM_OP_ALL_TO_ALLV ? arrays->send_counts != NULL && arrays->recv_counts != NULL
                                                  : arrays->send_counts != NULL || arrays->recv_counts != NULL;
  VT__CHECK_CALL(call, given, "an array of counts is NULL");
  return vt__comm_parts_make(call, arrays);
}

static vt_status check_buffers(const vt__comm_call_data *call, size_t bytes) {
  vt__comm_extent sent = vt__comm_sent(call, bytes);
  vt__comm_extent received = vt__comm_received(call, bytes);
  VT__CHECK_CALL(call, sent.bytes == 0 || call->send != NULL, "send is NULL with count %zu", call->count);
  VT__CHECK_CALL(call, received.bytes == 0 || call->recv != NULL, "recv is NULL with count %zu", call->count);
  bool in_place = sent.own == received.own && call->op != VT_COMM_OP_ALL_TO_ALLV;
  bool overlaps = vt__ranges_overlap(sent.begin, sent.bytes, received.begin, received.bytes);
  VT__CHECK_CALL(call, in_place || !overlaps, "send %p of %zu bytes and recv %p of %zu bytes overlap, and rank %d is not in place",
                 call->send, sent.bytes, call->recv, received.bytes, call->comm->rank);
  return VT_OK;
}

vt_status vt__comm_check_arguments(vt__comm_call_data *call, const vt__comm_arrays *arrays) {
  const vt__comm_traits *traits = vt__comm_traits_of(call->op);
  if (call->op == VT_COMM_OP_BARRIER) {
    return VT_OK;
  }
  if (traits->has_root) {
    VT__CHECK_CALL(call, call->peer >= 0 && call->peer < call->comm->world, "root %d is not a rank of a world of %d", call->peer,
                   call->comm->world);
  }
  VT_TRY(check_type(call, traits));
  size_t bytes = 0;
  VT_TRY(traits->has_parts ? check_counts(call, arrays) : check_count(call, traits, &bytes));
  return check_buffers(call, bytes);
}
