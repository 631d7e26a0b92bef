// toy_plugin.c: the toy backend as a shared library: see docs/backends.md.
//
//   cc -std=c11 -shared -fPIC -fvisibility=hidden -Ic/include c/examples/plugin/toy_plugin.c -o toy_plugin.so
#include "../toy_backend.h"

VT_API vt_status vt_plugin_register(vt_device device);

// Called by the program that loaded the library, once for each device that it is to serve.
vt_status vt_plugin_register(vt_device device) {
  static toy self;
  return vt_backend_register(device, "toy", &toy_ops, &self);
}
