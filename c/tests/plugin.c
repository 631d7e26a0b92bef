// plugin.c: a backend that came with a shared library. What it must be able to do is shown by the other cases of its row.
#include "vt_test.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "plugin.h"

enum { SLOT_GLOBAL = 13 };

static void the_backend_lives_in_a_library_of_its_own(vt_case *c) {
  vt_test_plugin_fn entry = vt_test_plugin_get_entry();
  void *address = NULL;
  Dl_info place = {0};
  REQUIRE_TRUE(c, entry != NULL);
  memcpy(&address, &entry, sizeof(address));
  EXPECT_TRUE(c, dladdr(address, &place) != 0);
  EXPECT_TEXT(c, vt_test_plugin_path(), place.dli_fname);
  EXPECT_TRUE(c, vt_backend_find(vt_test_device(c)) != NULL);
}

// Loaded with RTLD_LOCAL, the library's names are its own affair; it finds those of the runtime all the same.
static void a_library_loaded_locally_keeps_its_names(vt_case *c) {
  void *library = dlopen(vt_test_plugin_path(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE_TRUE(c, library != NULL);
  EXPECT_TRUE(c, dlsym(library, "vt_plugin_register") != NULL);
  EXPECT_TRUE(c, dlsym(library, "vt_toy_register") == NULL);
  EXPECT_TRUE(c, dlsym(RTLD_DEFAULT, "vt_plugin_register") == NULL);
  dlclose(library);
}

static void expect_device_works(vt_case *c, vt_device device) {
  vt_queue *queue = vt_test_queue_on(c, device);
  unsigned char *block = NULL;
  vt_event *event = NULL;
  _Atomic int32_t calls = 0;
  REQUIRE_OK(c, vt_alloc(device, 200, (void **)&block));
  EXPECT_OK(c, vt_event_create(device, 0, &event));
  EXPECT_OK(c, vt_memset(queue, block, 3, 100));
  EXPECT_OK(c, vt_copy(queue, block + 100, block, 100));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, vt_test_drop_count));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_FILLED(c, 3, block, 200);
  // acquire: partner is the increment on the thread that ran the work.
  EXPECT_EQ(c, 2, atomic_load_explicit(&calls, memory_order_acquire));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  vt_event_release(event);
  EXPECT_OK(c, vt_free(device, block));
}

static void one_library_serves_two_devices_also_loaded_for_everybody(vt_case *c) {
  if (!vt_test_plugin_is_own()) {
    SKIP_CASE(c, "a library of somebody else may serve one device only");
  }
  vt_device device = {VT_TEST_PLUGIN_DEVICE.type, SLOT_GLOBAL};
  REQUIRE_TRUE(c, dlopen(vt_test_plugin_path(), RTLD_NOW | RTLD_GLOBAL) != NULL);
  EXPECT_TRUE(c, dlsym(RTLD_DEFAULT, "vt_plugin_register") != NULL);
  EXPECT_OK(c, vt_test_plugin_get_entry()(vt_test_device(c)));  // as before: fine
  REQUIRE_OK(c, vt_test_plugin_get_entry()(device));
  expect_device_works(c, device);
  expect_device_works(c, vt_test_device(c));
}

// The program has a backend of the same source linked in: nothing of the one may stand in for the other.
static void the_librarys_backend_is_not_the_programs(vt_case *c) {
  vt_device metal = {VT_DEVICE_METAL, 0};
  REQUIRE_TRUE(c, vt_test_plugin_get_entry() != NULL);
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "metal:0", vt_test_plugin_get_entry()(metal));
  EXPECT_TRUE(c, vt_backend_find(metal) != vt_backend_find(vt_test_device(c)));
}

const vt_test_case vt_cases_plugin[] = {
    {"the_backend_lives_in_a_library_of_its_own", NEED_PLUGIN, the_backend_lives_in_a_library_of_its_own},
    {"a_library_loaded_locally_keeps_its_names", NEED_PLUGIN, a_library_loaded_locally_keeps_its_names},
    {"the_librarys_backend_is_not_the_programs", NEED_PLUGIN, the_librarys_backend_is_not_the_programs},
    {"one_library_serves_two_devices_also_loaded_for_everybody", NEED_PLUGIN,
     one_library_serves_two_devices_also_loaded_for_everybody},
    VT_TEST_END};
