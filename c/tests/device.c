// device.c: naming devices, their facts, and look-ups.
#include "vt_test.h"

static void bad_devices_are_named(vt_case *c) {
  static const struct {
    vt_device device;
    vt_status status;
    const char *part;
  } bad[] = {{{-1, 0}, VT_ERR_INVALID_ARGUMENT, "type -1"},
             {{VT_DEVICE_TYPE_COUNT, 0}, VT_ERR_INVALID_ARGUMENT, "type 5"},
             {{INT32_MAX, 0}, VT_ERR_INVALID_ARGUMENT, "2147483647"},
             {{VT_DEVICE_CPU, -1}, VT_ERR_INVALID_ARGUMENT, "index -1"},
             {{VT_DEVICE_CPU, 16}, VT_ERR_INVALID_ARGUMENT, "index 16"},
             {{VT_DEVICE_CPU, 15}, VT_ERR_NOT_FOUND, "cpu:15"},
             {{VT_DEVICE_METAL, 9}, VT_ERR_NOT_FOUND, "metal:9"}};
  void *ptr = NULL;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    vt_device device = bad[i].device;
    vt_device_info info = VT_DEVICE_INFO_INIT;
    vt_memory_stats stats = VT_MEMORY_STATS_INIT;
    const vt_backend *backend = NULL;
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_device_get_info(device, &info));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_device_flush(device));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_backend_get(device, &backend));
    EXPECT_TRUE(c, vt_backend_find(device) == NULL);
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_alloc(device, 8, &ptr));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_free(device, NULL));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_pinned_alloc(device, 8, &ptr));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_pinned_free(device, NULL));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_memory_get_stats(device, VT_MEMORY_DEVICE, &stats));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_queue_create(device, NULL, (vt_queue **)&ptr));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_event_create(device, 0, (vt_event **)&ptr));
    EXPECT_FAILS(c, bad[i].status, bad[i].part, vt_arena_create(device, 64, (vt_arena **)&ptr));
  }
  EXPECT_TRUE(c, ptr == NULL);
}

static void device_types_have_names_and_counts(vt_case *c) {
  static const char *const names[] = {"cpu", "cuda", "metal", "vulkan", "xpu"};
  for (vt_device_type type = 0; type < VT_DEVICE_TYPE_COUNT; type++) {
    const char *name = vt_device_type_get_name(type);
    EXPECT_TRUE(c, name != NULL && strcmp(name, names[type]) == 0);
  }
  EXPECT_TRUE(c, vt_device_type_get_name(-1) == NULL);
  EXPECT_TRUE(c, vt_device_type_get_name(VT_DEVICE_TYPE_COUNT) == NULL);

  int32_t count = -1;
  EXPECT_OK(c, vt_device_get_count(VT_DEVICE_CPU, &count));
  EXPECT_EQ(c, 4, count);
  EXPECT_OK(c, vt_device_get_count(VT_DEVICE_METAL, &count));
  EXPECT_TRUE(c, count >= 1);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_count", vt_device_get_count(VT_DEVICE_CPU, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type 5", vt_device_get_count(5, &count));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type -3", vt_device_get_count(-3, &count));
}

static void cpu_info_tells_the_facts(vt_case *c) {
  vt_device_info info = VT_DEVICE_INFO_INIT;
  REQUIRE_OK(c, vt_device_get_info(vt_test_device(c), &info));
  EXPECT_EQ(c, sizeof(info), info.struct_size);
  EXPECT_EQ(c, 1, info.unified_memory);
  EXPECT_EQ(c, 1, info.host_addressable);
  EXPECT_EQ(c, 0, info.compute_major);
  EXPECT_EQ(c, 0, info.compute_minor);
  EXPECT_TRUE(c, (info.caps & VT_CAP_ASYNC_QUEUES) != 0);
  EXPECT_TRUE(c, (info.caps & VT_CAP_EVENTS) != 0);
  EXPECT_TRUE(c, (info.caps & VT_CAP_GRAPH_CAPTURE) != 0);
  EXPECT_TRUE(c, (info.caps & VT_CAP_AUX_QUEUE) != 0);
  EXPECT_TRUE(c, info.memory_total > 0 && info.memory_free <= info.memory_total);
  EXPECT_TRUE(c, info.name[0] != '\0' && memchr(info.name, 0, sizeof(info.name)) != NULL);
}

static void plug_in_info_is_its_own(vt_case *c) {
  vt_device_info info = VT_DEVICE_INFO_INIT;
  REQUIRE_OK(c, vt_device_get_info(vt_test_device(c), &info));
  EXPECT_EQ(c, VT_CAP_ASYNC_QUEUES | VT_CAP_EVENTS | VT_CAP_STREAM_ALLOC, info.caps);
  EXPECT_TRUE(c, strcmp(info.name, "toy device that defers") == 0);
}

