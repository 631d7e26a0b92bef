// validate_use.c: who uses which bytes, and what of it isn't in order.
#include <stdio.h>

#include "base/alloc.h"
#include "core/validate_state.h"

vt__shadow_uses vt__host_uses;

const char *vt__use_verb(uint32_t mode) {
  return (mode & VT_TOUCH_WRITE) != 0 ? "writes" : "reads";
}

// Operations of one queue run in order: who is in order with the later one is so with the earlier one that it covers.
static bool is_covered(const vt__shadow_use *earlier, const vt__shadow_use *later) {
  return earlier->slot == later->slot && (later->graph_id == 0 || earlier->graph_id == later->graph_id) &&
         later->begin <= earlier->begin && earlier->end <= later->end && ((later->mode | ~earlier->mode) & VT_TOUCH_WRITE) != 0;
}

// Forgets what the new use covers; where there is no room left, also what is over, and then the older half.
static void make_room(vt__shadow_uses *uses, const vt__shadow_use *added, vt__reports *reports) {
  bool full = uses->count == uses->capacity;
  size_t kept = 0;
  for (size_t i = 0; i < uses->count; i++) {
    const vt__shadow_use *use = &uses->items[i];
    if (!is_covered(use, added) && !(full && vt__shadow_is_before(use->slot, use->position, NULL))) {
      uses->items[kept++] = *use;
    }
  }
  uses->count = kept;
  if (uses->count == VT__SHADOW_USES) {
    uses->count = VT__SHADOW_USES / 2;
    for (size_t i = 0; i < uses->count; i++) {
      uses->items[i] = uses->items[i + VT__SHADOW_USES / 2];
    }
    vt__report_limit(reports, "a block has more pending uses than validation keeps");
  }
}

static bool grow(vt__shadow_uses *uses) {
  size_t capacity = uses->capacity == 0 ? 8 : uses->capacity * 2;
  vt__shadow_use *items = vt__realloc(uses->items, uses->capacity, capacity, sizeof(*items));
  if (items != NULL) {
    uses->items = items;
    uses->capacity = capacity;
  }
  return items != NULL;
}

void vt__uses_add(vt__shadow_uses *uses, const vt__shadow_use *use, vt__reports *reports) {
  make_room(uses, use, reports);
  bool is_narrow = uses->capacity == 0 || (uses->count * 2 > uses->capacity && uses->capacity < VT__SHADOW_USES);
  if (is_narrow && !grow(uses) && uses->count == uses->capacity) {
    vt__report_limit(reports, "there is no memory for one more use");
    return;
  }
  uses->items[uses->count++] = *use;
}

void vt__uses_clear(vt__shadow_uses *uses) {
  vt__free(uses->items);
  *uses = (vt__shadow_uses){0};
}

const vt__shadow_use *vt__uses_find(const vt__shadow_uses *uses, const vt__use *use, const vt__shadow_queue *queue,
                                    uint64_t graph_id) {
  uintptr_t begin = (uintptr_t)use->ptr;
  for (size_t i = uses->count; i-- > 0;) {
    const vt__shadow_use *other = &uses->items[i];
    bool no_work = (use->mode & VT__TOUCH_FREE) != 0 && (other->mode & VT__TOUCH_ALLOC) != 0;
    bool same_graph = graph_id != 0 && other->graph_id == graph_id;  // one launch at a time
    if (!same_graph && !no_work && vt__conflict(begin, begin + use->bytes, use->mode, other->begin, other->end, other->mode) &&
        !vt__shadow_is_before(other->slot, other->position, queue)) {
      return other;
    }
  }
  return NULL;
}

void vt__describe_conflict(vt__found *found, const vt__use *use, const char *verb, const char *lacks, const vt__use *other) {
  (void)snprintf(found->action, sizeof(found->action), "%s %zu bytes at %p%s", verb, use->bytes, use->ptr, lacks);
  (void)snprintf(found->tail, sizeof(found->tail), ", which %s %zu bytes at %p", vt__use_verb(other->mode), other->bytes,
                 other->ptr);
}

