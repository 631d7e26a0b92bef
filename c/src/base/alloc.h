// alloc.h: where the library's memory comes from. Nothing below c/src calls malloc() or free() itself (scripts/check-allocations).
#ifndef VT_BASE_ALLOC_H
#define VT_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

// What serves in place of malloc() and free(). `align` is a power of two; `ptr` is never NULL.
typedef struct vt__allocator {
  void *(*alloc)(void *user, size_t bytes, size_t align);
  void (*free)(void *user, void *ptr);
  void *user;
} vt__allocator;

// Lets `allocator` serve from now on. False once anything was allocated, or one was set: blocks must go back where they came from.
bool vt__allocator_set(const vt__allocator *allocator);

// All of these answer NULL where there is no memory.
void *vt__malloc(size_t bytes);
void *vt__malloc_aligned(size_t align, size_t bytes);  // `align` is a power of two
void *vt__calloc(size_t count, size_t bytes);
void *vt__calloc_lines(size_t bytes);  // for an object that is aligned to VT_NO_SHARING: on lines of its own

// Makes an array of `old_count` elements one of `count`. Where there is no memory the old one stays.
void *vt__realloc(void *ptr, size_t old_count, size_t count, size_t bytes);

// NULL is fine.
void vt__free(void *ptr);

#endif
