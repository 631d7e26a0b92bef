// stream_graph.c: graphs that were captured, launched, kept and replayed.
#include <string.h>

#include "fuzz.h"

void stream_record_op(stream *s, const stream_op *op) {
  stream_graph *graph = &s->recorded[s->captures.queues[op->queue].capture - s->captures.captures];
  if (graph->count < STREAM_OPS) {
    graph->ops[graph->count] = *op;
  } else {
    graph->cut = 1;
  }
  graph->fails |= op->kind == STREAM_FAIL;
  graph->count++;
}

static void keep(stream *s, stream_graph graph, int q, int to_slot) {
  if (to_slot >= STREAM_GRAPHS) {
    s->queues[q].stored = graph;
    return;
  }
  vt_graph_release(s->graphs[to_slot].graph);
  s->graphs[to_slot] = graph;
  size_t count = 0;
  CALL(FUZZ_OK, vt_graph_get_node_count(graph.graph, &count));
  MUST(count == graph.count);
}

void stream_end_capture(stream *s, int q, int to_slot) {
  const model_capture *capture = s->captures.queues[q].capture;
  stream_graph graph = {0};
  if (capture != NULL) {
    graph = s->recorded[capture - s->captures.captures];
    graph.branched = capture->count > 1;
  }
  vt_status expected = model_end(&s->captures, q);
  int stored = to_slot >= STREAM_GRAPHS;
  vt_status status = CALL(ONE_OF(expected), vt_graph_end_capture(s->queues[q].queue, stored ? NULL : &graph.graph));
  if (status == VT_OK) {
    keep(s, graph, q, to_slot);
  } else {
    MUST(graph.graph == NULL);
  }
}

// What one run leaves behind. Of branches where one fails, and of what the model had no room for, nothing is known from then on.
static void apply(stream *s, const stream_graph *graph) {
  int unknown = graph->cut || (graph->fails && graph->branched);
  for (uint32_t i = 0; i < graph->count && i < STREAM_OPS; i++) {
    s->queues[graph->ops[i].queue].known &= !unknown;
  }
  for (uint32_t i = 0; i < graph->count && !unknown && graph->ops[i].kind != STREAM_FAIL; i++) {
    stream_apply(s, &graph->ops[i]);
  }
  for (int i = 0; graph->cut && i < MODEL_QUEUES; i++) {
    s->queues[i].known = 0;
  }
}

// What launching on a queue that has nothing pending answers, apart from what the graph is.
static vt_status expected_of(const stream *s, int q, const stream_graph *graph) {
  const stream_queue *to = &s->queues[q];
  if (model_is_capturing(&s->captures, q) || !graph->is_there) {
    return VT_ERR_FAILED_PRECONDITION;
  }
  if (graph->device != to->device) {
    return VT_ERR_INVALID_ARGUMENT;
  }
  return to->failed || (graph->fails && !to->async) ? VT_ERR_INTERNAL : VT_OK;
}

static void run(stream *s, int q, const stream_graph *graph, int stored) {
  stream_queue *to = &s->queues[q];
  stream_settle(s);
  vt_status expected = expected_of(s, q, graph);
  vt_status status = stored ? CALL(ONE_OF(expected), vt_queue_replay(to->queue))
                            : CALL(ONE_OF(expected), vt_graph_launch(graph->graph, to->queue));
  if (status == VT_OK || (status == VT_ERR_INTERNAL && !to->failed)) {
    apply(s, graph);
    to->failed |= graph->fails && to->async;
  }
  if (status == VT_ERR_FAILED_PRECONDITION || status == VT_ERR_INVALID_ARGUMENT) {
    model_refused(&s->captures, q, status);
  }
  stream_settle(s);
}

void stream_launch(stream *s, fuzz_input *in) {
  int q = fuzz_below(in, MODEL_QUEUES);
  stream_graph *graph = &s->graphs[fuzz_below(in, STREAM_GRAPHS)];
  if (s->queues[q].queue == NULL || !graph->is_there) {
    return;
  }
  run(s, q, graph, 0);
  if (fuzz_below(in, 8) == 7) {
    vt_graph *dead = graph->graph;
    size_t count;
    vt_graph_release(dead);
    *graph = (stream_graph){0};
    CALL(FUZZ_INVALID, vt_graph_get_node_count(dead, &count));
    CALL(FUZZ_INVALID, vt_graph_retain(dead));
  }
}

void stream_replay(stream *s, fuzz_input *in) {
  int q = fuzz_below(in, MODEL_QUEUES);
  if (s->queues[q].queue != NULL) {
    run(s, q, &s->queues[q].stored, 1);
  }
}
