// plugin.h: a backend in a shared library, which the row "plugin" runs on.
//
// The library of the suite lies beside the program. VT_TEST_PLUGIN=FILE names another one: so anybody's backend runs the suite. It
// exports `vt_status vt_plugin_register(vt_device device)`, which registers its backend for the device.
#ifndef VT_PLUGIN_H
#define VT_PLUGIN_H

#include <stdint.h>
#include <vllm_vt/vt.h>

typedef vt_status (*vt_test_plugin_fn)(vt_device device);

// The device of the row.
#define VT_TEST_PLUGIN_DEVICE ((vt_device){VT_DEVICE_VULKAN, 0})

// Loads the library and has it register. NULL, or what went wrong. Called once.
const char *vt_test_plugin_load(void);

// The file, and whether it is the suite's own.
const char *vt_test_plugin_path(void);
int vt_test_plugin_is_own(void);

// Its function; NULL if loading failed.
vt_test_plugin_fn vt_test_plugin_get_entry(void);

// The NEED_ bits that the device offers by what it says of itself.
uint32_t vt_test_plugin_offers(void);

#endif
