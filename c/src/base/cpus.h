// cpus.h: how many processors this process may use.
#ifndef VT_BASE_CPUS_H
#define VT_BASE_CPUS_H

#include <stdint.h>

// Threads of this process that can run at once: the affinity masks of the main and of the calling thread, and the quotas of the
// control groups. At least 1; read once.
uint32_t vt__cpu_count(void);

// Whole processors that the tightest quota of this process's control groups allows, at least 1; UINT32_MAX without a quota. Reads
// the files of versions 1 and 2 below `root` ("" is the machine's own).
uint32_t vt__cgroup_cpus(const char *root);

#endif
