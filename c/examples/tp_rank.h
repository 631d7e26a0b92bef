// tp_rank.h: one rank of tp_digits.c: its queues, its captured steps, and the loop that runs them.
#ifndef EXAMPLES_TP_RANK_H
#define EXAMPLES_TP_RANK_H

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <vllm_vt/vt.h>

#include "digits.h"
#include "tp_model.h"

// Timed passes over all images; one more comes first, to warm up. Sanitizers make a pass some hundred times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PASSES 2
#else
#define PASSES 50
#endif

enum {
  BATCH = 64,
  SLOTS = 2,  // results in flight
  MAX_WORLD = 4,
};

static const vt_device cpu = {VT_DEVICE_CPU, 0};

typedef struct rank rank;

// One batch size: where its activations lie, and the captured step.
typedef struct step {
  rank *owner;
  size_t batch;
  float *hidden1;   // [batch][share of layer 1]
  float *hidden2;   // [batch][layer 2]: partial sums, then their sum over the ranks
  float *scores;    // [batch][share of the classes]
  float *gathered;  // [world][batch][share of the classes]
  vt_graph *graph;
} step;

// The way of one step's result to the host.
typedef struct slot {
  void *staged;      // device memory, so that the next step may overwrite `classes`
  void *pinned;      // host memory
  vt_event *ready;   // `staged` is filled
  vt_event *copied;  // `pinned` is filled
  size_t first;      // image
  size_t batch;      // 0: nothing to wait for
} slot;

// What all ranks of a run share.
typedef struct run {
  const mlp *net;
  const float *images;  // pinned, [count][DIGITS_PIXELS]
  size_t count;
  size_t world;
} run;

struct rank {
  const run *run;
  size_t index;
  vt_comm *comm;  // borrowed from the group
  vt_queue *main;
  vt_queue *copy;
  vt_arena *arena;
  tp_model model;
  float *input;      // [BATCH][DIGITS_PIXELS]; persistent, since its address is baked into the graphs
  uint8_t *classes;  // [BATCH], likewise
  step full;         // BATCH images
  step rest;         // what is left at the end
  slot slots[SLOTS];

  uint64_t reduce_begin;  // these three belong to the thread of the main queue
  uint64_t reduce_ns;
  uint64_t reduces;

  uint8_t *answers;  // [count]
  uint64_t elapsed_ns;
  vt_status status;
  char error[VT_ERROR_MESSAGE_MAX + 128];
};

static inline uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// Kernels. Host functions in place of what would be kernel launches on a GPU: they run on the main queue's worker.

static inline vt_status kernel_hidden(void *user) {
  step *s = user;
  rank *r = s->owner;
  const tp_model *model = &r->model;
  dense_apply(&model->hidden1, model->hidden1.bias, r->input, s->hidden1, s->batch);
  relu(s->hidden1, s->batch * model->hidden1.outputs);
  dense_apply(&model->hidden2, NULL, s->hidden1, s->hidden2, s->batch);
  r->reduce_begin = now_ns();  // the all-reduce stands next in the queue
  return VT_OK;
}

static inline vt_status kernel_scores(void *user) {
  step *s = user;
  rank *r = s->owner;
  const tp_model *model = &r->model;
  r->reduce_ns += now_ns() - r->reduce_begin;
  r->reduces++;
  bias_relu(model->hidden2.bias, s->hidden2, s->batch, model->hidden2.outputs);
  dense_apply(&model->scores, model->scores.bias, s->hidden2, s->scores, s->batch);
  return VT_OK;
}

static inline vt_status kernel_classes(void *user) {
  step *s = user;
  best_class(s->gathered, s->owner->model.scores.outputs, s->batch, s->owner->classes);
  return VT_OK;
}

// Set-up.

static inline vt_status take_floats(vt_arena *arena, size_t count, float **out) {
  void *block = NULL;
  TRY(vt_arena_alloc_elements(arena, count, VT_DTYPE_F32, &block));
  *out = block;
  return VT_OK;
}

