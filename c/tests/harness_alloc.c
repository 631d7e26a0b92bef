// harness_alloc.c: the host allocator that every row runs on. It counts, checks what it is asked for, and lets a case step in.
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic int64_t live;
static _Atomic int64_t calls;
static _Thread_local vt_test_alloc_fn step_in;
static _Thread_local void *step_in_arg;

static void *count_alloc(void *user, size_t bytes, size_t align) {
  if (user != &live || bytes == 0 || align == 0 || (align & (align - 1)) != 0) {
    fprintf(stderr, "the library asked for %zu bytes aligned to %zu\n", bytes, align);
    abort();
  }
  // relaxed, here and below: read where the threads that allocate are known to have done so.
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  if (step_in != NULL && !step_in(step_in_arg)) {
    return NULL;
  }
  void *ptr = NULL;
  if (posix_memalign(&ptr, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0) {
    return NULL;
  }
  atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return ptr;
}

static void count_free(void *user, void *ptr) {
  if (user != &live || ptr == NULL) {
    fprintf(stderr, "the library gave back %p\n", ptr);
    abort();
  }
  atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  free(ptr);
}

vt_status vt_test_alloc_begin(void) {
  vt_host_allocator allocator = {sizeof(allocator), count_alloc, count_free, &live};
  return vt_host_allocator_set(&allocator);
}

int64_t vt_test_alloc_live(void) {
  return atomic_load_explicit(&live, memory_order_relaxed);
}

int64_t vt_test_alloc_calls(void) {
  return atomic_load_explicit(&calls, memory_order_relaxed);
}

void vt_test_alloc_step_in(vt_test_alloc_fn fn, void *arg) {
  step_in = fn;
  step_in_arg = arg;
}
