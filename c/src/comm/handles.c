// handles.c: groups and communicators as handles, and what can be asked of them.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpus.h"
#include "comm/comm.h"
#include "comm/inproc/group.h"
#include "comm/transport.h"
#include "comm/wishes.h"
#include "core/log.h"

static void finalize_comm(vt__handle *handle) {
  vt_comm *comm = (vt_comm *)(void *)handle;
  comm->transport->rank_gone(comm);
  vt__handle_recycle(comm);
}

static void finalize_group(vt__handle *handle) {
  vt_comm_group *group = (vt_comm_group *)(void *)handle;
  for (int32_t r = 0; r < group->world; r++) {
    vt__handle_unref(group->comms[r]);
  }
  vt__free(group->comms);
  if (group->state != NULL) {
    group->transport->group_gone(group->state);
  }
  vt__handle_recycle(group);
}

vt__handle_pool vt__comm_pool = {
    .tag = 0x766d6d63,  // "cmmv"
    .object_size = (sizeof(vt_comm) + VT_NO_SHARING - 1) / VT_NO_SHARING * VT_NO_SHARING,
    .slab_objects = 32,
    .finalize = finalize_comm,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

vt__handle_pool vt__comm_group_pool = {
    .tag = 0x76707267,  // "grpv"
    .object_size = sizeof(vt_comm_group),
    .slab_objects = 32,
    .finalize = finalize_group,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

static vt_status take_options(const vt_comm_group_options *options, vt_comm_group_options *out) {
  *out = (vt_comm_group_options)VT_COMM_GROUP_OPTIONS_INIT;
  if (options == NULL) {
    return VT_OK;
  }
  if (options->struct_size < sizeof(size_t)) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_comm_group_create",
                        "options->struct_size is %zu, start from VT_COMM_GROUP_OPTIONS_INIT", options->struct_size);
  }
  memcpy(out, options, vt__min_size(options->struct_size, sizeof(*out)));
  if (out->timeout_ns == UINT64_MAX) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_comm_group_create",
                        "timeout_ns is infinite; no wait for another rank is without a deadline");
  }
  if (!vt__wait_mode_is_known(out->wait)) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_comm_group_create", "wait mode %d is unknown", out->wait);
  }
  return VT_OK;
}

static vt_device device_of(const vt_device *devices, int32_t rank) {
  return devices != NULL ? devices[rank] : (vt_device){.type = VT_DEVICE_CPU, .index = 0};
}

static vt_status check_devices(int32_t world, const vt_comm_group_options *options) {
  const char *function = "vt_comm_group_create";
  for (int32_t r = 0; r < (options->devices != NULL ? world : 1); r++) {
    const vt_backend *backend;
    vt_device device = device_of(options->devices, r);
    VT_TRY(vt__check_device(device, function));
    if (device.type != VT_DEVICE_CPU) {
      return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function,
                          "rank %d is on %s; an in-process group needs CPU devices", r, vt__device_name(device).text);
    }
    VT_TRY(vt__backend_lookup(device, function, &backend));
  }
  return VT_OK;
}

// Makes the communicators. What was made is undone by the release of the group.
static bool make_comms(vt_comm_group *group, int32_t world, const vt_comm_group_options *options) {
  group->comms = vt__calloc((size_t)world, sizeof(vt_comm *));
  bool crowded = (uint32_t)world > vt__cpu_count();  // asked once: the ranks choose algorithms by it
  for (int32_t r = 0; group->comms != NULL && r < world; r++) {
    vt_comm *comm = vt__handle_new(&vt__comm_pool);
    if (comm == NULL) {
      return false;
    }
    comm->rank = r;
    comm->world = world;
    comm->crowded = crowded;
    comm->device = device_of(options->devices, r);
    comm->timeout_ns = options->timeout_ns != 0 ? options->timeout_ns : VT_COMM_DEFAULT_TIMEOUT_NS;
    comm->wait = options->wait;
    // relaxed: the handle publishes it.
    atomic_store_explicit(&comm->finalized, 0, memory_order_relaxed);
    group->transport->join(group->state, comm);
    group->comms[r] = comm;
    group->world = r + 1;
  }
  return group->comms != NULL;
}

