// capture_random.c: random programs of captures against the reference model: membership, statuses, and that nothing stays behind.
#include "capture_model.h"
#include "vt_test.h"

#include <stdbool.h>

enum { SPARES = 32 };

typedef struct program {
  vt_case *c;
  capture_model model;
  vt_queue *queues[MODEL_QUEUES];
  vt_event *events[MODEL_EVENTS];
  vt_queue *spares[SPARES];  // a thread that captures can't create queues
  uint32_t spare_count;
  uint64_t step;
  uint32_t graphs;  // made
  uint32_t branched;
  uint32_t joins;
  uint32_t drops;  // of queues in a capture
} program;

static vt_queue *new_queue(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  options.ring_capacity = 64;
  vt_queue *queue = NULL;
  EXPECT_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  return queue;
}

static vt_event *new_event(vt_case *c) {
  vt_event *event = NULL;
  EXPECT_OK(c, vt_event_create(vt_test_device(c), 0, &event));
  return event;
}

static vt_status end_and_launch(program *p, int queue, uint32_t branched) {
  vt_graph *graph = NULL;
  vt_status status = vt_graph_end_capture(p->queues[queue], &graph);
  if (status == VT_OK) {
    p->graphs++;
    p->branched += branched;
    EXPECT_OK(p->c, vt_graph_launch(graph, p->queues[queue]));
    vt_graph_release(graph);
  }
  return status;
}

static int nobody_captures(const program *p) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (model_is_capturing(&p->model, i)) {
      return 0;
    }
  }
  return 1;
}

static void refill(program *p) {
  while (p->spare_count < SPARES && nobody_captures(p)) {
    p->spares[p->spare_count++] = new_queue(p->c);
  }
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (p->queues[i] == NULL && p->spare_count > 0) {
      p->queues[i] = p->spares[--p->spare_count];
    }
  }
}

static void drop_queue(program *p, int queue) {
  p->drops += (uint32_t)model_is_capturing(&p->model, queue);
  vt_queue_release(p->queues[queue]);
  p->queues[queue] = NULL;
  model_drop_queue(&p->model, queue);
}

static void drop_event(program *p, int event) {
  vt_event_release(p->events[event]);
  p->events[event] = new_event(p->c);
  model_drop_event(&p->model, event);
}

static void check(program *p, const char *what, vt_status expected, vt_status status) {
  if (expected != status) {
    FAIL_CASE(p->c, "step %llu, %s: expected %s, got %s (%s)", (unsigned long long)p->step, what, vt_status_get_name(expected),
              vt_status_get_name(status), status < 0 ? vt_last_error()->message : "");
  }
}

// Work without memory: what a released queue still does, and what branches do, isn't ordered.
static vt_status nothing(void *unused) {
  (void)unused;
  return VT_OK;
}

// One step on a queue that is there.
static void take(program *p, uint64_t dice, int q, int e) {
  capture_model *model = &p->model;
  vt_queue *queue = p->queues[q];
  vt_event *event = p->events[e];
  int was = model_is_capturing(model, q);
  if (dice < 12) {
    check(p, "begin", model_begin(model, q), vt_graph_begin_capture(queue));
  } else if (dice < 24) {
    uint32_t branched = was && model->queues[q].capture->count > 1;
    vt_status expected = model_end(model, q);
    check(p, "end", expected, end_and_launch(p, q, branched));
  } else if (dice < 26) {
    check(p, "abort", model_abort(model, q), vt_graph_abort_capture(queue));
  } else if (dice < 56) {
    check(p, "record", model_record(model, q, e), vt_event_record(event, queue));
  } else if (dice < 86) {
    check(p, "wait", model_wait(model, q, e), vt_queue_after_event(queue, event));
    p->joins += (uint32_t)(!was && model_is_capturing(model, q));
  } else if (dice < 116) {
    check(p, "work", model_work(model, q), vt_queue_host_func(queue, nothing, NULL, NULL));
  } else if (dice < 120) {
    drop_queue(p, q);
  } else {
    drop_event(p, e);
  }
}

// Mostly an event that `queue` may wait for without failing its capture: few random programs get to a graph otherwise.
static int likely_event(const program *p, int queue, vt_test_rng *rng) {
  int first = (int)vt_test_random_below(rng, MODEL_EVENTS);
  const model_capture *capture = p->model.queues[queue].capture;
  for (int i = 0; capture != NULL && i < MODEL_EVENTS && vt_test_random_below(rng, 64) != 0; i++) {
    int e = (first + i) % MODEL_EVENTS;
    if (p->model.events[e].capture_id == capture->id) {
      return e;
    }
  }
  return first;
}

static void check_membership(program *p) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (p->queues[i] != NULL && vt_queue_is_capturing(p->queues[i]) != model_is_capturing(&p->model, i)) {
      FAIL_CASE(p->c, "step %llu: queue %d should %s be in a capture", (unsigned long long)p->step, i,
                model_is_capturing(&p->model, i) ? "" : "not");
    }
  }
}

static void finish(program *p) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    (void)model_abort(&p->model, i);
    (void)vt_graph_abort_capture(p->queues[i]);  // a queue that only joined goes free with the abort of its origin
  }
  refill(p);
  unsigned char *after = vt_test_alloc(p->c, MODEL_QUEUES);
  for (int i = 0; i < MODEL_QUEUES; i++) {
    EXPECT_EQ(p->c, 0, vt_queue_is_capturing(p->queues[i]));
    EXPECT_OK(p->c, vt_memset(p->queues[i], &after[i], 9, 1));
    EXPECT_OK(p->c, vt_queue_destroy(p->queues[i]));
  }
  EXPECT_FILLED(p->c, 9, after, MODEL_QUEUES);
  while (p->spare_count > 0) {
    vt_queue_release(p->spares[--p->spare_count]);
  }
  for (int i = 0; i < MODEL_EVENTS; i++) {
    vt_event_release(p->events[i]);
  }
}

static void capture_membership_follows_the_model(vt_case *c) {
  static program p;  // the clocks of all members are too large for a stack
  uint64_t steps = vt_test_is_slow() ? 100000 : 1000000;
  p = (program){.c = c};
  vt_test_rng rng = vt_test_rng_begin(c, 0);
  for (int i = 0; i < MODEL_EVENTS; i++) {
    p.events[i] = new_event(c);
  }
  for (p.step = 0; p.step < steps && vt_test_is_clean(c); p.step++) {
    refill(&p);
    int q = (int)vt_test_random_below(&rng, MODEL_QUEUES);
    uint64_t dice = vt_test_random_below(&rng, 124);
    int e = likely_event(&p, q, &rng);
    bool refused = dice < 12 && model_is_capturing(&p.model, q);  // a second begin, which fails the capture: rarely
    if (p.queues[q] != NULL && !(refused && vt_test_random_below(&rng, 16) != 0)) {
      take(&p, dice, q, e);
      check_membership(&p);
    }
  }
  finish(&p);
  // Programs that never get anywhere would show nothing.
  EXPECT_TRUE(c, p.graphs > 100 && p.branched > 10 && p.joins > 100 && p.drops > 100);
}

const vt_test_case vt_cases_capture_random[] = {
    {"capture_membership_follows_the_model", NEED_GRAPH | NEED_CPU | REPORTS, capture_membership_follows_the_model}, VT_TEST_END};