// Queues one step; between begin and end of a capture this records it.
static inline vt_status step_submit(step *s) {
  rank *r = s->owner;
  const size_t width = r->model.hidden2.outputs;
  TRY(vt_queue_host_func(r->main, kernel_hidden, s, NULL));
  TRY(vt_comm_all_reduce(r->comm, r->main, s->hidden2, s->hidden2, s->batch * width, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  TRY(vt_queue_host_func(r->main, kernel_scores, s, NULL));
  TRY(vt_comm_all_gather(r->comm, r->main, s->scores, s->gathered, s->batch * r->model.scores.outputs, VT_DTYPE_F32, NULL));
  return vt_queue_host_func(r->main, kernel_classes, s, NULL);
}

static inline vt_status step_capture(rank *r, size_t batch, step *s) {
  const tp_model *model = &r->model;
  vt_arena_mark mark;
  *s = (step){.owner = r, .batch = batch};
  // Both batch sizes use the same bytes of the arena: on one queue they never run at once.
  TRY(vt_arena_get_mark(r->arena, &mark));
  TRY(take_floats(r->arena, batch * model->hidden1.outputs, &s->hidden1));
  TRY(take_floats(r->arena, batch * model->hidden2.outputs, &s->hidden2));
  TRY(take_floats(r->arena, batch * model->scores.outputs, &s->scores));
  TRY(take_floats(r->arena, batch * model->scores.outputs * r->run->world, &s->gathered));

  TRY(vt_graph_begin_capture(r->main));
  vt_status status = step_submit(s);
  if (status != VT_OK) {
    (void)vt_graph_abort_capture(r->main);
    return status;
  }
  TRY(vt_graph_end_capture(r->main, &s->graph));
  return vt_arena_rewind(r->arena, mark);
}

static inline vt_status rank_open(rank *r) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = VT_QUEUE_ASYNC;
  options.name = "main";
  TRY(vt_queue_create(cpu, &options, &r->main));
  options.name = "copy";
  TRY(vt_queue_create(cpu, &options, &r->copy));
  TRY(tp_model_load(cpu, r->main, r->run->net, r->index, r->run->world, &r->model));
  for (size_t i = 0; i < SLOTS; i++) {
    TRY(vt_alloc(cpu, BATCH, &r->slots[i].staged));
    TRY(vt_pinned_alloc(cpu, BATCH, &r->slots[i].pinned));
    TRY(vt_event_create(cpu, 0, &r->slots[i].ready));
    TRY(vt_event_create(cpu, VT_EVENT_BLOCKING, &r->slots[i].copied));
  }

  void *classes = NULL;
  TRY(vt_arena_create(cpu, 256 << 10, &r->arena));
  TRY(take_floats(r->arena, BATCH * DIGITS_PIXELS, &r->input));
  TRY(vt_arena_alloc(r->arena, BATCH, &classes));
  r->classes = classes;
  TRY(step_capture(r, BATCH, &r->full));
  return r->run->count % BATCH == 0 ? VT_OK : step_capture(r, r->run->count % BATCH, &r->rest);
}

// Waits for the queues, then gives everything back, however far rank_open() came.
static inline void rank_close(rank *r) {
  if (r->main != NULL) {
    (void)vt_queue_destroy(r->main);
  }
  if (r->copy != NULL) {
    (void)vt_queue_destroy(r->copy);
  }
  vt_graph_release(r->full.graph);
  vt_graph_release(r->rest.graph);
  for (size_t i = 0; i < SLOTS; i++) {
    vt_event_release(r->slots[i].ready);
    vt_event_release(r->slots[i].copied);
    (void)vt_pinned_free(cpu, r->slots[i].pinned);
    (void)vt_free(cpu, r->slots[i].staged);
  }
  tp_model_free(cpu, &r->model);
  vt_arena_release(r->arena);
}

// The run.

// Queues the step of the images from `first` on, and the way of its result to the host.
static inline vt_status submit(rank *r, size_t first, slot *out) {
  const size_t left = r->run->count - first;
  const step *s = left >= BATCH ? &r->full : &r->rest;
  TRY(vt_copy(r->main, r->input, r->run->images + first * DIGITS_PIXELS, s->batch * DIGITS_PIXELS * sizeof(float)));
  TRY(vt_graph_launch(s->graph, r->main));
  TRY(vt_copy(r->main, out->staged, r->classes, s->batch));
  TRY(vt_event_record(out->ready, r->main));

  TRY(vt_queue_after_event(r->copy, out->ready));
  TRY(vt_copy(r->copy, out->pinned, out->staged, s->batch));
  TRY(vt_event_record(out->copied, r->copy));
  out->first = first;
  out->batch = s->batch;
  return VT_OK;
}

// Waits for the result of an earlier step. Only this waits; the main queue goes on.
static inline vt_status collect(rank *r, slot *from) {
  if (from->batch != 0) {
    TRY(vt_event_synchronize(from->copied));
    memcpy(r->answers + from->first, from->pinned, from->batch);
    from->batch = 0;
  }
  return VT_OK;
}

static inline vt_status pass(rank *r) {
  size_t steps = 0;
  for (size_t first = 0; first < r->run->count; first += BATCH, steps++) {
    TRY(submit(r, first, &r->slots[steps % SLOTS]));
    TRY(collect(r, &r->slots[(steps + 1) % SLOTS]));
  }
  return collect(r, &r->slots[(steps - 1) % SLOTS]);
}

static inline vt_status rank_run(rank *r) {
  TRY(rank_open(r));
  TRY(pass(r));  // warms up
  TRY(vt_comm_barrier(r->comm, r->main, NULL));
  TRY(vt_queue_synchronize(r->main));
  r->reduce_ns = 0;
  r->reduces = 0;
  const uint64_t begin = now_ns();
  for (int i = 0; i < PASSES; i++) {
    TRY(pass(r));
  }
  r->elapsed_ns = now_ns() - begin;
  return VT_OK;
}

static inline void *rank_thread(void *user) {
  rank *r = user;
  r->status = rank_run(r);
  if (r->status != VT_OK) {
    const vt_error *error = vt_last_error();
    snprintf(r->error, sizeof r->error, "%s: %s: %s", error->function, vt_status_get_name(error->status), error->message);
    (void)vt_comm_abort(r->comm, r->error);  // so that no peer waits for this rank
  }
  rank_close(r);
  return NULL;
}

#endif
