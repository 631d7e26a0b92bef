// validate_graph.c: what captures record and launches use.
//
// Inside a capture the capture's own clocks say what comes before what. A graph keeps the ranges that one launch uses, put together
// where they touch. Arenas aren't asked at a launch: a graph goes on using a slab whose arena has long been reset for the next one.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "core/capture.h"
#include "core/validate_state.h"

typedef struct recorded {
  vt__use use;
  uint64_t serial;    // of the block; 0: host memory
  uint32_t member;    // in the capture
  uint32_t position;  // in the capture
  vt__site site;
} recorded;

typedef struct shadow_graph {
  struct shadow_graph *next;
  uint64_t capture_id;
  uint64_t graph_id;  // 0: being captured
  vt__site begun;
  recorded *items;
  size_t count;
  size_t capacity;
  uint32_t slot;  // of the last launch
  uint64_t position;
} shadow_graph;

static shadow_graph *graphs;

static shadow_graph *find_capture(uint64_t capture_id) {
  shadow_graph *graph = graphs;
  while (graph != NULL && graph->capture_id != capture_id) {
    graph = graph->next;
  }
  return graph;
}

static shadow_graph *find_graph(uint64_t graph_id) {
  shadow_graph *graph = graphs;
  while (graph != NULL && graph->graph_id != graph_id) {
    graph = graph->next;
  }
  return graph;
}

static void forget(shadow_graph *gone) {
  shadow_graph **link = &graphs;
  while (*link != gone) {
    link = &(*link)->next;
  }
  *link = gone->next;
  vt__free(gone->items);
  vt__free(gone);
}

void vt__shadow_graphs_close(void) {
  while (graphs != NULL) {
    forget(graphs);
  }
}

void vt__validate_capture_begun(vt_queue *queue, vt__call_site site) {
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  shadow_graph *graph = vt__calloc(1, sizeof(*graph));
  if (graph != NULL) {
    graph->next = graphs;
    graph->capture_id = vt__capture_get_id(queue->capture);
    graph->begun = (vt__site){.function = site.function, .caller = site.caller, .queue_id = queue->handle.id};
    graph->slot = VT__NO_SLOT;
    graphs = graph;
  } else {
    vt__report_limit(&reports, "there is no memory to follow a capture");
  }
  vt__validate_end(&reports);
}

void vt__validate_capture_closed(uint64_t capture_id) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    shadow_graph *graph = find_capture(capture_id);
    if (graph != NULL && graph->graph_id == 0) {
      forget(graph);
    }
    vt__validate_end(&reports);
  }
}

static bool is_before(const recorded *earlier, const vt_queue *queue) {
  return earlier->member == queue->capture_slot || vt__capture_clock(queue)->position[earlier->member] >= earlier->position;
}

void vt__shadow_graph_check(vt__reports *reports, vt_queue *queue, const vt__use *use, vt__site now) {
  const shadow_graph *graph = find_capture(vt__capture_get_id(queue->capture));
  uintptr_t begin = (uintptr_t)use->ptr;
  for (size_t i = graph == NULL ? 0 : graph->count; i-- > 0;) {
    const recorded *other = &graph->items[i];
    uintptr_t other_begin = (uintptr_t)other->use.ptr;
    if (vt__conflict(begin, begin + use->bytes, use->mode, other_begin, other_begin + other->use.bytes, other->use.mode) &&
        !is_before(other, queue)) {
      vt__found *found = vt__report(reports, VT_VALIDATE_RACE, use, now, other->site);
      vt__describe_conflict(found, use, vt__use_verb(use->mode), " in a capture, and nothing orders it behind", &other->use);
      return;
    }
  }
}

void vt__shadow_graph_note(vt__reports *reports, vt_queue *queue, const vt__use *use, vt__site now) {
  shadow_graph *graph = find_capture(vt__capture_get_id(queue->capture));
  if (graph == NULL) {
    return;
  }
  if (graph->count == graph->capacity) {
    size_t capacity = graph->capacity == 0 ? 64 : graph->capacity * 2;
    recorded *items = vt__realloc(graph->items, graph->capacity, capacity, sizeof(*items));
    if (items == NULL) {
      vt__report_limit(reports, "there is no memory to follow a capture");
      return;
    }
    graph->items = items;
    graph->capacity = capacity;
  }
  const vt__shadow_block *block = vt__shadow_block_find(use->ptr, use->bytes);
  graph->items[graph->count++] = (recorded){.use = *use,
                                            .serial = block == NULL ? 0 : block->serial,
                                            .member = queue->capture_slot,
                                            .position = vt__capture_clock(queue)->position[queue->capture_slot],
                                            .site = now};
}

static int by_mode_and_address(const void *a, const void *b) {
  const recorded *x = a;
  const recorded *y = b;
  if (x->use.mode != y->use.mode) {
    return x->use.mode < y->use.mode ? -1 : 1;
  }
  return (uintptr_t)x->use.ptr < (uintptr_t)y->use.ptr ? -1 : (uintptr_t)x->use.ptr > (uintptr_t)y->use.ptr;
}

// Puts ranges together that touch, are used alike and lie in one block.
static void put_together(shadow_graph *graph) {
  size_t kept = 0;
  if (graph->count > 0) {
    qsort(graph->items, graph->count, sizeof(*graph->items), by_mode_and_address);
  }
  for (size_t i = 0; i < graph->count; i++) {
    recorded *last = kept == 0 ? NULL : &graph->items[kept - 1];
    const recorded *item = &graph->items[i];
    size_t offset = last == NULL ? 0 : (size_t)((uintptr_t)item->use.ptr - (uintptr_t)last->use.ptr);
    if (last != NULL && last->use.mode == item->use.mode && last->serial == item->serial && offset <= last->use.bytes) {
      last->use.bytes = vt__max_size(last->use.bytes, offset + item->use.bytes);
    } else {
      graph->items[kept++] = *item;
    }
  }
  graph->count = kept;
}

