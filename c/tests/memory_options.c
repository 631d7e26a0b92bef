// memory_options.c: memory for several processes, and hints that may not be followed.
#include "vt_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "toy_backend.h"

static vt_alloc_options options_of(int32_t kind, uint32_t flags, int32_t node) {
  vt_alloc_options options = VT_ALLOC_OPTIONS_INIT;
  options.kind = kind;
  options.flags = flags;
  options.numa_node = node;
  return options;
}

static vt_memory_info info_of(vt_case *c, const void *ptr) {
  vt_memory_info info = VT_MEMORY_INFO_INIT;
  EXPECT_OK(c, vt_memory_get_info(vt_test_device(c), ptr, &info));
  return info;
}

static vt_status give_back(vt_case *c, int32_t kind, void *ptr) {
  return kind == VT_MEMORY_PINNED ? vt_pinned_free(vt_test_device(c), ptr) : vt_free(vt_test_device(c), ptr);
}

// Whatever the device makes of hints: the memory is there, and the answer is one of the two.
static void hints_never_fail_an_allocation(vt_case *c) {
  static const size_t sizes[] = {0, 1, 4096, 100000, (4 << 20) + 1};
  static const int32_t nodes[] = {-1, 0, 63, 1023, 1024, INT32_MAX};
  vt_memory_stats before = VT_MEMORY_STATS_INIT;
  vt_memory_stats after = VT_MEMORY_STATS_INIT;
  for (int32_t kind = VT_MEMORY_DEVICE; kind <= VT_MEMORY_PINNED; kind++) {
    EXPECT_OK(c, vt_memory_get_stats(vt_test_device(c), kind, &before));
    for (size_t i = 0; i < 5 * 6 * 2; i++) {
      size_t bytes = sizes[i % 5];
      vt_alloc_options options = options_of(kind, i % 2 == 0 ? VT_ALLOC_HUGE_PAGES : 0u, nodes[i / 5 % 6]);
      unsigned char *block = NULL;
      REQUIRE_OK(c, vt_alloc_with(vt_test_device(c), bytes, &options, (void **)&block));
      EXPECT_EQ(c, 0, (uintptr_t)block % 64);
      memset(block, 7, bytes);
      vt_memory_info info = info_of(c, block);
      EXPECT_EQ(c, bytes, info.bytes);
      EXPECT_EQ(c, kind, info.kind);
      EXPECT_EQ(c, 0, info.flags & ~options.flags);
      EXPECT_TRUE(c, info.numa_node == -1 || info.numa_node == options.numa_node);
      EXPECT_TRUE(c, info.numa_node < 1023);
      EXPECT_OK(c, vt_memory_get_stats(vt_test_device(c), kind, &after));
      EXPECT_EQ(c, before.live_bytes + bytes, after.live_bytes);
      EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, give_back(c, 1 - kind, block));
      EXPECT_OK(c, give_back(c, kind, block));
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "freed before", give_back(c, kind, block));
    }
    EXPECT_OK(c, vt_memory_get_stats(vt_test_device(c), kind, &after));
    EXPECT_EQ(c, before.live_count, after.live_count);
  }
}

static void without_options_it_is_plain_memory(vt_case *c) {
  vt_alloc_options options = VT_ALLOC_OPTIONS_INIT;
  void *block = NULL;
  for (int way = 0; way < 2; way++) {
    REQUIRE_OK(c, vt_alloc_with(vt_test_device(c), 100, way == 0 ? NULL : &options, &block));
    vt_memory_info info = info_of(c, block);
    EXPECT_EQ(c, 0, info.flags);
    EXPECT_EQ(c, -1, info.numa_node);
    EXPECT_OK(c, vt_free(vt_test_device(c), block));
  }
  vt_queue *queue = vt_test_queue(c);
  REQUIRE_OK(c, vt_alloc_async(queue, 1000, &block));
  EXPECT_EQ(c, 1000, info_of(c, block).bytes);
  EXPECT_OK(c, vt_free_async(queue, block));
  vt_memory_info info = VT_MEMORY_INFO_INIT;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "live block", vt_memory_get_info(vt_test_device(c), block, &info));
}

static void bad_options_are_refused(vt_case *c) {
  vt_device device = vt_test_device(c);
  vt_memory_info info = VT_MEMORY_INFO_INIT;
  void *block = NULL;
  int32_t fd;
  size_t offset;
  size_t bytes;
  vt_alloc_options options = options_of(2, 0, -1);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "kind 2", vt_alloc_with(device, 8, &options, &block));
  options = options_of(0, 4, -1);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "flags 0x4", vt_alloc_with(device, 8, &options, &block));
  options = options_of(0, 0, -2);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "numa_node -2", vt_alloc_with(device, 8, &options, &block));
  options = options_of(0, 0, -1);
  options.struct_size = 4;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 4", vt_alloc_with(device, 8, &options, &block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_ptr", vt_alloc_with(device, 8, NULL, NULL));
  EXPECT_TRUE(c, block == NULL);
  unsigned char *plain = vt_test_alloc(c, 100);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_info", vt_memory_get_info(device, plain, NULL));
  info.struct_size = 8;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size 8", vt_memory_get_info(device, plain, &info));
  info = (vt_memory_info)VT_MEMORY_INFO_INIT;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "live block", vt_memory_get_info(device, plain + 1, &info));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "live block", vt_memory_get_info(device, NULL, &info));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "VT_ALLOC_SHAREABLE", vt_memory_export_fd(device, plain, &fd, &offset, &bytes));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "live block", vt_memory_export_fd(device, plain + 1, &fd, &offset, &bytes));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_fd", vt_memory_export_fd(device, plain, NULL, &offset, &bytes));
}

