// op_reference.c: the reference tier, and providers of somebody else in the way of a call.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>

#include "comm_rig.h"
#include "toy_backend.h"

// The reference of these cases: adds `amount` to each of `count` bytes.
typedef struct add_args {
  unsigned char *bytes;
  size_t count;
  uint64_t amount;
  const char *failure;  // NULL: none
} add_args;

static vt_status add_bytes(void *args) {
  const add_args *a = args;
  for (size_t i = 0; i < a->count; i++) {
    a->bytes[i] = (unsigned char)(a->bytes[i] + a->amount);
  }
  return a->failure == NULL ? VT_OK : vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "add_bytes", "%s", a->failure);
}

static const vt_op_reference add_reference = {sizeof(vt_op_reference), add_bytes, sizeof(add_args)};

static vt_op_id op_with_reference(vt_case *c, const char *name) {
  vt_op_id op = 0;
  EXPECT_OK(c, vt_op_intern(name, &op));
  EXPECT_OK(c, vt_op_reference_register(op, &add_reference));
  return op;
}

static void the_reference_runs_in_stream_order(vt_case *c) {
  vt_op_id op = op_with_reference(c, "test.ref.order");
  vt_device_type type = vt_test_device(c).type;
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 1000);
  vt_op_stats before = VT_OP_STATS_INIT;
  vt_op_stats after = VT_OP_STATS_INIT;
  const vt_op_provider *found = NULL;
  EXPECT_OK(c, vt_op_provider_get_stats(op, type, VT_OP_REFERENCE_NAME, &before));
  for (int i = 0; i < 20; i++) {
    add_args args = {block, 1000, 3, NULL};
    EXPECT_OK(c, vt_memset(queue, block, i, 1000));
    EXPECT_OK(c, vt_op_call_reference(op, queue, &args));
    args = (add_args){NULL, 99, 99, "the arguments were copied"};
    EXPECT_OK(c, vt_copy(queue, block + 500, block, 500));
  }
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 22, block, 1000);
  EXPECT_OK(c, vt_op_provider_get_stats(op, type, VT_OP_REFERENCE_NAME, &after));
  EXPECT_EQ(c, before.selections + 20, after.selections);
  EXPECT_EQ(c, before.fallbacks + 20, after.fallbacks);
  EXPECT_TEXT(c, VT_OP_REFERENCE_NAME, vt_op_get_last_selected(op, type));
  // It is no provider.
  EXPECT_EQ(c, 0, vt_op_is_registered(op, type));
  EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get(op, type, NULL, &found));
}

static void an_error_of_the_reference_sticks_to_its_queue(vt_case *c) {
  vt_op_id op = op_with_reference(c, "test.ref.error");
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  add_args args = {block, 8, 1, "no such rope"};
  vt_status status = vt_op_call_reference(op, queue, &args);
  status = status != VT_OK ? status : vt_queue_synchronize(queue);
  EXPECT_EQ(c, VT_ERR_INTERNAL, status);
  EXPECT_MESSAGE(c, "no such rope");
}

static void bad_references_and_calls_are_refused(vt_case *c) {
  vt_op_id op = op_with_reference(c, "test.ref.bad");
  vt_queue *queue = vt_test_queue(c);
  vt_op_id without = 0;
  vt_op_reference other = add_reference;
  EXPECT_OK(c, vt_op_intern("test.ref.none", &without));
  EXPECT_OK(c, vt_op_reference_register(op, &add_reference));
  other.args_bytes = 8;
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "test.ref.bad", vt_op_reference_register(op, &other));
  other.args_bytes = VT_OP_REFERENCE_ARGS_MAX + 1;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "73", vt_op_reference_register(without, &other));
  other = (vt_op_reference){sizeof(other), NULL, 0};
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "no function", vt_op_reference_register(without, &other));
  other.struct_size = 8;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size is 8", vt_op_reference_register(without, &other));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_op_reference_register(without, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "-3", vt_op_reference_register(-3, &add_reference));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "test.ref.none", vt_op_call_reference(without, queue, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "args is NULL", vt_op_call_reference(op, queue, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "queue", vt_op_call_reference(op, NULL, NULL));
}

static void end_strict(void *unused) {
  (void)unused;
  vt_op_set_strict(0);
}

static void enable_again(void *name) {
  (void)vt_op_provider_enable(name);
}

