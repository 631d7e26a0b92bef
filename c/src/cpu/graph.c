// graph.c: recording a graph.
#include "cpu/graph.h"

#include <string.h>

#include "base/alloc.h"

static vt_status no_memory(const char *function, const char *what) {
  return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, function, "no memory for %s", what);
}

static vt_status add_lane(vt__cpu_graph *graph, vt__cpu_queue *queue, const char *function) {
  vt__cpu_lane **lanes = vt__realloc(graph->lanes, graph->lane_count, graph->lane_count + 1, sizeof(*lanes));
  if (lanes == NULL) {
    return no_memory(function, "a lane of a graph");
  }
  graph->lanes = lanes;
  vt__cpu_lane *lane = vt__calloc(1, sizeof(*lane));
  if (lane == NULL) {
    return no_memory(function, "a lane of a graph");
  }
  lane->queue = queue;
  graph->lanes[graph->lane_count] = lane;
  queue->lane = graph->lane_count++;
  // relaxed, both: for this thread; see vt__cpu_recording().
  atomic_store_explicit(&queue->graph_owner, vt__thread_token(), memory_order_relaxed);
  atomic_store_explicit(&queue->graph, graph, memory_order_relaxed);
  return VT_OK;
}

vt_status vt__cpu_capture_begin(void *self, void *native) {
  (void)self;
  vt__cpu_queue *queue = native;
  if (queue->timeline != NULL) {
    VT_TRY(vt__timeline_get_failure(queue->timeline));
  }
  vt__cpu_graph *graph = vt__calloc(1, sizeof(*graph));
  if (graph == NULL) {
    return no_memory("vt_graph_begin_capture", "a graph");
  }
  pthread_mutex_init(&graph->run_mutex, NULL);
  // relaxed: not shared yet.
  atomic_store_explicit(&graph->refs, 1, memory_order_relaxed);
  vt_status status = add_lane(graph, queue, "vt_graph_begin_capture");
  if (status != VT_OK) {
    vt__cpu_graph_free(graph);
  }
  return status;
}

vt_status vt__cpu_graph_append(vt__cpu_queue *queue, const vt__cpu_command *command) {
  vt__cpu_graph *graph = vt__cpu_recording(queue);
  vt__cpu_lane *lane = graph->lanes[queue->lane];
  if (lane->count == lane->capacity) {
    uint32_t capacity = lane->capacity == 0 ? 64 : lane->capacity * 2;
    vt__cpu_command *commands = vt__realloc(lane->commands, lane->count, capacity, sizeof(*commands));
    if (commands == NULL) {
      return no_memory(vt__cpu_command_function(command), "more operations of a graph");
    }
    lane->commands = commands;
    lane->capacity = capacity;
  }
  lane->commands[lane->count++] = *command;
  lane->commands[lane->count - 1].signals = 0;
  graph->node_count += command->kind != VT__CPU_LANE_WAIT;
  return VT_OK;
}

uint32_t vt__cpu_graph_get_position(vt__cpu_queue *queue) {
  return vt__cpu_recording(queue)->lanes[queue->lane]->count;
}

// Lets the lane that was added last go, in which nothing was recorded.
static void remove_last_lane(vt__cpu_graph *graph) {
  vt__cpu_lane *lane = graph->lanes[--graph->lane_count];
  // relaxed: see vt__cpu_recording().
  atomic_store_explicit(&lane->queue->graph, NULL, memory_order_relaxed);
  vt__free(lane);
}

static vt_status append_wait(vt__cpu_graph *graph, vt__cpu_queue *queue, uint32_t lane, uint32_t position) {
  vt__cpu_command command = {.kind = VT__CPU_LANE_WAIT, .u.lane_wait = {.lane = lane, .position = position}};
  VT_TRY(vt__cpu_graph_append(queue, &command));
  graph->lanes[lane]->commands[position - 1].signals = 1;
  return VT_OK;
}

vt_status vt__cpu_graph_join(vt__cpu_graph *graph, vt__cpu_queue *queue, uint32_t lane, uint32_t position) {
  bool joins = vt__cpu_recording(queue) == NULL;
  if (joins) {
    VT_TRY(add_lane(graph, queue, "vt_queue_after_event"));
  }
  if (lane == queue->lane || position == 0) {
    return VT_OK;
  }
  vt_status status = append_wait(graph, queue, lane, position);
  if (status != VT_OK && joins) {
    remove_last_lane(graph);
  }
  return status;
}

static void let_queues_go(vt__cpu_graph *graph) {
  for (uint32_t i = 0; i < graph->lane_count; i++) {
    // relaxed: see vt__cpu_recording().
    atomic_store_explicit(&graph->lanes[i]->queue->graph, NULL, memory_order_relaxed);
    graph->lanes[i]->queue = NULL;
  }
}

void vt__cpu_graph_free(vt__cpu_graph *graph) {
  for (uint32_t i = 0; i < graph->lane_count; i++) {
    vt__cpu_lane *lane = graph->lanes[i];
    for (uint32_t j = 0; j < lane->count; j++) {
      vt__cpu_command_drop(&lane->commands[j]);
    }
    vt__free(lane->commands);
    vt__free(lane);
  }
  pthread_mutex_destroy(&graph->run_mutex);
  vt__free(graph->lanes);
  vt__free(graph->helpers);
  vt__free(graph->jobs);
  vt__free(graph);
}

void vt__cpu_graph_unref(vt__cpu_graph *graph) {
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (atomic_fetch_sub_explicit(&graph->refs, 1, memory_order_acq_rel) == 1) {
    vt__cpu_graph_free(graph);
  }
}

vt_status vt__cpu_capture_abort(void *self, void *native) {
  (void)self;
  vt__cpu_graph *graph = vt__cpu_recording(native);
  let_queues_go(graph);
  vt__cpu_graph_unref(graph);
  return VT_OK;
}

vt_status vt__cpu_capture_end(void *self, void *native, void **out_graph) {
  (void)self;
  vt__cpu_graph *graph = vt__cpu_recording(native);
  let_queues_go(graph);
  vt_status status = vt__cpu_graph_prepare(graph);
  if (status != VT_OK) {
    vt__cpu_graph_unref(graph);
    return status;
  }
  *out_graph = graph;
  return VT_OK;
}

void vt__cpu_graph_destroy(void *self, void *graph) {
  (void)self;
  vt__cpu_graph_unref(graph);
}

vt_status vt__cpu_graph_get_node_count(void *self, void *graph, size_t *out_count) {
  (void)self;
  *out_count = ((vt__cpu_graph *)graph)->node_count;
  return VT_OK;
}

vt_status vt__cpu_graph_launch(void *self, void *native, void *queue) {
  (void)self;
  vt__cpu_graph *graph = native;
  // relaxed: the caller holds a reference.
  atomic_fetch_add_explicit(&graph->refs, 1, memory_order_relaxed);
  vt__cpu_command command = {.kind = VT__CPU_LAUNCH, .u.graph = graph};
  return vt__cpu_submit(queue, &command);
}