static void a_device_without_shareable_memory_says_so(vt_case *c) {
  vt_alloc_options options = options_of(VT_MEMORY_DEVICE, VT_ALLOC_SHAREABLE, -1);
  void *block = NULL;
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "metal:0 can't be shared", vt_alloc_with(vt_test_device(c), 8, &options, &block));
  EXPECT_TRUE(c, block == NULL);
}

static vt_status never_called(void *self, const void *ptr, int32_t *out_fd, size_t *out_offset, size_t *out_bytes) {
  (void)self, (void)ptr, (void)out_fd, (void)out_offset, (void)out_bytes;
  return VT_ERR_INTERNAL;
}

static void a_backend_has_memory_options_whole_or_not_at_all(vt_case *c) {
  vt_backend_ops ops = *vt_toy_get_ops();
  ops.export_fd = never_called;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "lacks alloc_with",
               vt_backend_register((vt_device){VT_DEVICE_METAL, 0}, "half", &ops, vt_toy_get_self()));
}

static unsigned char *shareable(vt_case *c, size_t bytes) {
  vt_alloc_options options = options_of(VT_MEMORY_DEVICE, VT_ALLOC_SHAREABLE, -1);
  void *block = NULL;
  EXPECT_OK(c, vt_alloc_with(vt_test_device(c), bytes, &options, &block));
  return block;
}

static void shareable_requests_that_do_not_fit_are_out_of_memory(vt_case *c) {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 52};
  for (size_t i = 0; i < 3; i++) {
    for (uint32_t flags = VT_ALLOC_SHAREABLE; flags <= VT_ALLOC_HUGE_PAGES; flags++) {
      vt_alloc_options options = options_of(VT_MEMORY_DEVICE, flags, 0);
      void *block = NULL;
      EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "no room for", vt_alloc_with(vt_test_device(c), sizes[i], &options, &block));
    }
  }
}

static size_t open_files(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder != NULL && readdir(folder) != NULL) {
    count++;
  }
  if (folder != NULL) {
    closedir(folder);
  }
  return count;
}

static void shareable_memory_is_reserved_sealed_and_gone_when_it_is_freed(vt_case *c) {
  size_t files = open_files();
  size_t asked = (8 << 20) + 1;
  unsigned char *block = shareable(c, asked);
  REQUIRE_TRUE(c, block != NULL);
  EXPECT_EQ(c, VT_ALLOC_SHAREABLE, info_of(c, block).flags);
  int32_t fd = -1;
  size_t offset = 1;
  size_t bytes = 0;
  REQUIRE_OK(c, vt_memory_export_fd(vt_test_device(c), block, &fd, &offset, &bytes));
  EXPECT_EQ(c, 0, offset);
  EXPECT_TRUE(c, bytes >= asked && bytes < asked + 65536 && bytes % (size_t)sysconf(_SC_PAGESIZE) == 0);
  struct stat state;
  EXPECT_EQ(c, 0, fstat(fd, &state));
  EXPECT_EQ(c, bytes, state.st_size);
  EXPECT_TRUE(c, (size_t)state.st_blocks * 512 >= asked);  // before anybody has touched it
  EXPECT_FILLED(c, 0, block, asked);
  EXPECT_EQ(c, 0, state.st_nlink);  // it has no name
  EXPECT_EQ(c, FD_CLOEXEC, fcntl(fd, F_GETFD));
  EXPECT_EQ(c, -1, ftruncate(fd, 0));
  EXPECT_EQ(c, EPERM, errno);
  // The caller's descriptor is one more holder.
  memset(block, 5, asked);
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "live block", vt_memory_export_fd(vt_test_device(c), block, &fd, &offset, &bytes));
  unsigned char *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);
  if (EXPECT_TRUE(c, mapped != MAP_FAILED)) {
    EXPECT_FILLED(c, 5, mapped, asked);
    munmap(mapped, bytes);
  }
  close(fd);
  EXPECT_EQ(c, files, open_files());
}

// What the other process does before it is killed: it writes, and waits for its end.
static void write_and_stay(int fd, size_t offset, size_t bytes, int ready) {
  unsigned char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
  if (mapped != MAP_FAILED && mapped[0] == 1) {
    memset(mapped, 2, bytes);
  }
  (void)!write(ready, "", 1);
  for (;;) {
    pause();
  }
}

