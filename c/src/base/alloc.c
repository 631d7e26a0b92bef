// alloc.c: see alloc.h.
#include "base/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/thread.h"

// Who serves. It is decided once: by setting an allocator, or else by the first allocation.
enum { UNDECIDED = 0, MALLOC = 1, HOOK = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vt__allocator hook;  // written once, before HOOK is published
static _Atomic uint32_t server;

// Decides for `wanted` unless it is decided. Answers who serves.
static uint32_t decide(uint32_t wanted, const vt__allocator *allocator) {
  pthread_mutex_lock(&mutex);
  // relaxed: written under the mutex.
  uint32_t decided = atomic_load_explicit(&server, memory_order_relaxed);
  if (decided == UNDECIDED) {
    decided = wanted;
    if (allocator != NULL) {
      hook = *allocator;
    }
    // release: partner is the acquire load in is_hooked().
    atomic_store_explicit(&server, wanted, memory_order_release);
  } else if (allocator != NULL) {
    decided = UNDECIDED;  // too late for this one
  }
  pthread_mutex_unlock(&mutex);
  return decided;
}

static bool is_hooked(void) {
  // acquire: partner is the release store in decide(): the hook is complete.
  uint32_t decided = atomic_load_explicit(&server, memory_order_acquire);
  return (VT_LIKELY(decided != UNDECIDED) ? decided : decide(MALLOC, NULL)) == HOOK;
}

bool vt__allocator_set(const vt__allocator *allocator) {
  return decide(HOOK, allocator) == HOOK;
}

// The hook is a callback like any other: it may not call the runtime, which may hold locks.
static void *call_hook(size_t bytes, size_t align) {
  vt__callback_depth++;
  void *ptr = hook.alloc(hook.user, bytes, align);
  vt__callback_depth--;
  return ptr;
}

void *vt__malloc_aligned(size_t align, size_t bytes) {
  // Above PTRDIFF_MAX no object exists, and allocators may not be asked.
  if (bytes > PTRDIFF_MAX - align) {
    return NULL;
  }
  if (is_hooked()) {
    return call_hook(bytes, align);
  }
  void *ptr = NULL;
  return posix_memalign(&ptr, align, bytes) == 0 ? ptr : NULL;
}

void *vt__malloc(size_t bytes) {
  return is_hooked() ? vt__malloc_aligned(_Alignof(max_align_t), bytes) : malloc(bytes);
}

void *vt__calloc(size_t count, size_t bytes) {
  size_t whole;
  if (!is_hooked()) {
    return calloc(count, bytes);  // which knows of pages that are zero already
  }
  void *ptr = vt__mul_overflows(count, bytes, &whole) ? NULL : vt__malloc(whole);
  return ptr == NULL ? NULL : memset(ptr, 0, whole);
}

void *vt__calloc_lines(size_t bytes) {
  void *ptr = vt__malloc_aligned(VT_NO_SHARING, bytes);
  return ptr == NULL ? NULL : memset(ptr, 0, bytes);
}

void *vt__realloc(void *ptr, size_t old_count, size_t count, size_t bytes) {
  size_t whole;
  void *moved = vt__mul_overflows(count, bytes, &whole) ? NULL : vt__malloc(whole);
  if (moved == NULL) {
    return NULL;
  }
  if (ptr != NULL) {
    memcpy(moved, ptr, vt__min_size(old_count, count) * bytes);
  }
  vt__free(ptr);
  return moved;
}

void vt__free(void *ptr) {
  if (ptr == NULL) {
    return;
  }
  if (!is_hooked()) {
    free(ptr);
    return;
  }
  vt__callback_depth++;
  hook.free(hook.user, ptr);
  vt__callback_depth--;
}
