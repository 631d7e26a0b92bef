// launch.c: one run of a graph.
//
// Lane 0 runs on the thread of the queue, every other lane on a helper. A failure is noted once; lanes then cancel what they have
// left and still count it as done, so nobody waits in vain.
#include <string.h>

#include "base/alloc.h"
#include "cpu/graph.h"

typedef struct vt__lane_job {
  vt__cpu_graph *graph;  // kept alive by the launch
  uint32_t lane;
} vt__lane_job;

// States of vt__cpu_graph.failed.
enum { RUNS_WELL = 0, FAILING = 1, FAILED = 2 };

static uint64_t base_of(const vt__cpu_graph *graph, const vt__cpu_lane *lane) {
  return graph->launches * lane->count;
}

static bool has_failed(vt__cpu_graph *graph) {
  // relaxed: only saves work. The error itself is read after all lanes have left, or after an acquire load.
  return atomic_load_explicit(&graph->failed, memory_order_relaxed) != RUNS_WELL;
}

static void note_failure(vt__cpu_graph *graph, vt_status status) {
  uint32_t well = RUNS_WELL;
  // relaxed: only decides who writes the error.
  if (atomic_compare_exchange_strong_explicit(&graph->failed, &well, FAILING, memory_order_relaxed, memory_order_relaxed)) {
    vt__error_save(&graph->error, status);
    // release: partner is the acquire load in cancel_node().
    atomic_store_explicit(&graph->failed, FAILED, memory_order_release);
  }
}

// Cancels a command of a launch that has failed; it finds the failure in the thread's record.
static void cancel_node(vt__cpu_graph *graph, vt__cpu_command *command) {
  // acquire: partner is the release store in note_failure().
  if (atomic_load_explicit(&graph->failed, memory_order_acquire) == FAILED) {
    (void)vt__error_restore(&graph->error);
  } else {
    (void)vt_error_set(VT_ERR_ABORTED, VT_DOMAIN_VT, 0, "vt_graph_launch", "another branch of the graph has failed");
  }
  vt__cpu_command_cancel(command);
}

// Waits until another lane has come to the position.
void vt__cpu_graph_wait_for_lane(vt__cpu_graph *graph, const vt__cpu_command *command) {
  vt__cpu_lane *other = graph->lanes[command->u.lane_wait.lane];
  uint64_t target = base_of(graph, other) + command->u.lane_wait.position;
  (void)vt__counter_wait(&other->progress, target, UINT64_MAX, NULL, VT__CPU_SPINS);
}

static void run_command(vt__cpu_graph *graph, vt__cpu_command *command, const vt__cpu_place *place) {
  if (VT_UNLIKELY(has_failed(graph)) && command->kind != VT__CPU_LANE_WAIT) {
    cancel_node(graph, command);
    return;
  }
  vt_status status = vt__cpu_command_run(command, place);
  if (VT_UNLIKELY(status < 0)) {
    note_failure(graph, status);
  }
}

static void run_lane(vt__cpu_graph *graph, uint32_t index) {
  vt__cpu_lane *lane = graph->lanes[index];
  uint64_t base = base_of(graph, lane);
  vt__cpu_place place = {graph->queue_id, graph->queue_name, 0, (int32_t)index, graph};
  for (uint32_t i = 0; i < lane->count; i++) {
    place.sequence = i + 1;
    run_command(graph, &lane->commands[i], &place);
    if (lane->commands[i].signals != 0) {
      vt__counter_publish(&lane->progress, base + i + 1);
    }
  }
}

static void helper_main(void *arg) {
  vt__lane_job *job = arg;
  run_lane(job->graph, job->lane);
}

// A helper becomes idle again only here, when it has left the graph: so the next launch finds it and starts no other one.
static void run_all_lanes(vt__cpu_graph *graph) {
  for (uint32_t i = 1; i < graph->lane_count; i++) {
    graph->jobs[i] = (vt__lane_job){.graph = graph, .lane = i};
    vt__lane_thread_run(graph->helpers[i - 1], helper_main, &graph->jobs[i]);
  }
  run_lane(graph, 0);
  for (uint32_t i = 1; i < graph->lane_count; i++) {
    vt__lane_thread_wait(graph->helpers[i - 1]);
  }
  vt__lane_threads_return(graph->helpers, graph->lane_count - 1);
  graph->launches++;
}

// Cancels the calls of a launch that doesn't take place. They find the failure in the thread's record.
static void cancel_all(vt__cpu_graph *graph) {
  vt__saved_error why;
  vt__error_save(&why, vt_last_error()->status);
  for (uint32_t i = 0; i < graph->lane_count; i++) {
    vt__cpu_lane *lane = graph->lanes[i];
    for (uint32_t j = 0; j < lane->count; j++) {
      (void)vt__error_restore(&why);
      vt__cpu_command_cancel(&lane->commands[j]);
    }
  }
}

static vt_status run_locked(vt__cpu_graph *graph, const vt__cpu_place *place) {
  if (graph->lane_count > 1 && !vt__lane_threads_take(graph->helpers, graph->lane_count - 1)) {
    vt_status status = vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_graph_launch",
                                    "no threads for %u branches of a graph", graph->lane_count - 1);
    vt__error_save(&graph->error, status);
    cancel_all(graph);
    return vt__error_restore(&graph->error);
  }
  graph->queue_id = place->queue_id;
  memcpy(graph->queue_name, place->queue_name, sizeof(graph->queue_name));
  // relaxed: handed to the helpers with their jobs.
  atomic_store_explicit(&graph->failed, RUNS_WELL, memory_order_relaxed);
  run_all_lanes(graph);
  return has_failed(graph) ? vt__error_restore(&graph->error) : VT_OK;
}

vt_status vt__cpu_graph_run(vt__cpu_graph *graph, const vt__cpu_place *place) {
  pthread_mutex_lock(&graph->run_mutex);
  vt_status status = run_locked(graph, place);
  pthread_mutex_unlock(&graph->run_mutex);
  return status;
}

void vt__cpu_graph_cancel(vt__cpu_graph *graph) {
  pthread_mutex_lock(&graph->run_mutex);  // another queue may be running the same graph
  cancel_all(graph);
  pthread_mutex_unlock(&graph->run_mutex);
}

// Starts the helpers that one launch needs, so that the first one finds them.
static bool warm_up(vt__cpu_graph *graph) {
  uint32_t helpers = graph->lane_count - 1;
  if (!vt__lane_threads_take(graph->helpers, helpers)) {
    return false;
  }
  vt__lane_threads_return(graph->helpers, helpers);
  return true;
}

vt_status vt__cpu_graph_prepare(vt__cpu_graph *graph) {
  graph->helpers = vt__calloc(graph->lane_count, sizeof(*graph->helpers));
  graph->jobs = vt__calloc(graph->lane_count, sizeof(*graph->jobs));
  if (graph->helpers == NULL || graph->jobs == NULL || !warm_up(graph)) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_graph_end_capture",
                        "no memory or threads for the %u branches of a graph", graph->lane_count);
  }
  return VT_OK;
}