static void the_reference_obeys_strictness_and_its_name(vt_case *c) {
  static char tier[] = VT_OP_REFERENCE_NAME;
  vt_op_id op = op_with_reference(c, "test.ref.switches");
  vt_queue *queue = vt_test_queue(c);
  add_args args = {NULL, 0, 0, NULL};
  char text[400];
  vt_test_defer(c, end_strict, NULL);
  vt_op_set_strict(1);
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "strict", vt_op_call_reference(op, queue, &args));
  vt_op_set_strict(0);
  vt_test_defer(c, enable_again, tier);
  EXPECT_OK(c, vt_op_provider_disable(tier));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "disabled", vt_op_call_reference(op, queue, &args));
  (void)vt_op_explain(op, vt_test_device(c).type, NULL, NULL, text, sizeof(text));
  EXPECT_TRUE(c, strstr(text, "\"vt-cpu-ref\", priority -1000: is disabled") != NULL);
  EXPECT_OK(c, vt_op_provider_enable(tier));
  EXPECT_OK(c, vt_op_call_reference(op, queue, &args));
  EXPECT_OK(c, vt_queue_synchronize(queue));
}

static void the_reference_is_refused_inside_a_capture(vt_case *c) {
  vt_op_id op = op_with_reference(c, "test.ref.capture");
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  add_args args = {block, 8, 1, NULL};
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "test.ref.capture", vt_op_call_reference(op, queue, &args));
  EXPECT_MESSAGE(c, VT_OP_REFERENCE_NAME);
  EXPECT_STATUS(c, VT_ERR_FAILED_PRECONDITION, vt_graph_end_capture(queue, &graph));
  EXPECT_OK(c, vt_op_call_reference(op, queue, &args));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_FILLED(c, 1, block, 8);
}

static vt_status far_info(void *self, vt_device_info *out_info) {
  (void)self;
  out_info->unified_memory = 1;  // not enough: the host must be able to dereference
  out_info->caps = VT_CAP_ASYNC_QUEUES | VT_CAP_EVENTS;
  return VT_OK;
}

static void devices_that_the_host_cant_address_have_no_reference(vt_case *c) {
  static vt_backend_ops ops;
  vt_device far = {VT_DEVICE_XPU, 9};
  vt_op_id op = op_with_reference(c, "test.ref.far");
  add_args args = {NULL, 0, 0, NULL};
  ops = *vt_toy_get_ops();
  ops.get_info = far_info;
  REQUIRE_OK(c, vt_backend_register(far, "far", &ops, vt_toy_get_self()));
  vt_queue *queue = vt_test_queue_on(c, far);
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "xpu:9", vt_op_call_reference(op, queue, &args));
  EXPECT_MESSAGE(c, "can't address");
}

typedef struct book {
  int count;
  char last[VT_ERROR_MESSAGE_MAX];
} book;

static void take_message(void *user, vt_log_level level, const char *message) {
  book *mine = user;
  mine->count += level == VT_LOG_WARN;
  snprintf(mine->last, sizeof(mine->last), "%s", message);
}

static void the_slow_path_says_so_once(vt_case *c) {
  static book notes;
  vt_op_id op = op_with_reference(c, "test.ref.said");
  vt_queue *queue = vt_test_queue(c);
  add_args args = {NULL, 0, 0, NULL};
  vt_test_log(c, take_message, &notes, VT_LOG_WARN);
  for (int i = 0; i < 3; i++) {
    EXPECT_OK(c, vt_op_call_reference(op, queue, &args));
  }
  EXPECT_EQ(c, 1, notes.count);
  EXPECT_TRUE(c, strstr(notes.last, "test.ref.said on cpu") != NULL);
}

// A provider of somebody else above the native one: it wants f32 only, and may decline inside its function.
#define ABOVE "test-above"

typedef struct above {
  vt_op_id op;
  _Atomic(vt_comm *) comm;  // whose calls it wants
  _Atomic int32_t calls;
  _Atomic int32_t declines;  // 1: its function declines
} above;
static above the_above;

static int32_t above_supports(void *user, vt_op_question *question) {
  above *mine = user;
  const vt_comm_descriptor *call = question->descriptor;
  // relaxed, here and below: set by the thread that makes the call.
  if (call == NULL || call->comm != atomic_load_explicit(&mine->comm, memory_order_relaxed)) {
    question->reason = "not our communicator";
    return 0;
  }
  question->reason = "only f32";
  return call->dtype == VT_DTYPE_F32;
}

