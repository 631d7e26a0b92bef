// validate.h: what the fronts tell the validation layer.
//
// A front asks vt__validate_is_on() once per call; where that says no, nothing else is done. Uses are checked before the work is
// submitted, so that a report comes before a crash, and noted once it was taken.
#ifndef VT_CORE_VALIDATE_H
#define VT_CORE_VALIDATE_H

#include <stdatomic.h>

#include "core/blocks.h"
#include "core/queue.h"
#include "core/site.h"
#include "vllm_vt/validate.h"

// A range that an operation uses. `mode` is VT_TOUCH_* bits.
typedef struct vt__use {
  const void *ptr;
  size_t bytes;
  uint32_t mode;
} vt__use;

extern _Atomic uint32_t vt__validate_on;

static inline bool vt__validate_is_on(void) {
#ifdef VT__WITHOUT_HOOKS
  return false;  // for benches/runtime, which shows what the look costs
#endif
  // relaxed: who goes on looks again under the layer's lock.
  return VT_UNLIKELY(atomic_load_explicit(&vt__validate_on, memory_order_relaxed) != 0);
}

// Begins where VT_VALIDATE asks for it. False if there is no memory for that.
bool vt__validate_init(void);

// An operation is about to be submitted to, or recorded on, `queue`; and has been.
void vt__validate_check(vt_queue *queue, const vt__use *uses, size_t count, vt__call_site site);
void vt__validate_note(vt_queue *queue, const vt__use *uses, size_t count, vt__call_site site);

// The same for copies with many ranges: `step` is one of the two.
typedef void (*vt__validate_step)(vt_queue *queue, const vt__use *uses, size_t count, vt__call_site site);
void vt__validate_batch(vt__validate_step step, vt_queue *queue, const vt_copy_op *ops, size_t count, vt__call_site site);
typedef struct vt__rows {
  const void *base;
  size_t pitch;
} vt__rows;
void vt__validate_2d(vt__validate_step step, vt_queue *queue, const vt__rows *dst, const vt__rows *src, size_t width, size_t rows,
                     vt__call_site site);

// The host has learned that all work of the queue, or that up to `ticket`, is over. Partner of a wait or a query that said so.
void vt__validate_queue_settled(vt_queue *queue);
void vt__validate_ticket_settled(vt_queue *queue, uint64_t ticket);

// The queue's last work is over; frees its shadow.
void vt__validate_queue_gone(vt_queue *queue);

// Events. `shadow` is the event's place for what the layer knows of it; what lies there is freed by vt__validate_event_gone().
typedef struct vt__shadow_event vt__shadow_event;
void vt__validate_event_recorded(vt__shadow_event **shadow, vt_queue *queue);
void vt__validate_event_awaited(vt__shadow_event **shadow, uint64_t event_id, vt_queue *queue, vt__call_site site);
void vt__validate_event_settled(vt__shadow_event **shadow);
void vt__validate_event_gone(vt__shadow_event *shadow);

// What a host function tells when it runs: everything before it is over, and the host may know that.
typedef struct vt__host_token {
  uint64_t position;
  uint64_t capture_id;
  uint32_t place;  // 0: nothing is known
} vt__host_token;
vt__host_token vt__validate_host_token(vt_queue *queue);
void vt__validate_host_runs(vt__host_token token);

// Memory. vt__validate_keeps() is asked in place of giving a block back: true means that the layer keeps it for some time.
void vt__validate_allocated(const vt__block *block, vt__call_site site);
void vt__validate_freeing(const vt__block *block, vt__call_site site);
bool vt__validate_keeps(const vt__block *block, bool is_from_cpu);
// Takes out a block that was kept for long enough. False if there is none.
bool vt__validate_take_expired(vt__block *out_block);

// The pool: allocated on `queue`; about to be freed on `queue` (NULL: on the host); about to go back to the device.
void vt__validate_pool_allocated(void *ptr, size_t bytes, vt_queue *queue, vt__call_site site);
void vt__validate_pool_freeing(vt_device device, void *ptr, vt_queue *queue, vt__call_site site);
void vt__validate_pool_trimmed(const void *ptr);

// Arenas, by the address of their slab.
void vt__validate_arena_created(const void *slab, vt__call_site site);
void vt__validate_arena_allocated(const void *slab, size_t offset, size_t bytes, vt__call_site site);
void vt__validate_arena_cut(const void *slab, size_t used, vt__call_site site);

// Captures and graphs, by id.
void vt__validate_capture_begun(vt_queue *queue, vt__call_site site);
void vt__validate_capture_closed(uint64_t capture_id);
void vt__validate_graph_made(uint64_t capture_id, uint64_t graph_id);
void vt__validate_graph_gone(uint64_t graph_id);
void vt__validate_launch_check(uint64_t graph_id, vt_queue *queue, vt__call_site site);
void vt__validate_launch_note(uint64_t graph_id, vt_queue *queue, vt__call_site site);
// A call from `caller` was refused by a rule of captures: the thread's record says which and why. `capture_id` may be 0.
void vt__validate_capture_breach(uint64_t capture_id, const void *caller);

#endif
