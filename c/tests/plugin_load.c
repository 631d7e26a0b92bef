// plugin_load.c: see plugin.h.
#include "vt_test.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugin.h"

#define OWN_FILE "vt_plugin_deferring.so"

static struct {
  int own;
  char path[PATH_MAX];
  vt_test_plugin_fn entry;
  char problem[PATH_MAX + 1024];
} plugin;

static void choose_path(void) {
  const char *named = getenv("VT_TEST_PLUGIN");
  if (named != NULL && named[0] != '\0') {
    // A name without a slash would be looked for in the folders of libraries.
    snprintf(plugin.path, sizeof(plugin.path), "%s%s", strchr(named, '/') == NULL ? "./" : "", named);
    return;
  }
  plugin.own = 1;
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - sizeof(OWN_FILE) - 1);
  program[length < 0 ? 0 : length] = '\0';
  char *slash = strrchr(program, '/');
  snprintf(plugin.path, sizeof(plugin.path), "%.*s%s", slash == NULL ? 0 : (int)(slash - program) + 1, program, OWN_FILE);
}

static const char *problem(const char *what, const char *why) {
  snprintf(plugin.problem, sizeof(plugin.problem), "%s: %s: %.900s", plugin.path, what, why);
  return plugin.problem;
}

const char *vt_test_plugin_load(void) {
  choose_path();
  void *library = dlopen(plugin.path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    return problem("can't be loaded", dlerror());
  }
  void *symbol = dlsym(library, "vt_plugin_register");
  if (symbol == NULL) {
    return problem("has no entry", "vt_plugin_register isn't exported");
  }
  memcpy(&plugin.entry, &symbol, sizeof(symbol));  // ISO C has no cast from an object to a function
  if (plugin.entry(VT_TEST_PLUGIN_DEVICE) != VT_OK) {
    return problem("doesn't register", vt_last_error()->message);
  }
  return NULL;
}

const char *vt_test_plugin_path(void) {
  return plugin.path;
}

int vt_test_plugin_is_own(void) {
  return plugin.own;
}

vt_test_plugin_fn vt_test_plugin_get_entry(void) {
  return plugin.entry;
}

uint32_t vt_test_plugin_offers(void) {
  vt_device_info info = VT_DEVICE_INFO_INIT;
  if (vt_device_get_info(VT_TEST_PLUGIN_DEVICE, &info) != VT_OK) {
    return NEED_PLUGIN;
  }
  uint32_t offers = NEED_PLUGIN;
  offers |= (info.caps & VT_CAP_ASYNC_QUEUES) != 0 ? NEED_ASYNC : NEED_SYNC;
  offers |= (info.caps & VT_CAP_GRAPH_CAPTURE) != 0 ? NEED_GRAPH : 0u;
  return offers;
}
