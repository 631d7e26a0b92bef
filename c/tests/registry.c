// registry.c: what a backend must bring, and who holds which place.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>

#include "toy_backend.h"

// Nothing is ever unregistered, so each case of this file uses indices of its own.
enum { SLOT_GOOD = 1, SLOT_RACE = 2, SLOT_SHORT = 3, SLOT_SYNC = 4, SLOT_REFUSED = 15 };

static vt_device slot(int32_t index) {
  return (vt_device){VT_DEVICE_VULKAN, index};
}

// Where a method's pointer lies in the table.
#define METHOD(name) \
  { #name, offsetof(vt_backend_ops, name) }

typedef struct method {
  const char *name;
  size_t offset;
} method;

static void remove_method(vt_backend_ops *ops, size_t offset) {
  vt_fn none = NULL;
  memcpy((char *)ops + offset, &none, sizeof(none));
}

static void expect_refused_without(vt_case *c, const vt_backend_ops *whole, const method *m) {
  vt_backend_ops ops = *whole;
  remove_method(&ops, m->offset);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, m->name, vt_backend_register(slot(SLOT_REFUSED), "incomplete", &ops, NULL));
  EXPECT_TRUE(c, vt_backend_find(slot(SLOT_REFUSED)) == NULL);
}

// A table that would be taken, but isn't registered: cases take parts away from it.
static vt_backend_ops toy_table(void) {
  return *vt_toy_get_ops();
}

static void each_required_method_is_missed_by_name(vt_case *c) {
  static const method required[] = {METHOD(alloc),
                                    METHOD(free),
                                    METHOD(copy),
                                    METHOD(memset),
                                    METHOD(queue_create),
                                    METHOD(queue_destroy),
                                    METHOD(get_info),
                                    METHOD(queue_synchronize),
                                    METHOD(queue_host_call),
                                    METHOD(queue_query),
                                    METHOD(queue_get_ticket),
                                    METHOD(queue_wait_ticket)};
  vt_backend_ops whole = toy_table();
  for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
    expect_refused_without(c, &whole, &required[i]);
  }
}

// An asynchronous backend that leaves out events or pinned memory gets no defaults that lie.
static void asynchronous_backends_must_bring_events_and_pinned_memory(vt_case *c) {
  static const method needed[] = {METHOD(pinned_alloc), METHOD(pinned_free), METHOD(event_create), METHOD(event_destroy),
                                  METHOD(event_record), METHOD(event_query), METHOD(event_wait),   METHOD(queue_after_event)};
  vt_backend_ops whole = toy_table();
  for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
    expect_refused_without(c, &whole, &needed[i]);
  }
  vt_backend_ops without_events = whole;
  for (size_t i = 2; i < sizeof(needed) / sizeof(needed[0]); i++) {
    remove_method(&without_events, needed[i].offset);
  }
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "event_create",
               vt_backend_register(slot(SLOT_REFUSED), "no-events", &without_events, NULL));
}

static vt_status never_captures(void *self, void *queue) {
  (void)self;
  (void)queue;
  return vt_error_set(VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, "capture_begin", "never called");
}

static void half_a_group_of_graph_methods_is_refused(vt_case *c) {
  vt_backend_ops ops = toy_table();
  ops.capture_begin = never_captures;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "capture_end", vt_backend_register(slot(SLOT_REFUSED), "half", &ops, NULL));
  ops.capture_begin = NULL;
  ops.capture_abort = never_captures;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "capture_begin", vt_backend_register(slot(SLOT_REFUSED), "half", &ops, NULL));
  EXPECT_TRUE(c, vt_backend_find(slot(SLOT_REFUSED)) == NULL);
}

static vt_status fail_silently(void *self, vt_device_info *out_info) {
  (void)self;
  (void)out_info;
  return VT_ERR_INTERNAL;
}

static void a_device_that_can_not_tell_its_facts_is_not_registered(vt_case *c) {
  vt_backend_ops ops = toy_table();
  ops.get_info = fail_silently;
  EXPECT_FAILS(c, VT_ERR_INTERNAL, "backend 'mute' failed in get_info with INTERNAL",
               vt_backend_register(slot(SLOT_REFUSED), "mute", &ops, NULL));
  EXPECT_TRUE(c, vt_backend_find(slot(SLOT_REFUSED)) == NULL);
}

