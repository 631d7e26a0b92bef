// graph.c: captures, graphs and their launches.
//
// What is refused inside a capture fails the capture, so those scenarios begin again where that happens.
#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

enum { MANY_NODES = 70 };  // more than a lane holds at first

static char bytes[3];

static vt_event *new_event(void) {
  vt_event *event = NULL;
  DO(vt_event_create, (cpu, 0, &event));
  return event;
}

// The failure of a call inside a capture is what its end answers.
static bool end_failed(vt_queue *queue) {
  const char *function = vt_last_error()->function;
  vt_graph *graph = NULL;
  SURE(vt_graph_end_capture(queue, &graph) == VT_ERR_OUT_OF_MEMORY && graph == NULL);
  SURE(vt_last_error()->function == function);
  SURE(vt_queue_is_capturing(queue) == 0);
  return false;
}

static bool record_nodes(vt_queue *queue, char *to) {
  for (int i = 0; i < MANY_NODES; i++) {
    if (!TRY(vt_memset, (queue, to, i, 1))) {
      return false;
    }
  }
  return true;
}

static bool capture_one(vt_queue *queue, vt_graph **out_graph) {
  DO(vt_graph_begin_capture, (queue));
  if (!record_nodes(queue, bytes)) {
    return end_failed(queue);
  }
  bool made = TRY(vt_graph_end_capture, (queue, out_graph));
  SURE(vt_queue_is_capturing(queue) == 0);
  return made;
}

static void use_graph(vt_graph *graph) {
  size_t count = 0;
  vt_device device;
  ASK(vt_graph_get_node_count, (graph, &count));
  SURE(count == MANY_NODES);
  ASK(vt_graph_get_device, (graph, &device));
  LOOK(vt_graph_get_id, (graph));
  LOOK(vt_graph_get_native, (graph));
  ASK(vt_graph_retain, (graph));
  TELL(vt_graph_release, (graph));
}

static void one_lane(int pass) {
  vt_queue *queue = fault_queue(cpu, 0);
  vt_graph *graph = NULL;
  (void)pass;
  while (!capture_one(queue, &graph)) {
  }
  use_graph(graph);
  ASK(vt_graph_launch, (graph, queue));
  SURE(bytes[0] == MANY_NODES - 1);
  TELL(vt_graph_release, (graph));
  TELL(vt_queue_release, (queue));
}

static void stored(int pass) {
  vt_queue *queue = fault_queue(cpu, 0);
  (void)pass;
  while (!capture_one(queue, NULL)) {
  }
  ASK(vt_queue_replay, (queue));
  // Where a capture fails, the graph from before stays.
  if (!capture_one(queue, NULL)) {
    ASK(vt_queue_replay, (queue));
  }
  DO(vt_graph_begin_capture, (queue));
  ASK(vt_graph_abort_capture, (queue));
  TELL(vt_queue_release, (queue));
}

// The launch is the first operation of an asynchronous queue.
static void launched_first(int pass) {
  vt_queue *queue = fault_queue(cpu, 0);
  vt_queue *async = fault_queue(cpu, VT_QUEUE_ASYNC);
  vt_queue *keeps = fault_queue(cpu, VT_QUEUE_ASYNC);
  vt_graph *graph = NULL;
  (void)pass;
  while (!capture_one(queue, &graph)) {
  }
  while (!capture_one(keeps, NULL)) {
  }
  DO(vt_graph_launch, (graph, async));
  DO(vt_queue_replay, (keeps));
  vt_graph_release(graph);
  ASK(vt_queue_destroy, (async));
  ASK(vt_queue_destroy, (keeps));
  vt_queue_release(queue);
}

typedef struct fork_join {
  vt_queue *queues[3];
  vt_event *forked;
  vt_event *joined[2];
} fork_join;

// A queue that can't join is not in the capture, which goes on: what it is given runs at once.
static void join(vt_queue *queue, vt_event *event, char *to) {
  if (!TRY(vt_queue_after_event, (queue, event))) {
    *to = 0;
    SURE(vt_queue_is_capturing(queue) == 0);
    ASK(vt_memset, (queue, to, 7, 1));
    SURE(*to == 7);
    DO(vt_queue_after_event, (queue, event));
  }
}

// One queue with work that forks two others and joins them.
static bool capture_branches(const fork_join *f, vt_graph **out_graph) {
  vt_queue *origin = f->queues[0];
  DO(vt_graph_begin_capture, (origin));
  if (!TRY(vt_memset, (origin, &bytes[0], 1, 1)) || !TRY(vt_event_record, (f->forked, origin))) {
    return end_failed(origin);
  }
  for (int i = 0; i < 2; i++) {
    join(f->queues[i + 1], f->forked, &bytes[i + 1]);
    if (!TRY(vt_memset, (f->queues[i + 1], &bytes[i + 1], 2, 1)) || !TRY(vt_event_record, (f->joined[i], f->queues[i + 1])) ||
        !TRY(vt_queue_after_event, (origin, f->joined[i]))) {
      return end_failed(origin);
    }
  }
  bool made = TRY(vt_graph_end_capture, (origin, out_graph));
  for (int i = 0; i < 3; i++) {
    SURE(vt_queue_is_capturing(f->queues[i]) == 0);
  }
  return made;
}

static void branches(int pass) {
  fork_join f = {{fault_queue(cpu, 0), fault_queue(cpu, 0), fault_queue(cpu, 0)}, new_event(), {new_event(), new_event()}};
  vt_graph *graph = NULL;
  (void)pass;
  while (!capture_branches(&f, &graph)) {
  }
  memset(bytes, 0, sizeof(bytes));
  ASK(vt_graph_launch, (graph, f.queues[0]));
  SURE(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 2);
  vt_graph_release(graph);
  for (int i = 0; i < 3; i++) {
    vt_queue_release(f.queues[i]);
  }
  vt_event_release(f.forked);
  vt_event_release(f.joined[0]);
  vt_event_release(f.joined[1]);
}

const scenario fault_scenarios_graph[] = {{"one_lane", one_lane, false},
                                          {"stored", stored, false},
                                          {"launched_first", launched_first, false},
                                          {"branches", branches, false},
                                          {NULL, NULL, false}};
