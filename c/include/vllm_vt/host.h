// host.h: the machine as this process may use it.
#ifndef VLLM_VT_HOST_H
#define VLLM_VT_HOST_H

#include <stdint.h>

#include "vllm_vt/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// How many threads of this process can run at once: the processors of the affinity masks of the main and of the calling thread, or
// fewer where a control group's quota (cpu.max, or cpu.cfs_quota_us per cpu.cfs_period_us) allows fewer whole ones. So many workers
// or ranks are worth their while; with more ranks than that, the waits of communicators yield.
//
// Order    none
// Memory   none
// Units    threads, at least 1; masks and quotas are read by the first call, or by the first communicator that waits
// Threads  any
// Capture  allowed
// Errors   none
VT_API uint32_t vt_host_concurrency(void);

#ifdef __cplusplus
}
#endif

#endif