// For a batch of each rank that is being collected and one that is queued; large worlds share.
static bool reserve_blocks(int32_t world) {
  return vt__comm_blocks_reserve(vt__min_size(2 * (size_t)world, 64));
}

vt_comm_group *vt__comm_group_make(const vt__transport_ops *transport, void *state, int32_t world,
                                   const vt_comm_group_options *options) {
  vt_comm_group *group = state == NULL ? NULL : vt__handle_new(&vt__comm_group_pool);
  if (group == NULL) {
    if (state != NULL) {
      transport->group_gone(state);
    }
    return NULL;
  }
  group->transport = transport;
  group->state = state;
  group->world = 0;
  if (!make_comms(group, world, options) || !reserve_blocks(world)) {
    vt__handle_unref(group);
    return NULL;
  }
  return group;
}

static void log_wishes(const vt_comm_group *group) {
  char buffer[1024];
  vt__text text = vt__text_begin(buffer, sizeof(buffer));
  vt__wishes_describe(group->comms[0]->wishes, group->comms[0]->crowded, &text);
  vt__log(VT_LOG_INFO, "the algorithms of a group of %d ranks: %s", group->world, buffer);
}

vt_status vt_comm_group_create(int32_t world, const vt_comm_group_options *options, vt_comm_group **out_group) {
  VT_TRY(vt__check_not_capturing(VT__HERE));
  VT_CHECK_ARG(out_group != NULL, "out_group is NULL");
  VT_CHECK_ARG(world >= 1 && world <= VT_COMM_MAX_WORLD, "world %d is outside 1..%d", world, VT_COMM_MAX_WORLD);
  VT_TRY(vt__runtime_init(__func__));
  vt_comm_group_options wanted;
  VT_TRY(take_options(options, &wanted));
  VT_TRY(check_devices(world, &wanted));
  vt__algo_wishes wishes;
  const char *named = wanted.algorithms != NULL ? wanted.algorithms : getenv("VT_COMM_ALGO");
  VT_TRY(vt__wishes_read(named, &wishes));
  void *state = vt__inproc_create(world, &wishes, wanted.chunk_hook, wanted.chunk_user);
  vt_comm_group *group = vt__comm_group_make(&vt__inproc_transport, state, world, &wanted);
  if (group == NULL) {
    return vt__fail(VT_ERR_OUT_OF_MEMORY, "no memory for a group of %d ranks", world);
  }
  if (named != NULL && *named != 0) {
    log_wishes(group);
  }
  *out_group = group;
  return VT_OK;
}

static vt_status check_group(const vt_comm_group *group, const char *function) {
  return vt__check_live(group, &vt__comm_group_pool, "communicator group", function);
}

static vt_status check_comm(const vt_comm *comm, const char *function) {
  return vt__check_live(comm, &vt__comm_pool, "communicator", function);
}

vt_status vt_comm_group_retain(vt_comm_group *group) {
  return vt__retain(group, &vt__comm_group_pool, "communicator group", __func__);
}

void vt_comm_group_release(vt_comm_group *group) {
  vt__release(group, &vt__comm_group_pool, "communicator group", __func__);
}

int32_t vt_comm_group_get_world(vt_comm_group *group) {
  return check_group(group, __func__) == VT_OK ? group->world : 0;
}

vt_status vt_comm_group_get_comm(vt_comm_group *group, int32_t rank, vt_comm **out_comm) {
  VT_TRY(check_group(group, __func__));
  VT_CHECK_ARG(out_comm != NULL, "out_comm is NULL");
  VT_CHECK_ARG(rank >= 0 && rank < group->world, "rank %d is outside 0..%d", rank, group->world - 1);
  *out_comm = group->comms[rank];
  return VT_OK;
}

static bool can_describe(const vt_comm_group *group, const char *buffer, size_t capacity, const char *function) {
  if (check_group(group, function) != VT_OK) {
    return false;
  }
  if (buffer == NULL && capacity > 0) {
    (void)vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "buffer is NULL with a capacity of %zu", capacity);
    return false;
  }
  return true;
}