static void another_abi_major_or_a_bad_call_is_refused(vt_case *c) {
  vt_backend_ops ops = toy_table();
  vt_device place = slot(SLOT_REFUSED);
  ops.abi_minor = 0;
  ops.abi_major = VT_BACKEND_ABI_MAJOR + 1;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "backend ABI 2.", vt_backend_register(place, "future", &ops, NULL));
  ops.abi_major = 0;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "backend ABI 0.", vt_backend_register(place, "past", &ops, NULL));
  ops = toy_table();
  ops.struct_size = 4;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 4", vt_backend_register(place, "tiny", &ops, NULL));
  ops.struct_size = offsetof(vt_backend_ops, flush) + 3;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "inside a method", vt_backend_register(place, "cut", &ops, NULL));
  ops = toy_table();
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_backend_register(place, NULL, &ops, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_backend_register(place, "", &ops, NULL));
  char name[65];
  memset(name, 'n', 64);
  name[64] = '\0';
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "64", vt_backend_register(place, name, &ops, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "ops", vt_backend_register(place, "none", NULL, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type 5", vt_backend_register((vt_device){5, 0}, "n", &ops, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "index -1", vt_backend_register((vt_device){VT_DEVICE_XPU, -1}, "n", &ops, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "index 16", vt_backend_register((vt_device){VT_DEVICE_XPU, 16}, "n", &ops, NULL));
  EXPECT_TRUE(c, vt_backend_find(place) == NULL);
}

static void an_occupied_place_stays_with_its_holder(vt_case *c) {
  static vt_backend_ops mine;
  mine = toy_table();
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "cpu:0", vt_backend_register((vt_device){VT_DEVICE_CPU, 0}, "usurper", &mine, NULL));
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "toy", vt_backend_register((vt_device){VT_DEVICE_METAL, 0}, "usurper", &mine, NULL));
  EXPECT_OK(c, vt_toy_register((vt_device){VT_DEVICE_METAL, 0}));
  EXPECT_OK(c, vt_toy_register((vt_device){VT_DEVICE_METAL, 0}));
  const vt_backend *backend = NULL;
  EXPECT_OK(c, vt_backend_get((vt_device){VT_DEVICE_METAL, 0}, &backend));
  EXPECT_TEXT(c, "toy", vt_backend_get_name(backend));
  EXPECT_TEXT(c, NULL, vt_backend_get_name(NULL));
}

static void look_ups_never_fall_back_to_index_0(vt_case *c) {
  const vt_backend *backend = NULL;
  EXPECT_OK(c, vt_backend_get_default(VT_DEVICE_CPU, &backend));
  EXPECT_TRUE(c, backend == vt_backend_find((vt_device){VT_DEVICE_CPU, 0}));
  EXPECT_TRUE(c, backend == vt_backend_find_default(VT_DEVICE_CPU));
  EXPECT_TRUE(c, vt_backend_find((vt_device){VT_DEVICE_CPU, 1}) != backend);
  EXPECT_TRUE(c, vt_backend_find((vt_device){VT_DEVICE_CPU, 4}) == NULL);
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "cpu:4", vt_backend_get((vt_device){VT_DEVICE_CPU, 4}, &backend));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "xpu:0", vt_backend_get_default(VT_DEVICE_XPU, &backend));
  EXPECT_TRUE(c, vt_backend_find_default(VT_DEVICE_XPU) == NULL);
  EXPECT_TRUE(c, vt_backend_find_default(99) == NULL);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type 99", vt_backend_get_default(99, &backend));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_backend", vt_backend_get_default(VT_DEVICE_CPU, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_backend", vt_backend_get((vt_device){VT_DEVICE_CPU, 0}, NULL));
}

static void a_look_up_that_fails_says_what_there_is(vt_case *c) {
  const vt_backend *backend = NULL;
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "for cuda:0; there are cpu:0 'cpu', cpu:1", vt_backend_get_default(VT_DEVICE_CUDA, &backend));
  EXPECT_MESSAGE(c, "metal:0 'toy'");
}

