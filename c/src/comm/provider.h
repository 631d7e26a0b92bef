// provider.h: the operations of communicators in the table of providers.
#ifndef VT_COMM_PROVIDER_H
#define VT_COMM_PROVIDER_H

#include <stdbool.h>

#include "vllm_vt/comm_inspect.h"
#include "vllm_vt/op.h"

// The id under which providers of an operation are registered. Known once the library is initialised.
vt_op_id vt__comm_op_id(vt_comm_op op);

// Whether `fn` is this library's own provider of the operation.
bool vt__comm_fn_is_native(vt_comm_op op, vt_fn fn);

#endif
