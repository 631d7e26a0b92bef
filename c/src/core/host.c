// host.c: see host.h.
#include "vllm_vt/host.h"

#include "base/cpus.h"

uint32_t vt_host_concurrency(void) {
  return vt__cpu_count();
}
