// deferring.c: the backend that defers, as a shared library that knows no other program than the one that loads it.
#include "../toy_backend.h"

VT_API vt_status vt_plugin_register(vt_device device);

// The names of the runtime are left open and found in the program; so is nothing else: the backend's own names are hidden.
vt_status vt_plugin_register(vt_device device) {
  return vt_toy_register(device);
}
