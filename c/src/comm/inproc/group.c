// group.c: the shared state of an in-process group, and its transport table.
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "comm/inproc/inproc.h"

static void begin(vt__comm_op *op) {
  vt__turns *turns = vt__comm_is_message(op->call.op) ? vt__message_turns(op) : &vt__inproc_rank_of(op)->turns;
  op->ticket = vt__turn_take(turns);
}

static bool step(vt__comm_op *op) {
  return vt__comm_is_message(op->call.op) ? vt__message_step(op) : vt__collective_step(op);
}

// The rank that the operation waits for. What its own rank's other threads do, and the quiet after a failure, ring none of them.
static vt__bell *bell(const vt__comm_op *op) {
  int32_t awaited = vt__comm_is_message(op->call.op) ? op->call.peer : op->cursor;
  return op->stage == VT__STAGE_TOKEN || op->stage == VT__STAGE_QUIESCE ? NULL : &vt__inproc_of(op)->ranks[awaited].bell;
}

static void forsake(vt__comm_op *op) {
  if (op->inside) {
    vt__gate_leave(op);
  }
  const vt_comm *comm = op->call.comm;
  char buffer[64] = "";
  vt__text number = vt__text_begin(buffer, sizeof(buffer));
  // Before its turn an operation has no number.
  if (op->entry != NULL) {
    vt__text_add(&number, " number %llu", (unsigned long long)op->number);
  }
  vt__inproc_poison(comm->state, VT_ERR_PEER_LOST, vt__comm_op_function(op->call.op),
                    "rank %d has gone: its thread ended inside %s%s", comm->rank, vt__comm_op_name(op->call.op), buffer);
}

static void note_recorded(vt_comm *comm, vt_comm_op op) {
  vt__inproc *group = comm->state;
  // relaxed: only for the text of a time-out.
  atomic_store_explicit(&group->ranks[comm->rank].recorded, op, memory_order_relaxed);
}

static void abort_group(vt_comm *comm, const char *reason) {
  vt__inproc_poison(comm->state, VT_ERR_ABORTED, "vt_comm_abort", "rank %d aborted the group%s%s", comm->rank,
                    reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
}

// What a split that failed has left.
static void drop_offers(vt__inproc *group) {
  for (int32_t r = 0; r < group->world; r++) {
    // relaxed: nobody else has the group.
    vt_comm *comm = atomic_load_explicit(&group->ranks[r].offered, memory_order_relaxed);
    if (comm != NULL) {
      vt__handle_unref(comm);
    }
  }
}

void vt__inproc_unref(vt__inproc *group) {
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (atomic_fetch_sub_explicit(&group->refs, 1, memory_order_acq_rel) == 1) {
    drop_offers(group);
    (void)munmap(group->memory, group->memory_bytes);
    vt__free(group);
  }
}

static void rank_gone(vt_comm *comm) {
  vt__inproc *group = comm->state;
  // release: partner is the acquire load in vt__op_blocked(): who sees the flag sees the last publication too.
  atomic_store_explicit(&group->ranks[comm->rank].gone, 1, memory_order_release);
  // release: partners are the acquire loads of the alarm.
  atomic_fetch_add_explicit(&group->alarm, VT__ALARM_GONE, memory_order_release);
  vt__inproc_ring_all(group);
  vt__inproc_unref(group);
}

static void group_gone(void *state) {
  vt__inproc_unref(state);
}

static void health(void *state, vt_comm_health *out) {
  vt__inproc *group = state;
  // acquire: partner is the release in vt__inproc_poison().
  uint32_t alarm = atomic_load_explicit(&group->alarm, memory_order_acquire);
  out->alive = group->world - (int32_t)(alarm / VT__ALARM_GONE);
  out->status = (alarm & VT__ALARM_POISONED) != 0 ? group->cause.status : VT_OK;
}

static void *create_like(void *state, int32_t world) {
  vt__inproc *group = state;
  return vt__inproc_create(world, &group->wishes, group->chunk_hook, group->chunk_user);
}

static _Atomic(vt_comm *) *offered(void *state, int32_t rank) {
  return &((vt__inproc *)state)->ranks[rank].offered;
}

const vt__transport_ops vt__inproc_transport = {
    .name = "inproc",
    .guarantees = VT_COMM_GUARANTEE_SAME_BITS | VT_COMM_GUARANTEE_WIDE_HALVES | VT_COMM_GUARANTEE_NAN_PROPAGATES |
                  VT_COMM_GUARANTEE_MISMATCH_FOUND | VT_COMM_GUARANTEE_SEND_IS_MATCHED | VT_COMM_GUARANTEE_QUIET_RETURN,
    .health = health,
    .create_like = create_like,
    .join = vt__inproc_join,
    .offered = offered,
    .begin = begin,
    .step = step,
    .bell = bell,
    .expire = vt__inproc_expire,
    .forsake = forsake,
    .note_recorded = note_recorded,
    .query = vt__inproc_query,
    .abort = abort_group,
    .describe = vt__inproc_describe,
    .rank_gone = rank_gone,
    .group_gone = group_gone,
};

// Ranks, recorders, channels and parts in one mapping, in this order. Zero is the right beginning for all of them.
static bool map_memory(vt__inproc *group) {
  size_t world = (size_t)group->world;
  size_t recorders = world * sizeof(vt__inproc_rank);
  size_t channels = recorders + (world * sizeof(vt__comm_recorder) + VT_NO_SHARING - 1) / VT_NO_SHARING * VT_NO_SHARING;
  size_t parts = channels + world * world * sizeof(vt__channel);
  group->memory_bytes = parts + 2 * world * world * sizeof(vt__algo_part);
  // Channels between ranks that never talk stay untouched, so nothing is reserved for them.
  void *memory = mmap(NULL, group->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  group->memory = memory;
  group->ranks = memory;
  group->recorders = (void *)((char *)memory + recorders);
  group->channels = (void *)((char *)memory + channels);
  group->parts = (void *)((char *)memory + parts);
  return true;
}

void *vt__inproc_create(int32_t world, const vt__algo_wishes *wishes, vt_comm_chunk_fn hook, void *user) {
  vt__inproc *group = vt__malloc_aligned(VT_NO_SHARING, sizeof(vt__inproc));
  if (group == NULL) {
    return NULL;
  }
  memset(group, 0, sizeof(*group));
  group->world = world;
  group->chunk_hook = hook;
  group->chunk_user = user;
  group->wishes = *wishes;
  // relaxed: the handle publishes the group.
  atomic_store_explicit(&group->refs, 1, memory_order_relaxed);
  if (!map_memory(group)) {
    vt__free(group);
    return NULL;
  }
  return group;
}

void vt__inproc_join(void *state, vt_comm *comm) {
  vt__inproc *group = state;
  // relaxed: the group's reference is held meanwhile.
  atomic_fetch_add_explicit(&group->refs, 1, memory_order_relaxed);
  comm->transport = &vt__inproc_transport;
  comm->state = group;
  comm->wishes = &group->wishes;
  comm->recorder = &group->recorders[comm->rank];
}