static vt_status above_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                              vt_reduce_op op, const vt_comm_call *opts) {
  atomic_fetch_add_explicit(&the_above.calls, 1, memory_order_relaxed);
  if (atomic_load_explicit(&the_above.declines, memory_order_relaxed) == 0) {
    return vt_memset(queue, recv, 0x3f, count * sizeof(float));  // visibly not what the native one does
  }
  vt_comm_descriptor call = {sizeof(call), comm, queue, count, VT_COMM_OP_ALL_REDUCE, dtype, op, -1};
  const vt_op_provider *below = NULL;
  vt_status status = vt_op_get_below(the_above.op, VT_DEVICE_CPU, ABOVE, &call, &below);
  return status != VT_OK ? status : ((vt_comm_all_reduce_fn)below->fn)(comm, queue, send, recv, count, dtype, op, opts);
}

static void begin_above(vt_case *c, vt_comm *comm) {
  vt_op_provider provider = {sizeof(provider), ABOVE, 1000, (vt_fn)above_reduce, above_supports, &the_above};
  EXPECT_OK(c, vt_op_intern("vt.all_reduce", &the_above.op));
  vt_status status = vt_op_provider_register(the_above.op, VT_DEVICE_CPU, &provider);
  EXPECT_TRUE(c, status == VT_OK || status == VT_ERR_ALREADY_EXISTS);  // it stays for the later rows
  atomic_store_explicit(&the_above.comm, comm, memory_order_relaxed);
  atomic_store_explicit(&the_above.calls, 0, memory_order_relaxed);
  atomic_store_explicit(&the_above.declines, 0, memory_order_relaxed);
}

static void end_above(void *unused) {
  (void)unused;
  vt_op_set_strict(0);
  (void)vt_op_provider_enable(ABOVE);
  atomic_store_explicit(&the_above.comm, NULL, memory_order_relaxed);
}

// One all_reduce of a world of one. Answers how often the provider above was called.
static int32_t reduce(comm_rig *rig, vt_dtype dtype, uint32_t in, vt_status expected, uint32_t out) {
  uint32_t result = 0;
  int32_t before = atomic_load_explicit(&the_above.calls, memory_order_relaxed);
  vt_status status = vt_comm_all_reduce(rig->comms[0], rig->queues[0], &in, &result, 1, dtype, VT_REDUCE_SUM, NULL);
  EXPECT_EQ(rig->c, expected, rig_finish(rig, 0, status));
  EXPECT_EQ(rig->c, out, result);
  return atomic_load_explicit(&the_above.calls, memory_order_relaxed) - before;
}

static void a_provider_above_ours_is_called_and_declines(vt_case *c) {
  comm_rig *rig = rig_begin(c, 1, NULL);
  vt_test_defer(c, end_above, NULL);
  begin_above(c, rig->comms[0]);
  EXPECT_EQ(c, 1, reduce(rig, VT_DTYPE_F32, 7, VT_OK, 0x3f3f3f3f));
  EXPECT_EQ(c, 0, reduce(rig, VT_DTYPE_I32, 7, VT_OK, 7));  // not asked for in vain: supports() said no
  atomic_store_explicit(&the_above.declines, 1, memory_order_relaxed);
  EXPECT_EQ(c, 1, reduce(rig, VT_DTYPE_F32, 7, VT_OK, 7));
  EXPECT_OK(c, vt_op_provider_disable(ABOVE));
  EXPECT_EQ(c, 0, reduce(rig, VT_DTYPE_F32, 7, VT_OK, 7));
  EXPECT_OK(c, vt_op_provider_enable(ABOVE));
  vt_op_set_strict(1);
  EXPECT_EQ(c, 0, reduce(rig, VT_DTYPE_I32, 7, VT_ERR_UNSUPPORTED, 0));
  rig_renew_queues(rig);
  EXPECT_EQ(c, 1, reduce(rig, VT_DTYPE_F32, 7, VT_ERR_UNSUPPORTED, 0));  // it declines, and nobody may stand in
  vt_op_set_strict(0);
  rig_expect_usable(rig);
  vt_op_stats stats = VT_OP_STATS_INIT;
  EXPECT_OK(c, vt_op_provider_get_stats(the_above.op, VT_DEVICE_CPU, ABOVE, &stats));
  EXPECT_TRUE(c, stats.selections >= 3 && stats.declines >= 3);
}

