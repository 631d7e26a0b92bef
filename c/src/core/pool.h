// pool.h: memory that was given back in stream order, and when it may be handed out again.
//
// A block that is not in use lies in one of three places:
// - the *lane* of the queue on which it was freed, with the queue's ticket of that moment: that queue may have it at once;
// - *shared*: the work up to the free has completed, and anybody may have it;
// - *limbo*: its queue failed or went away. A failed queue does not run its waits, so what it was to wait for may be running still.
//   A block leaves limbo when every queue of the process has come past what it held when the block went there.
//
// All of this is guarded by vt__blocks_lock(), which is never held over a call into a backend.
#ifndef VT_CORE_POOL_H
#define VT_CORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/blocks.h"
#include "core/site.h"
#include "vllm_vt/pool.h"

// 16 of 64 bytes each up to 1 KiB, then 16 for each power of two up to VT__POOL_MAX_BYTES.
#define VT__POOL_CLASSES (16 + 16 * 36)
#define VT__POOL_MAX_BYTES ((size_t)1 << 46)

typedef struct vt__pool_block {
  void *ptr;
  size_t capacity;
  size_t bytes;    // in use: as asked for
  uint64_t since;  // in a lane: the ticket of the free; in limbo: the epoch
  const vt_device_resource_ops *resources;
  bool live;                     // in use
  bool clean;                    // in use: nothing but its present owner's work could touch it when it was handed out
  struct vt__pool_block *older;  // in its shelf, by age
  struct vt__pool_block *newer;
  struct vt__pool_block *above;  // in its bin
  struct vt__pool_block *below;
} vt__pool_block;

// Blocks that are not in use, by size and by age.
typedef struct vt__shelf {
  vt__pool_block *oldest;
  vt__pool_block *newest;
  vt__pool_block *bins[VT__POOL_CLASSES];  // the latest is on top
} vt__shelf;

typedef struct vt__lane {
  vt__shelf shelf;
  vt_queue *queue;
  struct vt__lane *next;
  struct vt__lane *previous;
} vt__lane;

typedef struct vt__pool {
  const vt_backend *backend;
  vt__shelf shared;
  vt__shelf limbo;
  vt__lane *lanes;
  vt_pool_stats stats;
} vt__pool;

// A queue's part: member `pool` of vt_queue.
typedef struct vt__pool_seat {
  vt__lane *lane;  // NULL until a block is freed there
  vt_queue *next;  // of all queues of the process
  vt_queue *previous;
  uint64_t passed;  // limbo's blocks up to this epoch are none of this queue's business
  uint64_t marked;  // the epoch that is passed at `ticket`; 0: none is waited for
  uint64_t ticket;
} vt__pool_seat;

// pool_shelf.c: sizes and shelves.

// Rounds a request up to what is held for it. False above VT__POOL_MAX_BYTES.
bool vt__pool_round(size_t bytes, size_t *out_capacity);
void vt__shelf_put(vt__shelf *shelf, vt__pool_block *block);
void vt__shelf_remove(vt__shelf *shelf, vt__pool_block *block);
// Takes the latest block that holds `capacity` bytes and not many more; NULL if there is none.
vt__pool_block *vt__shelf_take(vt__shelf *shelf, size_t capacity);

// pool_settle.c: from lanes and limbo to shared. The lock is not held by the caller.

// Looks how far the queues have come. Never waits. The thread's error record may change.
void vt__pool_settle(vt__pool *pool);
// Puts a block into limbo. The lock is held.
void vt__pool_to_limbo(vt__pool *pool, vt__pool_block *block);
// The begin of a queue, and its end after the last work.
void vt__pool_queue_begin(vt_queue *queue);
void vt__pool_queue_end(vt_queue *queue);

// pool.c: vt_free() of a block of the pool.
vt_status vt__pool_give_back(vt_device device, void *ptr, vt__call_site site);

// pool_trim.c: the pool of a device; NULL if it has none yet. The lock is held.
vt__pool *vt__pool_find(vt_device device);
// The same, made if need be: NULL if there is no memory. The lock is not held.
vt__pool *vt__pool_find_or_make(const vt_backend *backend);
// Gives back to the device all that can be. Answers how many bytes; the thread's error record stays as it is.
size_t vt__pool_reclaim(vt_device device);
// Behind what was given back: gives to the device what is above the limit, as far as it can be. The record stays as it is.
void vt__pool_keep_limit(vt__pool *pool);

#endif
