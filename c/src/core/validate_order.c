// validate_order.c: what comes before what, by vector clocks.
//
// An asynchronous queue has a slot, in which its operations get positions. Its clock says, per slot, up to which position its next
// operation comes after; an event carries a copy. What the host has learned to be over is one number per slot for the whole
// process: what is over is so for every thread. An operation that is over takes along all that it came after; for this a queue
// keeps edges: "from this position on, behind that operation".
#include <stdio.h>

#include "base/alloc.h"
#include "core/capture.h"
#include "core/validate_state.h"

// The newest VT__SHADOW_RING items.
typedef struct item {
  uint64_t position;  // of this queue
  uint64_t other;     // a mark's ticket, or an edge's position
  uint32_t slot;      // of an edge
} item;

typedef struct item_ring {
  item items[VT__SHADOW_RING];
  size_t first;
  size_t count;
} item_ring;

struct vt__shadow_queue {
  uint32_t slot;
  vt__shadow_clock seen;
  item_ring marks;  // which tickets the positions have
  item_ring edges;
};

struct vt__shadow_event {
  bool recorded;
  uint32_t slot;
  uint64_t position;
  vt__shadow_clock seen;
};

// Positions go on when another queue gets the slot.
static struct {
  vt__shadow_queue *queue;
  uint64_t position;
  uint64_t completed;
} slots[VT__SHADOW_SLOTS];

static uint64_t first_event_id;  // events with a lower id may have been recorded before validation was on

static item *oldest(item_ring *ring) {
  return ring->count == 0 ? NULL : &ring->items[ring->first];
}

static item *newest(item_ring *ring) {
  return ring->count == 0 ? NULL : &ring->items[(ring->first + ring->count - 1) % VT__SHADOW_RING];
}

static void drop_oldest(item_ring *ring) {
  ring->first = (ring->first + 1) % VT__SHADOW_RING;
  ring->count--;
}

static void push(item_ring *ring, item added) {
  ring->items[(ring->first + ring->count) % VT__SHADOW_RING] = added;
  ring->count++;
}

// The depth is bounded by the slots: a nested call is about a slot whose number has not been raised yet.
void vt__shadow_complete(uint32_t slot, uint64_t position) {
  if (slot == VT__NO_SLOT || slots[slot].completed >= position) {
    return;
  }
  slots[slot].completed = position;
  vt__shadow_queue *queue = slots[slot].queue;
  if (queue == NULL) {
    return;
  }
  while (queue->marks.count > 1 && queue->marks.items[(queue->marks.first + 1) % VT__SHADOW_RING].position <= position) {
    drop_oldest(&queue->marks);
  }
  for (item *edge = oldest(&queue->edges); edge != NULL && edge->position <= position; edge = oldest(&queue->edges)) {
    item taken = *edge;
    drop_oldest(&queue->edges);
    vt__shadow_complete(taken.slot, taken.other);
  }
}

void vt__shadow_complete_all(void) {
  for (uint32_t slot = 0; slot < VT__SHADOW_SLOTS; slot++) {
    vt__shadow_complete(slot, slots[slot].position);
  }
}

void vt__shadow_order_open(void) {
  first_event_id = vt__next_id();
}

vt__shadow_queue *vt__shadow_queue_get(vt_queue *queue, vt__reports *reports) {
  if (queue == NULL || queue->synchronous != 0 || queue->shadow != NULL) {
    return queue == NULL || queue->synchronous != 0 ? NULL : queue->shadow;
  }
  uint32_t slot = 0;
  while (slot < VT__SHADOW_SLOTS && slots[slot].queue != NULL) {
    slot++;
  }
  vt__shadow_queue *shadow = slot == VT__SHADOW_SLOTS ? NULL : vt__calloc(1, sizeof(*shadow));
  if (shadow == NULL) {
    vt__report_limit(reports, "there are more asynchronous queues than validation follows");
    return NULL;
  }
  shadow->slot = slot;
  slots[slot].queue = shadow;
  queue->shadow = shadow;
  return shadow;
}

uint32_t vt__shadow_slot(const vt__shadow_queue *shadow) {
  return shadow == NULL ? VT__NO_SLOT : shadow->slot;
}

uint64_t vt__shadow_position(const vt__shadow_queue *shadow) {
  return shadow == NULL ? 0 : slots[shadow->slot].position;
}

uint64_t vt__shadow_advance(vt__shadow_queue *shadow, uint64_t ticket) {
  uint64_t position = ++slots[shadow->slot].position;
  item *last = newest(&shadow->marks);
  if (last != NULL && last->other >= ticket) {
    last->position = position;
    return position;
  }
  if (shadow->marks.count == VT__SHADOW_RING) {
    drop_oldest(&shadow->marks);
  }
  push(&shadow->marks, (item){.position = position, .other = ticket});
  return position;
}

bool vt__shadow_is_before(uint32_t slot, uint64_t position, const vt__shadow_queue *later) {
  if (slots[slot].completed >= position) {
    return true;
  }
  return later != NULL && (later->slot == slot || later->seen.at[slot] >= position);
}

// Where the ring is full, the oldest edge's operation counts as over: something may be missed, nothing is made up.
static void add_edge(vt__shadow_queue *queue, uint32_t slot, uint64_t position) {
  if (queue->edges.count == VT__SHADOW_RING) {
    item taken = *oldest(&queue->edges);
    drop_oldest(&queue->edges);
    vt__shadow_complete(taken.slot, taken.other);
  }
  push(&queue->edges, (item){.position = slots[queue->slot].position, .other = position, .slot = slot});
}

