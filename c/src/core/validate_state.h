// validate_state.h: what the files of the validation layer share. Everything is guarded by one lock, which is taken by
// vt__validate_begin() and given back by vt__validate_end(); no method of a backend and no hook but the allocator
// is called inside.
#ifndef VT_CORE_VALIDATE_STATE_H
#define VT_CORE_VALIDATE_STATE_H

#include "core/validate.h"

#define VT__SHADOW_SLOTS 128  // asynchronous queues that are followed at a time
#define VT__SHADOW_USES 4096  // uses that are kept per block
#define VT__SHADOW_RING 512   // marks and edges that are kept per queue
#define VT__NO_SLOT UINT32_MAX

// One call, as it is remembered.
typedef struct vt__site {
  const char *function;
  const void *caller;
  uint64_t queue_id;
  uint64_t sequence;
} vt__site;

// A call that is no operation of a queue.
static inline vt__site vt__site_of(vt__call_site site) {
  return (vt__site){.function = site.function, .caller = site.caller};
}

// One report in the making.
typedef struct vt__found {
  vt_validate_kind kind;
  const void *ptr;
  size_t bytes;
  vt__site now;
  vt__site before;
  char action[224];  // stands between the two sites
  char tail[160];    // stands behind them
} vt__found;

// What one call has found. More than fits is counted only.
typedef struct vt__reports {
  size_t count;
  vt__found found[4];
} vt__reports;

// Takes the lock. False, without it, where validation is off.
bool vt__validate_begin(vt__reports *reports);
// Gives the lock back, then tells the log and the hook.
void vt__validate_end(vt__reports *reports);

// The lock alone, for what must be put right also where validation is off.
void vt__shadow_lock(void);
void vt__shadow_unlock(void);

// Adds a report; the caller fills in what is missing. Never NULL.
vt__found *vt__report(vt__reports *reports, vt_validate_kind kind, const vt__use *use, vt__site now, vt__site before);

// Adds the notice that a table is full, once.
void vt__report_limit(vt__reports *reports, const char *what);

// The ticket of a queue's last operation. Asks the backend, so not under the lock.
uint64_t vt__ticket_of(vt_queue *queue);

// validate_order.c: what comes before what. An operation is (slot of its queue, position); positions of a slot only grow.
typedef struct vt__shadow_queue vt__shadow_queue;
typedef struct vt__shadow_clock {
  uint64_t at[VT__SHADOW_SLOTS];
} vt__shadow_clock;

// The shadow of an asynchronous queue, made at its first use. NULL: a synchronous queue, whose work is over when a call returns,
// or one too many.
vt__shadow_queue *vt__shadow_queue_get(vt_queue *queue, vt__reports *reports);
// The slot of a queue; VT__NO_SLOT for NULL.
uint32_t vt__shadow_slot(const vt__shadow_queue *shadow);
// Gives the next operation of a queue, whose last ticket is now `ticket`, its position.
uint64_t vt__shadow_advance(vt__shadow_queue *shadow, uint64_t ticket);
// The position of the last operation.
uint64_t vt__shadow_position(const vt__shadow_queue *shadow);
// Whether an operation comes before the next one of `later`, or is over as far as the host knows; NULL asks for the latter only.
bool vt__shadow_is_before(uint32_t slot, uint64_t position, const vt__shadow_queue *later);
// The operation, and all that it comes after, is over.
void vt__shadow_complete(uint32_t slot, uint64_t position);
// Events that are made from here on are known from their first record.
void vt__shadow_order_open(void);
// Everything is over, or doesn't count.
void vt__shadow_complete_all(void);

// validate_use.c: who uses which bytes.
typedef struct vt__shadow_use {
  uintptr_t begin;
  uintptr_t end;
  uint32_t slot;
  uint32_t mode;
  uint64_t position;
  uint64_t graph_id;  // of a launch; else 0
  vt__site site;
} vt__shadow_use;

