// vt.h: the whole public interface.
#ifndef VLLM_VT_VT_H
#define VLLM_VT_VT_H

#include "vllm_vt/arena.h"
#include "vllm_vt/backend.h"
#include "vllm_vt/comm.h"
#include "vllm_vt/comm_group.h"
#include "vllm_vt/comm_inspect.h"
#include "vllm_vt/comm_ops.h"
#include "vllm_vt/device.h"
#include "vllm_vt/dtype.h"
#include "vllm_vt/event.h"
#include "vllm_vt/export.h"
#include "vllm_vt/graph.h"
#include "vllm_vt/handle.h"
#include "vllm_vt/host.h"
#include "vllm_vt/host_allocator.h"
#include "vllm_vt/log.h"
#include "vllm_vt/memory.h"
#include "vllm_vt/memory_options.h"
#include "vllm_vt/op.h"
#include "vllm_vt/op_control.h"
#include "vllm_vt/op_reference.h"
#include "vllm_vt/pool.h"
#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"
#include "vllm_vt/trace.h"
#include "vllm_vt/validate.h"

#endif