static void merge(vt__shadow_queue *queue, const vt__shadow_event *event) {
  for (uint32_t slot = 0; slot < VT__SHADOW_SLOTS; slot++) {
    if (queue->seen.at[slot] < event->seen.at[slot]) {
      queue->seen.at[slot] = event->seen.at[slot];
    }
  }
  if (event->slot != VT__NO_SLOT && event->slot != queue->slot) {
    if (queue->seen.at[event->slot] < event->position) {
      queue->seen.at[event->slot] = event->position;
    }
    add_edge(queue, event->slot, event->position);
  }
}

void vt__validate_event_recorded(vt__shadow_event **shadow, vt_queue *queue) {
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  if (*shadow == NULL) {
    *shadow = vt__calloc(1, sizeof(**shadow));
  }
  vt__shadow_event *event = *shadow;
  if (event == NULL) {
    // Without its order, what comes behind the event would be taken for a race.
    vt__shadow_complete_all();
    vt__report_limit(&reports, "there is no memory for the order of an event");
  } else if (vt__queue_is_recording(queue)) {
    event->recorded = true;
  } else {
    const vt__shadow_queue *from = vt__shadow_queue_get(queue, &reports);
    event->recorded = true;
    event->slot = vt__shadow_slot(from);
    event->position = vt__shadow_position(from);
    event->seen = from == NULL ? (vt__shadow_clock){{0}} : from->seen;
  }
  vt__validate_end(&reports);
}

static void check_recorded(vt__reports *reports, const vt__shadow_event *event, uint64_t event_id, vt_queue *queue,
                           vt__call_site site) {
  if ((event == NULL || !event->recorded) && event_id >= first_event_id) {
    vt__site now = {.function = site.function, .caller = site.caller, .queue_id = queue == NULL ? 0 : queue->handle.id};
    vt__found *found = vt__report(reports, VT_VALIDATE_UNRECORDED_EVENT, NULL, now, (vt__site){0});
    (void)snprintf(found->action, sizeof(found->action), "waits for event %llu, which was never recorded: nothing is waited for",
                   (unsigned long long)event_id);
  }
}

// A synchronous queue, and a thread, have waited when the call returns.
void vt__validate_event_awaited(vt__shadow_event **shadow, uint64_t event_id, vt_queue *queue, vt__call_site site) {
  uint64_t ticket = queue == NULL || queue->synchronous != 0 || vt__queue_is_recording(queue) ? 0 : vt__ticket_of(queue);
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  const vt__shadow_event *event = *shadow;
  check_recorded(&reports, event, event_id, queue, site);
  if (event != NULL && queue != NULL && !vt__queue_is_recording(queue)) {
    vt__shadow_queue *later = vt__shadow_queue_get(queue, &reports);
    if (later != NULL) {
      (void)vt__shadow_advance(later, ticket);
      merge(later, event);
    } else {
      vt__shadow_complete(event->slot, event->position);
    }
  }
  vt__validate_end(&reports);
}

void vt__validate_event_settled(vt__shadow_event **shadow) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    if (*shadow != NULL) {
      vt__shadow_complete((*shadow)->slot, (*shadow)->position);
    }
    vt__validate_end(&reports);
  }
}

void vt__validate_event_gone(vt__shadow_event *shadow) {
  vt__free(shadow);
}

void vt__validate_queue_settled(vt_queue *queue) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    vt__shadow_complete(vt__shadow_slot(queue->shadow), vt__shadow_position(queue->shadow));
    vt__validate_end(&reports);
  }
}

// The highest position that has this ticket or a lower one. A ticket from before the oldest mark stands for that.
void vt__validate_ticket_settled(vt_queue *queue, uint64_t ticket) {
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  vt__shadow_queue *shadow = queue->shadow;
  uint64_t position = 0;
  for (size_t i = 0; shadow != NULL && i < shadow->marks.count; i++) {
    const item *mark = &shadow->marks.items[(shadow->marks.first + i) % VT__SHADOW_RING];
    bool reached = mark->other <= ticket || (i == 0 && shadow->marks.count == VT__SHADOW_RING);
    position = reached ? mark->position : position;
  }
  vt__shadow_complete(vt__shadow_slot(shadow), position);
  vt__validate_end(&reports);
}

void vt__validate_queue_gone(vt_queue *queue) {
  vt__shadow_queue *shadow = queue->shadow;
  queue->shadow = NULL;
  vt__shadow_lock();
  vt__shadow_complete(shadow->slot, slots[shadow->slot].position);
  slots[shadow->slot].queue = NULL;
  vt__shadow_unlock();
  vt__free(shadow);
}

vt__host_token vt__validate_host_token(vt_queue *queue) {
  vt__host_token token = {0};
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    if (vt__queue_is_recording(queue)) {
      token = (vt__host_token){.capture_id = vt__capture_get_id(queue->capture), .place = 1};
    } else {
      const vt__shadow_queue *shadow = vt__shadow_queue_get(queue, &reports);
      token = (vt__host_token){.position = vt__shadow_position(shadow), .place = shadow == NULL ? 0 : shadow->slot + 1};
    }
    vt__validate_end(&reports);
  }
  return token;
}

void vt__validate_host_runs(vt__host_token token) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    if (token.capture_id != 0) {
      vt__shadow_graph_complete(token.capture_id);
    } else {
      vt__shadow_complete(token.place - 1, token.position);
    }
    vt__validate_end(&reports);
  }
}