static _Atomic int32_t race_winners;
static vt_backend_ops race_tables[8];

static void race(vt_case *c, int32_t index, void *unused) {
  (void)unused;
  char name[16];
  snprintf(name, sizeof(name), "racer-%d", (int)index);
  vt_status status = vt_backend_register(slot(SLOT_RACE), name, &race_tables[index], NULL);
  if (status == VT_OK) {
    // relaxed: read after the threads were joined.
    atomic_fetch_add_explicit(&race_winners, 1, memory_order_relaxed);
  } else {
    EXPECT_EQ(c, VT_ERR_ALREADY_EXISTS, status);
  }
  EXPECT_TRUE(c, vt_backend_find(slot(SLOT_RACE)) != NULL);
}

static void one_of_many_registering_threads_wins(vt_case *c) {
  if (vt_backend_find(slot(SLOT_RACE)) != NULL) {
    SKIP_CASE(c, "the place was taken by an earlier run of this case");
  }
  for (size_t i = 0; i < 8; i++) {
    race_tables[i] = toy_table();
  }
  vt_test_threads(c, 8, race, NULL);
  // relaxed: the threads were joined.
  EXPECT_EQ(c, 1, atomic_load_explicit(&race_winners, memory_order_relaxed));
}

// A table of an earlier minor version is shorter: what it lacks counts as left out. One of a later version is longer.
static void tables_of_other_minor_versions_load(vt_case *c) {
  static vt_backend_ops shorter;
  static struct {
    vt_backend_ops ops;
    void *later[3];
  } longer;
  shorter = toy_table();
  shorter.struct_size = offsetof(vt_backend_ops, flush);
  EXPECT_OK(c, vt_backend_register(slot(SLOT_SHORT), "shorter", &shorter, NULL));
  EXPECT_OK(c, vt_device_flush(slot(SLOT_SHORT)));  // the default: nothing; the table's own one would use the NULL self
  longer.ops = toy_table();
  longer.ops.struct_size = sizeof(longer);
  longer.ops.abi_minor = VT_BACKEND_ABI_MINOR + 1;
  EXPECT_OK(c, vt_backend_register(slot(SLOT_GOOD), "longer", &longer.ops, NULL));
}

static void methods_left_out_answer_unsupported(vt_case *c) {
  vt_event *event = NULL;
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "toy", vt_event_create(vt_test_device(c), VT_EVENT_TIMING, &event));
  EXPECT_TRUE(c, event == NULL);
  vt_queue *queue = vt_test_queue(c);
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "toy", vt_graph_begin_capture(queue));
  EXPECT_EQ(c, 0, vt_queue_is_capturing(queue));
  EXPECT_TRUE(c, vt_event_get_native(vt_test_event(c, 0)) == NULL);
}

// A synchronous plug-in may leave out events: the runtime's own ones are complete once recorded, which is the truth there.

static vt_status sync_copy(void *self, void *queue, void *dst, const void *src, size_t bytes) {
  (void)self;
  (void)queue;
  memcpy(dst, src, bytes);
  return VT_OK;
}

static vt_status sync_memset(void *self, void *queue, void *ptr, uint8_t value, size_t bytes) {
  (void)self;
  (void)queue;
  memset(ptr, value, bytes);
  return VT_OK;
}

static vt_status sync_queue_create(void *self, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)options;
  (void)id;
  *out_queue = self;
  return VT_OK;
}

static void sync_queue_destroy(void *self, void *queue, void (*done)(void *user), void *user) {
  (void)self;
  (void)queue;
  done(user);
}

static vt_status sync_done(void *self, void *queue) {
  (void)self;
  (void)queue;
  return VT_OK;
}

static vt_status sync_get_ticket(void *self, void *queue, uint64_t *out_ticket) {
  (void)self;
  (void)queue;
  *out_ticket = 1;
  return VT_OK;
}

