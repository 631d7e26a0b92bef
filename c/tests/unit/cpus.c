// cpus.c: quotas of control groups, read from trees of files made for the purpose.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpus.h"
#include "unit.h"

#define PATH_BYTES 4096
#define NO_QUOTA UINT32_MAX
#define MOST_FILES 6

// Files by name and contents, and the processors that they allow.
typedef struct tree {
  const char *what;
  uint32_t expected;
  const char *files[MOST_FILES][2];
} tree;

static const tree trees[] = {
    {"no files at all", NO_QUOTA, {{NULL}}},
    {"version 2", 3, {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "300000 100000\n"}}},
    {"version 2 without a quota", NO_QUOTA, {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "max 100000\n"}}},
    {"a fraction is not a worker", 1, {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "199999 100000\n"}}},
    {"less than one is one", 1, {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "20000 100000\n"}}},
    {"the root of a container", 2, {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "200000 100000\n"}}},
    {"the tightest ancestor counts",
     2,
     {{"proc/self/cgroup", "0::/a/b/c\n"},
      {"sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"},
      {"sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"},
      {"sys/fs/cgroup/a/cpu.max", "400000 100000\n"}}},
    {"the host's path in a container", 5, {{"proc/self/cgroup", "0::/host/path\n"}, {"sys/fs/cgroup/cpu.max", "50000 10000\n"}}},
    {"version 1",
     4,
     {{"proc/self/cgroup", "5:memory:/m\n3:cpu,cpuacct:/a\n"},
      {"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n"},
      {"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"}}},
    {"version 1 under its short name",
     2,
     {{"proc/self/cgroup", "3:cpuacct,cpu:/a\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n"}}},
    {"version 1 without a quota",
     NO_QUOTA,
     {{"proc/self/cgroup", "3:cpu:/a\n"},
      {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
      {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    {"both versions",
     2,
     {{"proc/self/cgroup", "3:cpu:/a\n0::/b\n"},
      {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "600000\n"},
      {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"},
      {"sys/fs/cgroup/unified/b/cpu.max", "200000 100000\n"}}},
    {"other controllers' groups don't count",
     NO_QUOTA,
     {{"proc/self/cgroup", "3:cpuset:/a\n4:cpuacct:/a\n"},
      {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n"},
      {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    {"no words that can be read",
     NO_QUOTA,
     {{"proc/self/cgroup", "0::/a\nnonsense\n1:2\n"}, {"sys/fs/cgroup/a/cpu.max", "many\n"}}},
    {"a period of 0", NO_QUOTA, {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "100000 0\n"}}},
};

static void write_file(const char *root, const char *name, const char *text) {
  char path[PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s/%s", root, name);
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = 0;
    (void)mkdir(path, 0700);
    *at = '/';
  }
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void check_tree(const tree *t) {
  char root[PATH_BYTES / 2];
  char command[PATH_BYTES];
  const char *folder = getenv("TMPDIR");
  (void)snprintf(root, sizeof root, "%s/vt_unit.XXXXXX", folder != NULL ? folder : P_tmpdir);
  CHECK(mkdtemp(root) != NULL);
  for (size_t i = 0; i < MOST_FILES && t->files[i][0] != NULL; i++) {
    write_file(root, t->files[i][0], t->files[i][1]);
  }
  uint32_t cpus = vt__cgroup_cpus(root);
  if (cpus != t->expected) {
    fprintf(stderr, "%s: %u in place of %u\n", t->what, (unsigned)cpus, (unsigned)t->expected);
    unit_failures++;
  }
  (void)snprintf(command, sizeof command, "rm -r '%s'", root);
  CHECK(system(command) == 0);
}

void unit_cpus(void) {
  for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
    check_tree(&trees[i]);
  }
  CHECK(vt__cpu_count() >= 1);
  CHECK(vt__cpu_count() <= vt__cgroup_cpus(""));
}