size_t vt_comm_group_describe(vt_comm_group *group, char *buffer, size_t capacity) {
  return can_describe(group, buffer, capacity, __func__) ? group->transport->describe(group->state, buffer, capacity) : 0;
}

size_t vt_comm_group_describe_algorithms(vt_comm_group *group, char *buffer, size_t capacity) {
  if (!can_describe(group, buffer, capacity, __func__)) {
    return 0;
  }
  vt__text text = vt__text_begin(buffer, capacity);
  vt__wishes_describe(group->comms[0]->wishes, group->comms[0]->crowded, &text);
  return text.length;
}

vt_status vt_comm_retain(vt_comm *comm) {
  return vt__retain(comm, &vt__comm_pool, "communicator", __func__);
}

void vt_comm_release(vt_comm *comm) {
  vt__release(comm, &vt__comm_pool, "communicator", __func__);
}

int32_t vt_comm_get_rank(vt_comm *comm) {
  return check_comm(comm, __func__) == VT_OK ? comm->rank : -1;
}

int32_t vt_comm_get_world(vt_comm *comm) {
  return check_comm(comm, __func__) == VT_OK ? comm->world : 0;
}

vt_status vt_comm_get_device(vt_comm *comm, vt_device *out_device) {
  VT_TRY(check_comm(comm, __func__));
  VT_CHECK_ARG(out_device != NULL, "out_device is NULL");
  *out_device = comm->device;
  return VT_OK;
}

const char *vt_comm_get_transport(vt_comm *comm) {
  return check_comm(comm, __func__) == VT_OK ? comm->transport->name : NULL;
}

vt_status vt_comm_query(vt_comm *comm) {
  VT_TRY(check_comm(comm, __func__));
  return comm->transport->query(comm->state);
}

vt_status vt_comm_abort(vt_comm *comm, const char *reason) {
  // relaxed: set by the fork handler of this very thread. A callback may abort: it does not wait for anything.
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return vt__check_usable_slow(__func__);
  }
  VT_TRY(check_comm(comm, __func__));
  comm->transport->abort(comm, reason);
  return VT_OK;
}

vt_status vt_comm_get_records(vt_comm *comm, vt_comm_record *records, size_t capacity, size_t *out_count) {
  VT_TRY(check_comm(comm, __func__));
  VT_CHECK_ARG(out_count != NULL, "out_count is NULL");
  VT_CHECK_ARG(records != NULL || capacity == 0, "records is NULL with a capacity of %zu", capacity);
  size_t count = 0;
  while (count < capacity && vt__recorder_read(comm->recorder, count, &records[count])) {
    count++;
  }
  *out_count = count;
  return VT_OK;
}

vt_status vt_comm_get_guarantees(vt_comm *comm, uint32_t *out_guarantees) {
  VT_TRY(check_comm(comm, __func__));
  VT_CHECK_ARG(out_guarantees != NULL, "out_guarantees is NULL");
  *out_guarantees = comm->transport->guarantees;
  return VT_OK;
}

vt_status vt_comm_get_health(vt_comm *comm, vt_comm_health *out_health) {
  VT_TRY(check_comm(comm, __func__));
  VT_CHECK_ARG(out_health != NULL, "out_health is NULL");
  VT_CHECK_ARG(out_health->struct_size >= offsetof(vt_comm_health, last_op), "struct_size %zu of the health is too small",
               out_health->struct_size);
  vt_comm_health health = {.struct_size = out_health->struct_size, .world = comm->world};
  vt_comm_record last;
  if (vt__recorder_read(comm->recorder, 0, &last)) {
    health.last_sequence = last.sequence;
    health.last_op = last.op;
    health.last_state = last.state;
    health.last_status = last.status;
  }
  comm->transport->health(comm->state, &health);
  memcpy(out_health, &health, vt__min_size(out_health->struct_size, sizeof(health)));
  return VT_OK;
}
