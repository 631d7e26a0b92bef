// toy_backend.h: a plug-in backend that defers its work, see toy_backend.c.
#ifndef VT_TOY_BACKEND_H
#define VT_TOY_BACKEND_H

#include <vllm_vt/vt.h>

// Registers the backend for `device`. Registering it again for the same device is fine.
vt_status vt_toy_register(vt_device device);

// The table itself, for cases about the registry.
const vt_backend_ops *vt_toy_get_ops(void);

// What the methods get as `self`; known after the first registration.
void *vt_toy_get_self(void);

#endif