void vt__validate_graph_made(uint64_t capture_id, uint64_t graph_id) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    shadow_graph *graph = find_capture(capture_id);
    if (graph != NULL) {
      graph->graph_id = graph_id;
      put_together(graph);
    }
    vt__validate_end(&reports);
  }
}

void vt__validate_graph_gone(uint64_t graph_id) {
  vt__reports reports;
  if (vt__validate_begin(&reports)) {
    shadow_graph *graph = find_graph(graph_id);
    if (graph != NULL) {
      forget(graph);
    }
    vt__validate_end(&reports);
  }
}

static void check_block(vt__reports *reports, const shadow_graph *graph, const recorded *item, vt__site now) {
  const vt__shadow_block *block = vt__shadow_block_find(item->use.ptr, item->use.bytes);
  if (item->serial == 0 || (block != NULL && block->serial == item->serial && !block->is_freed)) {
    return;
  }
  const vt__shadow_block *freed = block != NULL && block->serial == item->serial ? block : vt__shadow_find_freed(item->serial);
  vt__found *found = vt__report(reports, VT_VALIDATE_USE_AFTER_FREE, &item->use, now, freed == NULL ? (vt__site){0} : freed->freed);
  (void)snprintf(found->action, sizeof(found->action), "%s %zu bytes at %p in graph %llu, of a block that was given back%s",
                 vt__use_verb(item->use.mode), item->use.bytes, item->use.ptr, (unsigned long long)graph->graph_id,
                 freed == NULL ? "" : " in");
}

void vt__validate_launch_check(uint64_t graph_id, vt_queue *queue, vt__call_site site) {
  uint64_t sequence = vt__ticket_of(queue) + 1;
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  shadow_graph *graph = find_graph(graph_id);
  vt__site now = {.function = site.function, .caller = site.caller, .queue_id = queue->handle.id, .sequence = sequence};
  vt__shadow_queue *shadow = vt__shadow_queue_get(queue, &reports);
  if (graph != NULL) {
    // Its host functions may run before the launch is noted.
    graph->slot = vt__shadow_slot(shadow);
    graph->position = vt__shadow_position(shadow) + 1;
  }
  bool races = false;
  for (size_t i = 0; graph != NULL && i < graph->count; i++) {
    check_block(&reports, graph, &graph->items[i], now);
    // One is enough: what isn't ordered behind a launch usually meets it in many ranges.
    races = races || vt__use_check_race(&reports, &graph->items[i].use, queue, shadow, graph_id, now);
  }
  vt__validate_end(&reports);
}

void vt__validate_launch_note(uint64_t graph_id, vt_queue *queue, vt__call_site site) {
  uint64_t ticket = vt__ticket_of(queue);
  vt__reports reports;
  if (queue->synchronous != 0 || !vt__validate_begin(&reports)) {
    return;
  }
  shadow_graph *graph = find_graph(graph_id);
  vt__site now = {.function = site.function, .caller = site.caller, .queue_id = queue->handle.id, .sequence = ticket};
  vt__shadow_queue *shadow = vt__shadow_queue_get(queue, &reports);
  if (graph != NULL && shadow != NULL) {
    graph->slot = vt__shadow_slot(shadow);
    graph->position = vt__shadow_advance(shadow, ticket);
    for (size_t i = 0; i < graph->count; i++) {
      vt__use_note(&reports, &graph->items[i].use, graph->slot, graph->position, graph_id, now);
    }
  }
  vt__validate_end(&reports);
}

void vt__shadow_graph_complete(uint64_t capture_id) {
  const shadow_graph *graph = find_capture(capture_id);
  if (graph != NULL) {
    vt__shadow_complete(graph->slot, graph->position);
  }
}

void vt__shadow_graph_check_free(vt__reports *reports, const vt__shadow_block *block, vt__site now) {
  for (const shadow_graph *graph = graphs; graph != NULL; graph = graph->next) {
    size_t i = 0;
    while (i < graph->count && graph->items[i].serial != block->serial) {
      i++;
    }
    if (graph->graph_id != 0 && i < graph->count) {
      vt__use use = {block->block.ptr, block->block.bytes, VT_TOUCH_WRITE};
      vt__found *found = vt__report(reports, VT_VALIDATE_FREED_UNDER_GRAPH, &use, now, graph->items[i].site);
      (void)snprintf(found->action, sizeof(found->action), "frees %zu bytes at %p, which graph %llu holds, from", use.bytes,
                     use.ptr, (unsigned long long)graph->graph_id);
      return;
    }
  }
}

void vt__validate_capture_breach(uint64_t capture_id, const void *caller) {
  const vt_error *error = vt_last_error();
  vt__reports reports;
  if (!vt__validate_begin(&reports)) {
    return;
  }
  const shadow_graph *graph = capture_id == 0 ? NULL : find_capture(capture_id);
  vt__site now = {.function = error->function, .caller = caller};
  vt__found *found = vt__report(&reports, VT_VALIDATE_CAPTURE, NULL, now, graph == NULL ? (vt__site){0} : graph->begun);
  (void)snprintf(found->action, sizeof(found->action), "was refused%s", graph == NULL ? "" : " in the capture begun by");
  (void)snprintf(found->tail, sizeof(found->tail), ": %s", error->message);
  vt__validate_end(&reports);
}
