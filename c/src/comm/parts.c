// parts.c: see parts.h.
#include "comm/parts.h"

#include "base/recycle.h"
#include "comm/arguments.h"

void vt__comm_parts_ref(vt__comm_parts *parts) {
  // relaxed: the caller holds a reference already.
  atomic_fetch_add_explicit(&parts->refs, 1, memory_order_relaxed);
}

void vt__comm_parts_unref(vt__comm_parts *parts) {
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (atomic_fetch_sub_explicit(&parts->refs, 1, memory_order_acq_rel) == 1) {
    vt__recycle_put(parts);
  }
}

void vt__comm_parts_give_up(vt__comm_parts *parts) {
  if (parts != NULL) {
    vt__comm_this_thread.parts = parts->outer;
    vt__comm_parts_unref(parts);
  }
}

void vt__comm_parts_abandon(void) {
  while (vt__comm_this_thread.parts != NULL) {
    vt__comm_parts_give_up(vt__comm_this_thread.parts);
  }
}

// The arrays of one side of a call.
typedef struct side {
  const char *name;      // prefix of the arrays' names
  const size_t *counts;  // NULL: `same` elements for every rank, all at 0
  const size_t *displs;  // NULL: parts follow each other
  size_t same;
  size_t end;  // of the part before
} side;

// The bytes and the place of the part of rank `r`.
static vt_status take(const vt__comm_call_data *call, side *of, int32_t r, size_t *out_bytes, size_t *out_at) {
  size_t elements = 1;
  size_t block = 1;
  (void)vt_dtype_get_block(call->dtype, &elements, &block);
  const char *type = vt_dtype_get_name(call->dtype);
  size_t count = of->counts == NULL ? of->same : of->counts[r];
  size_t displ = of->displs == NULL ? 0 : of->displs[r];
  VT__CHECK_CALL(call, count % elements == 0, "%scounts[%d] %zu of %s is not in whole blocks of %zu", of->name, r, count, type,
                 elements);
  VT__CHECK_CALL(call, displ % elements == 0, "%sdispls[%d] %zu of %s is not in whole blocks of %zu", of->name, r, displ, type,
                 elements);
  size_t bytes = 0;
  size_t at = of->end;
  bool fits = !vt__mul_overflows(count / elements, block, &bytes) && bytes <= PTRDIFF_MAX;
  fits = fits && (of->displs == NULL || !vt__mul_overflows(displ / elements, block, &at));
  fits = fits && at <= PTRDIFF_MAX - bytes;
  VT__CHECK_CALL(call, fits, "the bytes up to %scounts[%d] %zu of %s overflow", of->name, r, count, type);
  of->end = of->counts == NULL ? 0 : at + bytes;
  *out_bytes = bytes;
  *out_at = at;
  return VT_OK;
}

static bool overlap(const vt__algo_part *a, const vt__algo_part *b) {
  return vt__ranges_overlap(a->recv_at, a->recv_bytes, b->recv_at, b->recv_bytes);
}

// Parts in ascending order, the usual case, need one comparison each.
static vt_status check_apart(const vt__comm_call_data *call, const vt__algo_part *of) {
  int32_t world = call->comm->world;
  bool ascending = true;
  for (int32_t r = 1; r < world; r++) {
    ascending = ascending && of[r - 1].recv_at + of[r - 1].recv_bytes <= of[r].recv_at;
  }
  for (int32_t a = 0; !ascending && a < world; a++) {
    for (int32_t b = a + 1; b < world; b++) {
      VT__CHECK_CALL(call, !overlap(&of[a], &of[b]), "the parts of ranks %d and %d overlap in recv", a, b);
    }
  }
  return VT_OK;
}

static vt_status fill(vt__comm_call_data *call, const vt__comm_arrays *arrays, vt__algo_part *of) {
  const size_t *sends = arrays->send_counts;
  const size_t *recvs = arrays->recv_counts;
  int32_t rank = call->comm->rank;
  bool both = sends != NULL && recvs != NULL;
  side send = {both ? "send_" : "", sends, arrays->send_displs, sends == NULL ? recvs[rank] : 0, 0};
  side recv = {both ? "recv_" : "", recvs, arrays->recv_displs, recvs == NULL ? sends[rank] : 0, 0};
  call->count = 0;
  for (int32_t r = 0; r < call->comm->world; r++) {
    VT_TRY(take(call, &send, r, &of[r].send_bytes, &of[r].send_at));
    VT_TRY(take(call, &recv, r, &of[r].recv_bytes, &of[r].recv_at));
    call->count += sends != NULL ? sends[r] : recvs[r];
  }
  return recvs == NULL ? VT_OK : check_apart(call, of);
}

vt_status vt__comm_parts_make(vt__comm_call_data *call, const vt__comm_arrays *arrays) {
  vt__comm_parts *parts = vt__recycle_get(sizeof(*parts) + (size_t)call->comm->world * sizeof(parts->of[0]));
  if (parts == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, vt__comm_traits_of(call->op)->function, "no memory for %d counts",
                        call->comm->world);
  }
  // relaxed: nobody else has them.
  atomic_store_explicit(&parts->refs, 1, memory_order_relaxed);
  vt_status status = fill(call, arrays, parts->of);
  if (status != VT_OK) {
    vt__recycle_put(parts);
    return status;
  }
  parts->outer = vt__comm_this_thread.parts;
  vt__comm_this_thread.parts = parts;
  call->parts = parts;
  return VT_OK;
}