static vt_status sync_wait_ticket(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns) {
  (void)self;
  (void)queue;
  (void)ticket;
  (void)timeout_ns;
  return VT_OK;
}

static vt_status sync_host_call(void *self, void *queue, const vt_host_call *call) {
  (void)self;
  (void)queue;
  vt_host_call copy = *call;
  vt_status status = copy.run(copy.payload);
  if (copy.drop != NULL) {
    copy.drop(copy.payload);
  }
  return status;
}

static vt_status sync_get_info(void *self, vt_device_info *out_info) {
  (void)self;
  strcpy(out_info->name, "plain synchronous device");
  return VT_OK;
}

static void a_synchronous_plug_in_may_leave_out_events(vt_case *c) {
  static vt_backend_ops ops;
  static int self;
  ops = toy_table();
  ops = (vt_backend_ops){.struct_size = sizeof(ops),
                         .abi_major = VT_BACKEND_ABI_MAJOR,
                         .alloc = ops.alloc,
                         .free = ops.free,
                         .copy = sync_copy,
                         .memset = sync_memset,
                         .queue_create = sync_queue_create,
                         .queue_destroy = sync_queue_destroy,
                         .queue_synchronize = sync_done,
                         .queue_query = sync_done,
                         .queue_get_ticket = sync_get_ticket,
                         .queue_wait_ticket = sync_wait_ticket,
                         .queue_host_call = sync_host_call,
                         .get_info = sync_get_info};
  vt_device device = slot(SLOT_SYNC);
  REQUIRE_OK(c, vt_backend_register(device, "plain", &ops, &self));
  vt_queue *queue = vt_test_queue_on(c, device);
  EXPECT_EQ(c, 1, vt_queue_is_synchronous(queue));
  vt_event *event;
  REQUIRE_OK(c, vt_event_create(device, 0, &event));
  char from[8] = "abcdefg";
  char to[8] = {0};
  EXPECT_OK(c, vt_copy(queue, to, from, 8));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_event_query(event));
  EXPECT_OK(c, vt_event_wait(event, 1000));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_OK(c, vt_queue_after_event(queue, event));
  EXPECT_TEXT(c, "abcdefg", to);
  _Atomic int32_t calls = 0;
  _Atomic int32_t drops = 0;
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &drops, vt_test_drop_count));
  // relaxed: the same thread.
  EXPECT_EQ(c, 1, atomic_load_explicit(&calls, memory_order_relaxed));
  EXPECT_EQ(c, 2, atomic_load_explicit(&drops, memory_order_relaxed));
  void *ptr = NULL;
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "plain", vt_pinned_alloc(device, 8, &ptr));
  vt_event_release(event);
}

const vt_test_case vt_cases_registry[] = {
    {"each_required_method_is_missed_by_name", ONCE, each_required_method_is_missed_by_name},
    {"asynchronous_backends_must_bring_events_and_pinned_memory", ONCE, asynchronous_backends_must_bring_events_and_pinned_memory},
    {"half_a_group_of_graph_methods_is_refused", ONCE, half_a_group_of_graph_methods_is_refused},
    {"a_device_that_can_not_tell_its_facts_is_not_registered", ONCE, a_device_that_can_not_tell_its_facts_is_not_registered},
    {"another_abi_major_or_a_bad_call_is_refused", ONCE, another_abi_major_or_a_bad_call_is_refused},
    {"an_occupied_place_stays_with_its_holder", ONCE, an_occupied_place_stays_with_its_holder},
    {"look_ups_never_fall_back_to_index_0", ONCE, look_ups_never_fall_back_to_index_0},
    {"a_look_up_that_fails_says_what_there_is", ONCE, a_look_up_that_fails_says_what_there_is},
    {"one_of_many_registering_threads_wins", ONCE, one_of_many_registering_threads_wins},
    {"tables_of_other_minor_versions_load", ONCE, tables_of_other_minor_versions_load},
    {"a_synchronous_plug_in_may_leave_out_events", ONCE, a_synchronous_plug_in_may_leave_out_events},
    {"methods_left_out_answer_unsupported", NEED_TOY, methods_left_out_answer_unsupported},
    VT_TEST_END};
