// cpus.c: see cpus.h.
#include "base/cpus.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 1024

static uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// Reads the beginning of a file into `text`, terminated. False if it can't be read.
static bool read_file(const char *path, char *text, size_t capacity) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  size_t length = 0;
  while (length + 1 < capacity) {
    ssize_t got = read(fd, text + length, capacity - 1 - length);
    if (got <= 0) {
      break;
    }
    length += (size_t)got;
  }
  (void)close(fd);
  text[length] = 0;
  return length > 0;
}

// Whole processors of a quota per period; no quota where either isn't a positive number ("max", -1).
static uint32_t whole_cpus(const char *quota, const char *period) {
  long long used = strtoll(quota, NULL, 10);
  long long length = strtoll(period, NULL, 10);
  if (used <= 0 || length <= 0) {
    return UINT32_MAX;
  }
  long long cpus = used / length;
  return cpus < 1 ? 1 : cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

// The quota of one control group, whose directory is `path`: one file in version 2, two in version 1.
static uint32_t quota_of(const char *path, bool unified) {
  char name[PATH_BYTES + 32];
  char quota[64];
  char period[64];
  (void)snprintf(name, sizeof(name), "%s/%s", path, unified ? "cpu.max" : "cpu.cfs_quota_us");
  if (!read_file(name, quota, sizeof(quota))) {
    return UINT32_MAX;
  }
  if (unified) {
    const char *space = strchr(quota, ' ');
    return space != NULL ? whole_cpus(quota, space) : UINT32_MAX;
  }
  (void)snprintf(name, sizeof(name), "%s/cpu.cfs_period_us", path);
  return read_file(name, period, sizeof(period)) ? whole_cpus(quota, period) : UINT32_MAX;
}

// The tightest quota from the group `group` (an absolute path) up to the one that is mounted at `mount`. In a container the path
// may be the host's, which isn't there: then only its existing ancestors count.
static uint32_t tightest(const char *mount, const char *group, bool unified) {
  char path[PATH_BYTES];
  size_t top = strlen(mount);
  if (strcmp(group, "/") == 0) {
    group = "";
  }
  int length = snprintf(path, sizeof(path), "%s%s", mount, group);
  if (length < 0 || (size_t)length >= sizeof(path)) {
    return UINT32_MAX;
  }
  for (uint32_t cpus = UINT32_MAX;;) {
    cpus = least(cpus, quota_of(path, unified));
    char *slash = strrchr(path + top, '/');
    if (slash == NULL) {
      return cpus;
    }
    *slash = 0;
  }
}

// Whether a list "cpu,cpuacct" names the controller cpu.
static bool lists_cpu(const char *controllers) {
  for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, "cpu", 3) == 0 && (at[3] == 0 || at[3] == ',')) {
      return true;
    }
  }
  return false;
}

// One line of /proc/self/cgroup: "ID:CONTROLLERS:PATH". Version 2 is the one without controllers.
static uint32_t quota_of_line(const char *root, char *line) {
  char *controllers = strchr(line, ':');
  char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
  if (group == NULL) {
    return UINT32_MAX;
  }
  *group++ = 0;
  controllers++;
  static const char *const unified_at[] = {"", "/unified"};
  static const char *const separate_at[] = {"/cpu", "/cpu,cpuacct", "/cpuacct,cpu"};
  bool unified = *controllers == 0;
  if (!unified && !lists_cpu(controllers)) {
    return UINT32_MAX;
  }
  size_t places = unified ? sizeof(unified_at) / sizeof(*unified_at) : sizeof(separate_at) / sizeof(*separate_at);
  uint32_t cpus = UINT32_MAX;
  for (size_t i = 0; i < places; i++) {
    char mount[PATH_BYTES];
    (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup%s", root, unified ? unified_at[i] : separate_at[i]);
    cpus = least(cpus, tightest(mount, group, unified));
  }
  return cpus;
}

uint32_t vt__cgroup_cpus(const char *root) {
  char path[PATH_BYTES];
  char text[4096];
  uint32_t cpus = UINT32_MAX;
  (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
  if (!read_file(path, text, sizeof(text))) {
    return cpus;
  }
  char *rest = text;
  for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
    cpus = least(cpus, quota_of_line(root, line));
  }
  return cpus;
}

// A thread that has bound itself to one processor says little of the others, hence the main thread's mask too.
static uint32_t count_cpus(void) {
  cpu_set_t main_thread;
  cpu_set_t own;
  if (sched_getaffinity(getpid(), sizeof(main_thread), &main_thread) == 0 && sched_getaffinity(0, sizeof(own), &own) == 0) {
    CPU_OR(&own, &own, &main_thread);
    return (uint32_t)CPU_COUNT(&own);
  }
  // The mask of a machine with more processors than a cpu_set_t holds is refused.
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

uint32_t vt__cpu_count(void) {
  static _Atomic uint32_t cached;
  // relaxed: a single word; whichever thread stored it, it is a right answer.
  uint32_t count = atomic_load_explicit(&cached, memory_order_relaxed);
  if (count == 0) {
    count = least(count_cpus(), vt__cgroup_cpus(""));
    atomic_store_explicit(&cached, count, memory_order_relaxed);  // relaxed: as above
  }
  return count;
}