// A plug-in's device with a communicator of its own: the runtime hands on what the provider of that type knows how to read.
typedef struct toy_comm {
  int32_t world;
  int32_t calls;
} toy_comm;

static int32_t toy_supports(void *user, vt_op_question *question) {
  const vt_comm_descriptor *call = question->descriptor;
  question->reason = "more than one rank";
  return user != NULL && call != NULL && ((const toy_comm *)(const void *)call->comm)->world == 1;
}

static vt_status toy_reduce(vt_comm *comm, vt_queue *queue, const void *send, void *recv, size_t count, vt_dtype dtype,
                            vt_reduce_op op, const vt_comm_call *opts) {
  (void)dtype;
  (void)op;
  (void)opts;
  ((toy_comm *)(void *)comm)->calls++;
  return vt_copy(queue, recv, send, count * 4);
}

static void a_plug_ins_provider_serves_its_device(vt_case *c) {
  static const char *const name = "toy-ring";
  static toy_comm comm = {1, 0};  // the provider stays
  vt_queue *queue = vt_test_queue(c);
  vt_op_id op = 0;
  EXPECT_OK(c, vt_op_intern("vt.all_reduce", &op));
  EXPECT_EQ(c, 0, vt_op_is_registered(op, VT_DEVICE_METAL));
  vt_op_provider provider = {sizeof(provider), name, 10, (vt_fn)toy_reduce, toy_supports, &comm};
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_METAL, &provider));
  uint32_t *blocks = vt_test_alloc(c, 8);
  EXPECT_OK(c, vt_memset(queue, blocks, 5, 4));
  vt_comm_descriptor call = {sizeof(call), (vt_comm *)(void *)&comm, queue, 1, VT_COMM_OP_ALL_REDUCE, VT_DTYPE_F32, 0, -1};
  const vt_op_provider *found = NULL;
  REQUIRE_OK(c, vt_op_get(op, VT_DEVICE_METAL, &call, &found));
  EXPECT_TEXT(c, name, found->name);
  EXPECT_OK(c, ((vt_comm_all_reduce_fn)found->fn)(call.comm, queue, blocks, blocks + 1, 1, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_EQ(c, 1, comm.calls);
  EXPECT_EQ(c, 0, blocks[1]);  // this device defers
  EXPECT_OK(c, vt_device_flush(vt_test_device(c)));
  EXPECT_EQ(c, 0x05050505, blocks[1]);
  comm.world = 2;
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "\"toy-ring\" refused: more than one rank", vt_op_get(op, VT_DEVICE_METAL, &call, &found));
}

static void the_reference_waits_for_what_a_device_defers(vt_case *c) {
  vt_op_id op = op_with_reference(c, "test.ref.deferred");
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  add_args args = {block, 8, 1, NULL};
  EXPECT_OK(c, vt_memset(queue, block, 4, 8));
  EXPECT_OK(c, vt_op_call_reference(op, queue, &args));
  EXPECT_FILLED(c, 0, block, 8);
  EXPECT_OK(c, vt_device_flush(vt_test_device(c)));
  EXPECT_FILLED(c, 5, block, 8);
}

const vt_test_case vt_cases_op_reference[] = {
    {"the_reference_runs_in_stream_order", 0, the_reference_runs_in_stream_order},
    {"an_error_of_the_reference_sticks_to_its_queue", 0, an_error_of_the_reference_sticks_to_its_queue},
    {"bad_references_and_calls_are_refused", 0, bad_references_and_calls_are_refused},
    {"the_reference_obeys_strictness_and_its_name", 0, the_reference_obeys_strictness_and_its_name},
    {"the_reference_is_refused_inside_a_capture", NEED_GRAPH | REPORTS, the_reference_is_refused_inside_a_capture},
    {"devices_that_the_host_cant_address_have_no_reference", ONCE, devices_that_the_host_cant_address_have_no_reference},
    {"the_slow_path_says_so_once", ONCE, the_slow_path_says_so_once},
    {"a_provider_above_ours_is_called_and_declines", NEED_COMM, a_provider_above_ours_is_called_and_declines},
    {"a_plug_ins_provider_serves_its_device", NEED_TOY, a_plug_ins_provider_serves_its_device},
    {"the_reference_waits_for_what_a_device_defers", NEED_TOY, the_reference_waits_for_what_a_device_defers},
    VT_TEST_END};
