// inject.c: counts what the library asks for, and fails the chosen request.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "faults.h"

static _Atomic uint64_t requests;
static _Atomic uint64_t chosen;  // number of the request that fails; 0: none
static _Atomic int denied;
static _Atomic int met;
static _Atomic int64_t live_blocks;
static _Atomic int64_t live_bytes;
static _Thread_local int paused;

// Before each block: how long it is, and where it really begins.
typedef struct header {
  void *base;
  size_t bytes;
} header;

void inject_arm(uint64_t nth) {
  atomic_store(&met, 0);
  atomic_store(&chosen, nth == 0 ? 0 : atomic_load(&requests) + nth);
}

void inject_deny(bool all) {
  atomic_store(&denied, all ? 1 : 0);
}

bool inject_was_met(void) {
  return atomic_load(&met) != 0;
}

uint64_t inject_requests(void) {
  return atomic_load(&requests);
}

void inject_pause(bool pause) {
  paused += pause ? 1 : -1;
}

int64_t inject_live_blocks(void) {
  return atomic_load(&live_blocks);
}

int64_t inject_live_bytes(void) {
  return atomic_load(&live_bytes);
}

// Whether this request fails.
static bool fails(void) {
  if (paused > 0) {
    return false;
  }
  uint64_t number = atomic_fetch_add(&requests, 1) + 1;
  if (number != atomic_load(&chosen) && atomic_load(&denied) == 0) {
    return false;
  }
  atomic_store(&met, 1);
  return true;
}

static void *give(void *user, size_t bytes, size_t align) {
  (void)user;
  if (fails() || bytes > SIZE_MAX / 2) {
    return NULL;
  }
  size_t before = (sizeof(header) + align - 1) / align * align;
  void *base = NULL;
  if (posix_memalign(&base, align < sizeof(void *) ? sizeof(void *) : align, before + bytes) != 0) {
    return NULL;
  }
  header *head = (header *)(void *)((char *)base + before) - 1;
  *head = (header){base, bytes};
  memset(head + 1, 0xa5, bytes);  // nobody may rely on zeros
  atomic_fetch_add(&live_blocks, 1);
  atomic_fetch_add(&live_bytes, (int64_t)bytes);
  return head + 1;
}

static void take(void *user, void *ptr) {
  (void)user;
  header *head = (header *)ptr - 1;
  atomic_fetch_sub(&live_blocks, 1);
  atomic_fetch_sub(&live_bytes, (int64_t)head->bytes);
  memset(ptr, 0xdd, head->bytes);  // who still looks at it sees this
  free(head->base);
}

void inject_allocator_set(void) {
  vt_host_allocator allocator = VT_HOST_ALLOCATOR_INIT;
  allocator.alloc = give;
  allocator.free = take;
  ASK(vt_host_allocator_set, (&allocator));
}

// The linker puts these in place of the calls in the library (--wrap).

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
  return fails() ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  return fails() ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) {
  if (fails()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void *memory = __real_mmap(at, bytes, prot, flags, fd, offset);
  if (memory != MAP_FAILED) {
    atomic_fetch_add(&live_blocks, 1);
    atomic_fetch_add(&live_bytes, (int64_t)bytes);
  }
  return memory;
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes) {
  atomic_fetch_sub(&live_blocks, 1);
  atomic_fetch_sub(&live_bytes, (int64_t)bytes);
  return __real_munmap(at, bytes);
}