// A caller of an older version knows a shorter struct; nothing behind it may be written.
static void info_fills_no_more_than_the_caller_has(vt_case *c) {
  struct {
    vt_device_info info;
    unsigned char guard[64];
  } area;
  memset(&area, 0x5a, sizeof(area));
  area.info.struct_size = offsetof(vt_device_info, caps);
  REQUIRE_OK(c, vt_device_get_info(vt_test_device(c), &area.info));
  EXPECT_EQ(c, offsetof(vt_device_info, caps), area.info.struct_size);
  EXPECT_EQ(c, 1, area.info.host_addressable);
  EXPECT_FILLED(c, 0x5a, (unsigned char *)&area + offsetof(vt_device_info, caps), sizeof(area) - offsetof(vt_device_info, caps));

  // A caller of a later version has a longer one: what is unknown here stays as it was or zero, and the call works.
  struct {
    vt_device_info info;
    uint64_t more[4];
  } longer = {.info = {.struct_size = sizeof(longer)}};
  EXPECT_OK(c, vt_device_get_info(vt_test_device(c), &longer.info));
  EXPECT_EQ(c, 0, longer.more[0]);
  EXPECT_EQ(c, 1, longer.info.host_addressable);

  vt_device_info info = {.struct_size = 0};
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 0", vt_device_get_info(vt_test_device(c), &info));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_info", vt_device_get_info(vt_test_device(c), NULL));
}

static void handles_remember_their_device(vt_case *c) {
  for (int32_t index = 0; index < 4; index++) {
    vt_device device = {VT_DEVICE_CPU, index};
    vt_queue *queue = vt_test_queue_on(c, device);
    vt_event *event;
    vt_arena *arena;
    REQUIRE_OK(c, vt_event_create(device, 0, &event));
    REQUIRE_OK(c, vt_arena_create(device, 64, &arena));
    vt_device found = {-1, -1};
    EXPECT_OK(c, vt_queue_get_device(queue, &found));
    EXPECT_TRUE(c, found.type == VT_DEVICE_CPU && found.index == index);
    EXPECT_OK(c, vt_event_get_device(event, &found));
    EXPECT_TRUE(c, found.type == VT_DEVICE_CPU && found.index == index);
    EXPECT_OK(c, vt_arena_get_device(arena, &found));
    EXPECT_TRUE(c, found.type == VT_DEVICE_CPU && found.index == index);
    vt_memory_stats stats = VT_MEMORY_STATS_INIT;
    EXPECT_OK(c, vt_memory_get_stats(device, VT_MEMORY_DEVICE, &stats));
    EXPECT_EQ(c, 1, stats.live_count);
    vt_event_release(event);
    vt_arena_release(arena);
  }
}

// A value goes from a queue of one device through another device's to a third, and each step begins when the one before has ended.
static void work_that_goes_through_several_devices_is_ordered(vt_case *c) {
  vt_device devices[3] = {{VT_DEVICE_CPU, 0}, {VT_DEVICE_CPU, 1}, {VT_DEVICE_CPU, 2}};
  vt_queue *queues[3];
  vt_event *events[3] = {NULL, NULL, NULL};
  void *blocks[3] = {NULL, NULL, NULL};
  size_t bytes = 10000;
  unsigned char *seen = vt_test_guarded_alloc(c, bytes);
  for (int i = 0; i < 3; i++) {
    queues[i] = vt_test_queue_on(c, devices[i]);
    REQUIRE_OK(c, vt_event_create(devices[i], 0, &events[i]));
    REQUIRE_OK(c, vt_alloc(devices[i], bytes, &blocks[i]));
  }
  for (int round = 1; round <= 100; round++) {
    EXPECT_OK(c, vt_queue_after_event(queues[0], events[2]));
    EXPECT_OK(c, vt_memset(queues[0], blocks[0], round, bytes));
    for (int i = 1; i < 3; i++) {
      EXPECT_OK(c, vt_event_record(events[i - 1], queues[i - 1]));
      EXPECT_OK(c, vt_queue_after_event(queues[i], events[i - 1]));
      EXPECT_OK(c, vt_copy(queues[i], blocks[i], blocks[i - 1], bytes));
    }
    EXPECT_OK(c, vt_event_record(events[2], queues[2]));
    if (round % 10 == 0) {
      EXPECT_OK(c, vt_copy(queues[2], seen, blocks[2], bytes));
      EXPECT_OK(c, vt_queue_synchronize(queues[2]));
      EXPECT_FILLED(c, round, seen, bytes);
    }
  }
  for (int i = 0; i < 3; i++) {
    vt_event_release(events[i]);
    EXPECT_OK(c, vt_free(devices[i], blocks[i]));
  }
}

const vt_test_case vt_cases_device[] = {{"bad_devices_are_named", ONCE, bad_devices_are_named},
                                        {"device_types_have_names_and_counts", ONCE, device_types_have_names_and_counts},
                                        {"cpu_info_tells_the_facts", NEED_CPU, cpu_info_tells_the_facts},
                                        {"plug_in_info_is_its_own", NEED_TOY, plug_in_info_is_its_own},
                                        {"info_fills_no_more_than_the_caller_has", 0, info_fills_no_more_than_the_caller_has},
                                        {"handles_remember_their_device", NEED_CPU | NEED_DEVICES, handles_remember_their_device},
                                        {"work_that_goes_through_several_devices_is_ordered", NEED_DEVICES | REPORTS,
                                         work_that_goes_through_several_devices_is_ordered},
                                        VT_TEST_END};
