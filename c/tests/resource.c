// resource.c: a device's own way to get memory and queues.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "toy_backend.h"

static _Atomic int32_t allocs;
static _Atomic int32_t frees;
static _Atomic int32_t created;
static _Atomic int32_t destroyed;

static int32_t count_of(_Atomic int32_t *counter) {
  // acquire: partner is the increment in count_up().
  return atomic_load_explicit(counter, memory_order_acquire);
}

static void count_up(_Atomic int32_t *counter) {
  // release: partner is the load in count_of().
  atomic_fetch_add_explicit(counter, 1, memory_order_release);
}

static vt_device_resource_ops table = {.struct_size = sizeof(table)};

// The device is a second registration of the toy backend, so its queues serve the methods of that backend.
static const vt_device place = {VT_DEVICE_METAL, 1};
static void *toy_self;

static vt_status own_alloc(vt_device device, size_t bytes, void **out_ptr) {
  count_up(&allocs);
  if (device.type != place.type || device.index != place.index) {
    return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "own_alloc", "wrong device");
  }
  return vt_toy_get_ops()->alloc(NULL, bytes, out_ptr);
}

static vt_status own_free(vt_device device, void *ptr) {
  (void)device;
  count_up(&frees);
  free(ptr);
  return VT_OK;
}

static vt_status own_create_queue(vt_device device, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)device;
  count_up(&created);
  return vt_toy_get_ops()->queue_create(toy_self, options, id, out_queue);
}

static void own_destroy_queue(vt_device device, void *queue, void (*done)(void *user), void *user) {
  (void)device;
  count_up(&destroyed);
  vt_toy_get_ops()->queue_destroy(toy_self, queue, done, user);
}

static void resource_tables_come_whole_or_not_at_all(vt_case *c) {
  vt_device device = {VT_DEVICE_XPU, 3};
  vt_device_resource_ops whole = {.struct_size = sizeof(whole),
                                  .alloc = own_alloc,
                                  .free = own_free,
                                  .create_queue = own_create_queue,
                                  .destroy_queue = own_destroy_queue};
  for (int missing = 0; missing < 4; missing++) {
    vt_device_resource_ops ops = whole;
    ops.alloc = missing == 0 ? NULL : ops.alloc;
    ops.free = missing == 1 ? NULL : ops.free;
    ops.create_queue = missing == 2 ? NULL : ops.create_queue;
    ops.destroy_queue = missing == 3 ? NULL : ops.destroy_queue;
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "all four", vt_device_resource_register(device, &ops));
  }
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "ops", vt_device_resource_register(device, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "index 16", vt_device_resource_register((vt_device){VT_DEVICE_XPU, 16}, &whole));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type -1", vt_device_resource_register((vt_device){-1, 0}, &whole));
}

static void blocks_and_queues_go_back_to_the_table_that_made_them(vt_case *c) {
  toy_self = vt_toy_get_self();
  REQUIRE_OK(c, vt_toy_register(place));
  // A block from before the table was registered belongs to the backend for good.
  void *early = NULL;
  REQUIRE_OK(c, vt_alloc(place, 100, &early));
  table.alloc = own_alloc;
  table.free = own_free;
  table.create_queue = own_create_queue;
  table.destroy_queue = own_destroy_queue;
  REQUIRE_OK(c, vt_device_resource_register(place, &table));
  EXPECT_OK(c, vt_device_resource_register(place, &table));
  vt_device_resource_ops other = table;
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "metal:1", vt_device_resource_register(place, &other));

  void *late = NULL;
  EXPECT_OK(c, vt_alloc(place, 100, &late));
  EXPECT_EQ(c, 1, count_of(&allocs));
  EXPECT_OK(c, vt_free(place, early));
  EXPECT_EQ(c, 0, count_of(&frees));
  EXPECT_OK(c, vt_free(place, late));
  EXPECT_EQ(c, 1, count_of(&frees));

  vt_queue *queue = NULL;
  REQUIRE_OK(c, vt_queue_create(place, NULL, &queue));
  EXPECT_EQ(c, 1, count_of(&created));
  char from[4] = "abc";
  char to[4] = {0};
  EXPECT_OK(c, vt_copy(queue, to, from, 4));
  EXPECT_OK(c, vt_queue_destroy(queue));
  EXPECT_TEXT(c, "abc", to);
  EXPECT_EQ(c, 1, count_of(&destroyed));
  // Other devices are untouched.
  (void)vt_test_queue(c);
  EXPECT_EQ(c, 1, count_of(&created));
}

const vt_test_case vt_cases_resource[] = {
    {"resource_tables_come_whole_or_not_at_all", ONCE, resource_tables_come_whole_or_not_at_all},
    {"blocks_and_queues_go_back_to_the_table_that_made_them", ONCE, blocks_and_queues_go_back_to_the_table_that_made_them},
    VT_TEST_END};
