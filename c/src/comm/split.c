// split.c: dividing a group, and its polite end. Both meet on the calling thread, as collectives of their own.
#include "base/recycle.h"
#include "comm/arguments.h"
#include "comm/transport.h"

// What a rank wants, as four elements.
typedef struct wish {
  int32_t color;
  int32_t key;
  vt_device device;
} wish;

_Static_assert(sizeof(wish) == 4 * sizeof(int32_t), "a wish is gathered as four numbers");

// Whether the ranks can meet at all.
static vt_status check(const vt__comm_call_data *call, vt__call_site site) {
  const char *function = vt__comm_traits_of(call->op)->function;
  VT_TRY(vt__check_not_capturing(site));
  VT_TRY(vt__check_live(call->comm, &vt__comm_pool, "communicator", function));
  VT_TRY(vt__comm_check_open(call->comm, function));
  if (vt__comm_in_batch()) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, function, "rank %d is inside a batch", call->comm->rank);
  }
  return VT_OK;
}

// Runs a call on this thread, which may end inside.
static vt_status meet(const vt__comm_call_data *call) {
  vt__comm_call_ref(call);
  vt_status status = vt__comm_run_one(call, NULL);
  vt__comm_call_unref(call);
  return status;
}

// The ranks of one colour.
typedef struct members {
  int32_t count;
  int32_t own;     // this rank's place among them
  int32_t *ranks;  // in the order of the new group
  vt_device *devices;
} members;

static bool comes_before(const wish *all, int32_t a, int32_t b) {
  return all[a].key < all[b].key || (all[a].key == all[b].key && a < b);
}

static void find_members(const vt_comm *comm, const wish *all, members *out) {
  out->count = 0;
  for (int32_t r = 0; r < comm->world; r++) {
    int32_t place = 0;
    for (int32_t k = 0; k < comm->world; k++) {
      place += all[k].color == all[comm->rank].color && comes_before(all, k, r);
    }
    if (all[r].color == all[comm->rank].color) {
      out->count++;
      out->ranks[place] = r;
      out->devices[place] = all[r].device;
      out->own = r == comm->rank ? place : out->own;
    }
  }
}

// The first of the members makes the group and offers each of them its communicator.
static void offer(const vt_comm *comm, const members *of) {
  void *state = comm->transport->create_like(comm->state, of->count);
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  options.devices = of->devices;
  options.timeout_ns = comm->timeout_ns;
  options.wait = comm->wait;
  vt_comm_group *group = vt__comm_group_make(comm->transport, state, of->count, &options);
  for (int32_t i = 0; group != NULL && i < of->count; i++) {
    vt__handle_ref(group->comms[i]);
    // acq_rel: partner is the exchange in take(): who gets the communicator sees it whole.
    vt_comm *old =
        atomic_exchange_explicit(comm->transport->offered(comm->state, of->ranks[i]), group->comms[i], memory_order_acq_rel);
    if (old != NULL) {
      vt__handle_unref(old);
    }
  }
  if (group != NULL) {
    vt__handle_unref(group);
  }
}

static vt_comm *take(const vt_comm *comm) {
  // acq_rel: partner is the exchange in offer().
  return atomic_exchange_explicit(comm->transport->offered(comm->state, comm->rank), NULL, memory_order_acq_rel);
}

// Between two meetings: what all ranks want is known at the first one, and behind the second one all offers are made. `all` has
// room for what find_members() needs, too.
static vt_status split(vt__comm_call_data *call, wish *all, vt_comm **out_comm) {
  vt_comm *comm = call->comm;
  int32_t color = ((const wish *)call->send)->color;
  members of = {.devices = (void *)(all + comm->world)};
  of.ranks = (void *)(of.devices + comm->world);
  call->recv = all;
  VT_TRY(meet(call));
  find_members(comm, all, &of);
  if (color != VT_COMM_SPLIT_NONE && of.own == 0) {
    offer(comm, &of);
  }
  call->count = 0;
  vt_status status = meet(call);
  vt_comm *own = take(comm);
  if (status != VT_OK && own != NULL) {
    vt__handle_unref(own);
  }
  if (status == VT_OK && color != VT_COMM_SPLIT_NONE && own == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_comm_split", "rank %d had no memory for a group of %d",
                        of.ranks[0], of.count);
  }
  *out_comm = status == VT_OK ? own : NULL;
  return status;
}

static vt_status check_split(vt__comm_call_data *call, int32_t color, const vt_comm_call *opts, vt_comm **out_comm) {
  VT__CHECK_CALL(call, out_comm != NULL, "out_comm is NULL");
  VT__CHECK_CALL(call, color >= VT_COMM_SPLIT_NONE, "color %d is negative", color);
  return vt__comm_take_options(call, opts);
}

vt_status vt_comm_split(vt_comm *comm, int32_t color, int32_t key, const vt_comm_call *opts, vt_comm **out_comm) {
  wish own = {.color = color, .key = key};
  vt__comm_call_data call = {.comm = comm, .send = &own, .count = 4, .op = VT_COMM_OP_SPLIT, .dtype = VT_DTYPE_I32, .peer = -1};
  VT_TRY(check(&call, VT__HERE));
  own.device = comm->device;
  wish *all = NULL;
  vt_status status = check_split(&call, color, opts, out_comm);
  if (status == VT_OK) {
    all = vt__recycle_get((size_t)comm->world * (sizeof(wish) + sizeof(vt_device) + sizeof(int32_t)));
    status = all != NULL ? VT_OK : vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory to split %d ranks", comm->world);
  }
  // Who can't begin tells the others.
  status = status == VT_OK ? split(&call, all, out_comm) : vt__comm_refuse(NULL, &call, status, VT__CALLER);
  vt__recycle_put(all);
  return status;
}

vt_status vt_comm_finalize(vt_comm *comm, const vt_comm_call *opts) {
  vt__comm_call_data call = {.comm = comm, .op = VT_COMM_OP_FINALIZE, .peer = -1};
  VT_TRY(check(&call, VT__HERE));
  vt_status status = vt__comm_take_options(&call, opts);
  if (status != VT_OK) {
    return vt__comm_refuse(NULL, &call, status, VT__CALLER);
  }
  VT_TRY(meet(&call));
  // relaxed: see vt__comm_check_open().
  atomic_store_explicit(&comm->finalized, 1, memory_order_relaxed);
  return VT_OK;
}
