// mapping.c: memory with options: mappings of their own, shareable ones of an unnamed file in memory.
//
// The file goes with its last descriptor and mapping, so nothing is left behind by any death. Its size is sealed: no process can
// cut off pages that another one uses.
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/log.h"
#include "cpu/cpu.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define MAX_NODES 1024

typedef struct mapping {
  void *ptr;
  size_t bytes;  // whole pages
  int fd;        // -1: not shareable
  struct mapping *next;
} mapping;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mapping *mappings;

static size_t page_size(void) {
  long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? (size_t)bytes : 4096;
}

static vt_status out_of_memory(size_t bytes, int error) {
  return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_ERRNO, error, "vt_alloc_with", "no room for %zu bytes of host memory (%s)",
                      bytes, strerror(error));
}

// Says once for each reason that a hint isn't followed.
static void say_not_followed(const char *hint, size_t number, int error) {
  static _Atomic uint64_t said[2];
  uint64_t bit = UINT64_C(1) << (error & 63);
  // relaxed: only who sets the bit first speaks.
  if ((atomic_fetch_or_explicit(&said[number], bit, memory_order_relaxed) & bit) == 0) {
    vt__log(VT_LOG_INFO, "vt_alloc_with: the hint %s isn't followed here: %s", hint,
            error != 0 ? strerror(error) : "the system gives none");
  }
}

static bool bind_to_node(const mapping *map, int32_t node) {
  unsigned long mask[MAX_NODES / (8 * sizeof(unsigned long))] = {0};
  int error = EINVAL;
  if (node < MAX_NODES) {
    mask[(size_t)node / (8 * sizeof(mask[0]))] = 1ul << ((size_t)node % (8 * sizeof(mask[0])));
    // One more than the bits that count: the kernel takes one off.
    error = syscall(SYS_mbind, map->ptr, map->bytes, MPOL_PREFERRED, mask, MAX_NODES + 1, 0) == 0 ? 0 : errno;
  }
  if (error != 0) {
    say_not_followed("numa_node", 0, error);
  }
  return error == 0;
}

// Whether the system has large pages switched off for this kind of memory, of which madvise() says nothing.
static bool huge_pages_are_off(bool shared) {
  char text[128] = "";
  FILE *file =
      fopen(shared ? "/sys/kernel/mm/transparent_hugepage/shmem_enabled" : "/sys/kernel/mm/transparent_hugepage/enabled", "re");
  if (file == NULL) {
    return false;
  }
  if (fgets(text, sizeof(text), file) == NULL) {
    text[0] = 0;
  }
  (void)fclose(file);
  // Reserving a file takes no advice.
  return strstr(text, "[never]") != NULL || strstr(text, "[deny]") != NULL || (shared && strstr(text, "[advise]") != NULL);
}

static bool use_huge_pages(const mapping *map) {
  int error = madvise(map->ptr, map->bytes, MADV_HUGEPAGE) == 0 ? 0 : errno;
  bool followed = error == 0 && !huge_pages_are_off(map->fd >= 0);
  if (!followed) {
    say_not_followed("VT_ALLOC_HUGE_PAGES", 1, error);
  }
  return followed;
}

static void follow_hints(const mapping *map, vt_alloc_options *options) {
  if (options->numa_node >= 0 && !bind_to_node(map, options->numa_node)) {
    options->numa_node = -1;
  }
  if ((options->flags & VT_ALLOC_HUGE_PAGES) != 0 && !use_huge_pages(map)) {
    options->flags &= ~(uint32_t)VT_ALLOC_HUGE_PAGES;
  }
}

// An address at which large pages fit, by asking for more and giving back what is around it.
static void *map_aligned(size_t bytes) {
  size_t whole = bytes + HUGE_PAGE;
  char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return MAP_FAILED;
  }
  size_t before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
  if (before != 0) {
    (void)munmap(base, before);
  }
  (void)munmap(base + before + bytes, whole - before - bytes);
  return base + before;
}

static vt_status map_private(mapping *map, bool huge) {
  map->ptr = huge && map->bytes >= HUGE_PAGE ? map_aligned(map->bytes)
                                             : mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map->ptr == MAP_FAILED ? out_of_memory(map->bytes, errno) : VT_OK;
}