typedef struct vt__shadow_uses {
  vt__shadow_use *items;
  size_t count;
  size_t capacity;
} vt__shadow_uses;

static inline bool vt__conflict(uintptr_t begin, uintptr_t end, uint32_t mode, uintptr_t other_begin, uintptr_t other_end,
                                uint32_t other_mode) {
  return ((mode | other_mode) & VT_TOUCH_WRITE) != 0 && begin < other_end && other_begin < end;
}

void vt__uses_add(vt__shadow_uses *uses, const vt__shadow_use *use, vt__reports *reports);
void vt__uses_clear(vt__shadow_uses *uses);
// Bits of a use's mode beside VT_TOUCH_*: the pool's own, which is no work; and a free, which only waits for work.
#define VT__TOUCH_ALLOC (1u << 2)
#define VT__TOUCH_FREE (1u << 3)

// A use in conflict with this one that isn't before the next operation of `queue` (NULL: the host). NULL if there is none.
const vt__shadow_use *vt__uses_find(const vt__shadow_uses *uses, const vt__use *use, const vt__shadow_queue *queue,
                                    uint64_t graph_id);
// Reports the first conflict of a range. Answers whether there was one.
bool vt__use_check_race(vt__reports *reports, const vt__use *use, vt_queue *queue, vt__shadow_queue *shadow, uint64_t graph_id,
                        vt__site now);
void vt__use_check_pending(vt__reports *reports, const vt__use *use, vt__site now, const char *what);
// Adds a use to what is known of its range.
void vt__use_note(vt__reports *reports, const vt__use *use, uint32_t slot, uint64_t position, uint64_t graph_id, vt__site now);
// Puts a report on two uses into words: what the later one does (`verb`), and what should stand between them (`lacks`).
void vt__describe_conflict(vt__found *found, const vt__use *use, const char *verb, const char *lacks, const vt__use *other);
// "reads", "writes".
const char *vt__use_verb(uint32_t mode);
// What is known of host memory.
extern vt__shadow_uses vt__host_uses;

// validate_memory.c: blocks.
typedef struct vt__shadow_arena vt__shadow_arena;

typedef struct vt__shadow_block {
  vt__block block;  // as it is given back; its ptr and bytes are the range
  uint64_t serial;
  vt__site allocated;
  vt__site freed;
  bool is_freed;  // but still the pool's
  vt__shadow_uses uses;
  vt__shadow_arena *arena;  // of a slab
} vt__shadow_block;

// The live block that shares a byte with a range; NULL if none does.
vt__shadow_block *vt__shadow_block_find(const void *ptr, size_t bytes);
// Where uses of a range are kept.
vt__shadow_uses *vt__shadow_uses_of(const void *ptr, size_t bytes);
// Reports a range that isn't memory that may be used. False where it is of a block that was freed.
bool vt__shadow_check_place(vt__reports *reports, const vt__use *use, vt__site now);
// A block that was freed and is still known, by its serial.
const vt__shadow_block *vt__shadow_find_freed(uint64_t serial);
// Notes all live blocks. False without memory.
bool vt__shadow_memory_open(void);
// Forgets all blocks; those that were kept expire.
void vt__shadow_memory_close(void);

// validate_arena.c
vt__shadow_arena *vt__shadow_arena_new(void);
void vt__shadow_arena_free(vt__shadow_arena *arena);
void vt__shadow_arena_check(vt__reports *reports, const vt__shadow_block *slab, const vt__use *use, vt__site now);

// validate_graph.c
void vt__shadow_graph_check(vt__reports *reports, vt_queue *queue, const vt__use *use, vt__site now);
void vt__shadow_graph_note(vt__reports *reports, vt_queue *queue, const vt__use *use, vt__site now);
void vt__shadow_graph_check_free(vt__reports *reports, const vt__shadow_block *block, vt__site now);
// The last launch of the graph that was captured under this id.
void vt__shadow_graph_complete(uint64_t capture_id);
void vt__shadow_graphs_close(void);

#endif