static void another_process_maps_shareable_memory(vt_case *c) {
  unsigned char *block = shareable(c, 10000);
  int32_t fd = -1;
  size_t offset = 0;
  size_t bytes = 0;
  int ends[2];
  REQUIRE_OK(c, vt_memory_export_fd(vt_test_device(c), block, &fd, &offset, &bytes));
  REQUIRE_EQ(c, 0, pipe(ends));
  vt_queue *queue = vt_test_queue(c);
  EXPECT_OK(c, vt_memset(queue, block, 1, 10000));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  pid_t child = fork();
  if (child == 0) {
    write_and_stay(fd, offset, bytes, ends[1]);
  }
  char ready;
  close(ends[1]);
  EXPECT_EQ(c, 1, read(ends[0], &ready, 1));
  EXPECT_FILLED(c, 2, block, 10000);
  kill(child, SIGKILL);
  EXPECT_EQ(c, child, waitpid(child, NULL, 0));
  EXPECT_FILLED(c, 2, block, 10000);
  close(ends[0]);
  close(fd);
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
}

// Denies the calls of memory policies to this thread with an errno. 0 where the system has no filters.
static int deny_memory_policies(int error) {
#if defined(__x86_64__)
  const uint32_t arch = 0xc000003eu;
#else
  const uint32_t arch = 0xc00000b7u;
#endif
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 0, 6),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_get_mempolicy, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_move_pages, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

typedef struct denied {
  int error;
  int filtered;  // the filter is in force
} denied;

static void allocate_denied(vt_case *c, int32_t index, void *user) {
  (void)index;
  denied *d = user;
  d->filtered = deny_memory_policies(d->error);
  if (!d->filtered) {
    return;
  }
  EXPECT_EQ(c, -1, syscall(SYS_mbind, NULL, 0, 0, NULL, 0, 0));
  EXPECT_EQ(c, d->error, errno);
  for (int i = 0; i < 6; i++) {
    int32_t kind = i % 2;
    vt_alloc_options options = options_of(kind, i % 3 == 0 ? VT_ALLOC_SHAREABLE : 0u, 0);
    unsigned char *block = NULL;
    REQUIRE_OK(c, vt_alloc_with(vt_test_device(c), 100000, &options, (void **)&block));
    memset(block, 1, 100000);
    vt_memory_info info = info_of(c, block);
    EXPECT_EQ(c, -1, info.numa_node);
    EXPECT_EQ(c, options.flags, info.flags);
    EXPECT_OK(c, give_back(c, kind, block));
  }
}

static _Atomic int32_t lines;
static char line[256];

static void count_lines(void *user, vt_log_level level, const char *message) {
  (void)user;
  if (level == VT_LOG_INFO && strstr(message, "numa_node") != NULL) {
    snprintf(line, sizeof(line), "%s", message);
    // relaxed: read when the threads have ended.
    atomic_fetch_add_explicit(&lines, 1, memory_order_relaxed);
  }
}

// A filter is for good, so each is of a thread that ends.
static void a_node_that_may_not_be_asked_for_is_one_line_of_the_log(vt_case *c) {
  static const int errors[] = {EPERM, ENOSYS};
  for (int i = 0; i < 2; i++) {
    denied d = {.error = errors[i]};
    atomic_store_explicit(&lines, 0, memory_order_relaxed);  // relaxed: no thread runs
    EXPECT_OK(c, vt_log_set(count_lines, NULL, VT_LOG_INFO));
    vt_test_threads(c, 1, allocate_denied, &d);
    EXPECT_OK(c, vt_log_set(NULL, NULL, VT_LOG_OFF));
    if (!d.filtered) {
      SKIP_CASE(c, "no system call filters here (errno %d)", errno);
    }
    EXPECT_EQ(c, 1, lines);
    EXPECT_TRUE(c, strstr(line, strerror(errors[i])) != NULL);
  }
}

const vt_test_case vt_cases_memory_options[] = {
    {"hints_never_fail_an_allocation", 0, hints_never_fail_an_allocation},
    {"without_options_it_is_plain_memory", 0, without_options_it_is_plain_memory},
    {"bad_options_are_refused", 0, bad_options_are_refused},
    {"a_device_without_shareable_memory_says_so", NEED_TOY, a_device_without_shareable_memory_says_so},
    {"a_backend_has_memory_options_whole_or_not_at_all", ONCE, a_backend_has_memory_options_whole_or_not_at_all},
    {"shareable_requests_that_do_not_fit_are_out_of_memory", NEED_CPU, shareable_requests_that_do_not_fit_are_out_of_memory},
    {"shareable_memory_is_reserved_sealed_and_gone_when_it_is_freed", NEED_CPU,
     shareable_memory_is_reserved_sealed_and_gone_when_it_is_freed},
    {"another_process_maps_shareable_memory", NEED_CPU | NEED_FORK, another_process_maps_shareable_memory},
    {"a_node_that_may_not_be_asked_for_is_one_line_of_the_log", ONCE, a_node_that_may_not_be_asked_for_is_one_line_of_the_log},
    VT_TEST_END};