// The file is not reserved yet: that comes when the hints are known to the system.
static vt_status map_shared(mapping *map) {
  map->fd = memfd_create("vllm_vt", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (map->fd < 0) {
    int error = errno;
    return vt_error_set(error == ENOSYS || error == EPERM ? VT_ERR_UNSUPPORTED : VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_ERRNO, error,
                        "vt_alloc_with", "no file in memory can be made (%s)", strerror(error));
  }
  if (ftruncate(map->fd, (off_t)map->bytes) != 0 || fcntl(map->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
      (map->ptr = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0)) == MAP_FAILED) {
    return out_of_memory(map->bytes, errno);
  }
  return VT_OK;
}

// Every page is there before the first use: a full machine is an error here, not a signal later.
static vt_status reserve(const mapping *map) {
  int error = EINTR;
  while (error == EINTR) {
    error = fallocate(map->fd, 0, 0, (off_t)map->bytes) == 0 ? 0 : errno;
  }
  return error == 0 ? VT_OK : out_of_memory(map->bytes, error);
}

static void unmap(const mapping *map) {
  if (map->ptr != MAP_FAILED) {
    (void)munmap(map->ptr, map->bytes);
  }
  if (map->fd >= 0) {
    (void)close(map->fd);
  }
}

static vt_status make(mapping *map, vt_alloc_options *options) {
  if ((options->flags & VT_ALLOC_SHAREABLE) == 0) {
    VT_TRY(map_private(map, (options->flags & VT_ALLOC_HUGE_PAGES) != 0));
    follow_hints(map, options);
    return VT_OK;
  }
  VT_TRY(map_shared(map));
  follow_hints(map, options);
  return reserve(map);
}

// More than the machine has is refused here: the system would look for it by ending processes.
static bool fits(size_t bytes, size_t page) {
  long pages = sysconf(_SC_PHYS_PAGES);
  return pages <= 0 || bytes / page <= (size_t)pages;
}

vt_status vt__cpu_alloc_with(void *self, size_t bytes, vt_alloc_options *options, void **out_ptr) {
  (void)self;
  mapping map = {.ptr = MAP_FAILED, .fd = -1};
  size_t page = page_size();
  bool shared = (options->flags & VT_ALLOC_SHAREABLE) != 0;
  mapping *kept = vt__malloc(sizeof(*kept));
  if (kept == NULL || !vt__align_up(bytes, page, &map.bytes) || map.bytes > PTRDIFF_MAX - HUGE_PAGE ||
      (shared && !fits(map.bytes, page))) {
    vt__free(kept);
    return out_of_memory(bytes, ENOMEM);
  }
  vt_status status = make(&map, options);
  if (status != VT_OK) {
    unmap(&map);
    vt__free(kept);
    return status;
  }
  *kept = map;
  pthread_mutex_lock(&mutex);
  kept->next = mappings;
  mappings = kept;
  pthread_mutex_unlock(&mutex);
  *out_ptr = map.ptr;
  return VT_OK;
}

static mapping **find(const void *ptr) {
  mapping **link = &mappings;
  while (*link != NULL && (*link)->ptr != ptr) {
    link = &(*link)->next;
  }
  return link;
}

bool vt__cpu_mapping_free(void *ptr) {
  // Most blocks are no mappings, and seldom begin on a page.
  if ((uintptr_t)ptr % page_size() != 0) {
    return false;
  }
  pthread_mutex_lock(&mutex);
  mapping **link = find(ptr);
  mapping *map = *link;
  if (map != NULL) {
    *link = map->next;
  }
  pthread_mutex_unlock(&mutex);
  if (map == NULL) {
    return false;
  }
  unmap(map);
  vt__free(map);
  return true;
}

vt_status vt__cpu_export_fd(void *self, const void *ptr, int32_t *out_fd, size_t *out_offset, size_t *out_bytes) {
  (void)self;
  int fd = -1;
  int error = 0;
  size_t bytes = 0;
  pthread_mutex_lock(&mutex);
  const mapping *map = *find(ptr);
  if (map != NULL) {
    fd = fcntl(map->fd, F_DUPFD_CLOEXEC, 3);
    error = errno;
    bytes = map->bytes;
  }
  pthread_mutex_unlock(&mutex);
  if (fd < 0) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_ERRNO, error, "vt_memory_export_fd",
                        "the process can hold no more descriptors: %s", strerror(error));
  }
  *out_fd = fd;
  *out_offset = 0;
  *out_bytes = bytes;
  return VT_OK;
}