static vt__use range_of(const vt__shadow_use *use) {
  return (vt__use){(const void *)use->begin, (size_t)(use->end - use->begin), use->mode};
}

bool vt__use_check_race(vt__reports *reports, const vt__use *use, vt_queue *queue, vt__shadow_queue *shadow, uint64_t graph_id,
                        vt__site now) {
  if (shadow == NULL && queue->synchronous == 0) {
    return false;  // one queue too many
  }
  const vt__shadow_use *other = vt__uses_find(vt__shadow_uses_of(use->ptr, use->bytes), use, shadow, graph_id);
  if (other != NULL) {
    vt__found *found = vt__report(reports, VT_VALIDATE_RACE, use, now, other->site);
    vt__use range = range_of(other);
    vt__describe_conflict(found, use, vt__use_verb(use->mode), ", and nothing orders it behind", &range);
  }
  return other != NULL;
}

void vt__use_check_pending(vt__reports *reports, const vt__use *use, vt__site now, const char *what) {
  const vt__shadow_use *other = vt__uses_find(vt__shadow_uses_of(use->ptr, use->bytes), use, NULL, 0);
  if (other != NULL) {
    vt__found *found = vt__report(reports, VT_VALIDATE_PENDING, use, now, other->site);
    vt__use range = range_of(other);
    vt__describe_conflict(found, use, what, ", and nothing has waited for", &range);
  }
}

static vt__site site_on(const vt_queue *queue, uint64_t sequence, vt__call_site site) {
  return (vt__site){.function = site.function, .caller = site.caller, .queue_id = queue->handle.id, .sequence = sequence};
}

void vt__validate_check(vt_queue *queue, const vt__use *uses, size_t count, vt__call_site site) {
  bool recording = vt__queue_is_recording(queue);
  uint64_t sequence = recording ? 0 : vt__ticket_of(queue) + 1;
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  vt__site now = site_on(queue, sequence, site);
  vt__shadow_queue *shadow = recording ? NULL : vt__shadow_queue_get(queue, &reports);
  for (size_t i = 0; i < count; i++) {
    if (uses[i].bytes == 0 || !vt__shadow_check_place(&reports, &uses[i], now)) {
      continue;
    }
    if (recording) {
      vt__shadow_graph_check(&reports, queue, &uses[i], now);
    } else {
      (void)vt__use_check_race(&reports, &uses[i], queue, shadow, 0, now);
    }
  }
  vt__validate_end(&reports);
}

void vt__use_note(vt__reports *reports, const vt__use *use, uint32_t slot, uint64_t position, uint64_t graph_id, vt__site now) {
  uintptr_t begin = (uintptr_t)use->ptr;
  vt__shadow_use added = {.begin = begin,
                          .end = begin + use->bytes,
                          .slot = slot,
                          .mode = use->mode,
                          .position = position,
                          .graph_id = graph_id,
                          .site = now};
  vt__uses_add(vt__shadow_uses_of(use->ptr, use->bytes), &added, reports);
}

void vt__validate_note(vt_queue *queue, const vt__use *uses, size_t count, vt__call_site site) {
  bool recording = vt__queue_is_recording(queue);
  uint64_t ticket = recording ? 0 : vt__ticket_of(queue);
  vt__reports reports;
  if ((!recording && queue->synchronous != 0) || !vt__validate_begin(&reports)) {
    return;
  }
  vt__site now = site_on(queue, ticket, site);
  vt__shadow_queue *shadow = recording ? NULL : vt__shadow_queue_get(queue, &reports);
  uint64_t position = shadow == NULL ? 0 : vt__shadow_advance(shadow, ticket);
  for (size_t i = 0; i < count; i++) {
    if (uses[i].bytes != 0 && recording) {
      vt__shadow_graph_note(&reports, queue, &uses[i], now);
    } else if (uses[i].bytes != 0 && shadow != NULL) {
      vt__use_note(&reports, &uses[i], vt__shadow_slot(shadow), position, 0, now);
    }
  }
  vt__validate_end(&reports);
}
