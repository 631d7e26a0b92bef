// recycle.c: see recycle.h.
#include "base/recycle.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/macros.h"

// Class k holds blocks of SMALLEST << k bytes. Larger ones, and what is beyond KEPT_MAX in all, go back to the allocator.
#define SMALLEST ((size_t)1024)
#define CLASSES 11
#define KEPT_MAX ((size_t)4 << 20)

// In front of each block; keeps what follows aligned for any type.
typedef struct header {
  _Alignas(max_align_t) struct header *next;
  size_t size_class;  // CLASSES: too large for one
} header;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards these two
static header *idle[CLASSES];
static size_t kept;

static size_t class_of(size_t bytes) {
  size_t size_class = 0;
  while (size_class < CLASSES && SMALLEST << size_class < bytes) {
    size_class++;
  }
  return size_class;
}

void *vt__recycle_get(size_t bytes) {
  size_t size_class = class_of(bytes);
  header *block = NULL;
  if (size_class < CLASSES) {
    bytes = SMALLEST << size_class;
    pthread_mutex_lock(&mutex);
    block = idle[size_class];
    if (block != NULL) {
      idle[size_class] = block->next;
      kept -= bytes;
    }
    pthread_mutex_unlock(&mutex);
  }
  if (block == NULL && bytes <= SIZE_MAX - sizeof(*block) && (block = vt__malloc(sizeof(*block) + bytes)) != NULL) {
    block->size_class = size_class;
  }
  return block == NULL ? NULL : block + 1;
}

void vt__recycle_put(void *ptr) {
  header *block = ptr == NULL ? NULL : (header *)ptr - 1;
  if (block != NULL && block->size_class < CLASSES) {
    size_t bytes = SMALLEST << block->size_class;
    pthread_mutex_lock(&mutex);
    if (kept + bytes <= KEPT_MAX) {
      kept += bytes;
      block->next = idle[block->size_class];
      idle[block->size_class] = block;
      block = NULL;
    }
    pthread_mutex_unlock(&mutex);
  }
  vt__free(block);
}
