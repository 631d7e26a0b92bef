// handle.h: reference-counted objects in type-stable memory.
//
// Objects of a kind come from slabs that are never unmapped, and are used again for the same kind only. So a stale pointer can be
// looked at: its liveness word says whether an object of the expected kind lives there.
#ifndef VT_BASE_HANDLE_H
#define VT_BASE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vt__handle_pool vt__handle_pool;

// First member of every handle.
typedef struct vt__handle {
  _Atomic uint32_t tag;  // pool tag while alive, 0 when dead
  _Atomic uint32_t refs;
  vt__handle_pool *pool;
  struct vt__handle *next_free;
  uint64_t id;  // process-unique, growing
} vt__handle;

struct vt__handle_pool {
  uint32_t tag;        // of this kind; not 0
  size_t object_size;  // of the whole object, header included; a multiple of 64
  size_t slab_objects;
  void (*finalize)(
      vt__handle *handle);  // at the last release: gives up what the object holds, then vt__handle_recycle() now or later
  pthread_mutex_t mutex;
  vt__handle *free_list;
  void *slabs;  // chain through the first word, so that leak checkers see everything
  _Atomic size_t live;
};

// Makes an object with one reference; everything behind the header is zero. NULL if there is no memory.
void *vt__handle_new(vt__handle_pool *pool);

// Whether `object` is a live object of `pool`. NULL isn't.
static inline bool vt__handle_is_live(const void *object, const vt__handle_pool *pool) {
  // acquire: partner is the store in vt__handle_new().
  return object != NULL && atomic_load_explicit(&((vt__handle *)(uintptr_t)object)->tag, memory_order_acquire) == pool->tag;
}

// Takes a reference to an object that is known to be alive.
void vt__handle_ref(void *object);

// Takes a reference unless the object is dying. False then.
bool vt__handle_try_ref(void *object);

// Gives up a reference; with the last one the object is marked dead and finalized.
void vt__handle_unref(void *object);

// Gives the memory of a finalized object back to its pool. Called by finalize(), or later if the object is still needed until then.
void vt__handle_recycle(void *object);

// Takes back an object that was never given to anybody: it isn't finalized.
void vt__handle_discard(void *object);

// A process-unique id, growing, never 0.
uint64_t vt__next_id(void);

#endif
