// session.c: see session.h.
#include "session.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <vllm_vt/vt.h>

#include "../toy_backend.h"

#define EXPORT __attribute__((visibility("default")))
#define BYTES ((size_t)1 << 20)
#define CPU ((vt_device){VT_DEVICE_CPU, 0})

static struct {
  vt_queue *queue;
  vt_queue *waiting;  // holds rank 0's barrier
  vt_event *event;
  vt_event *behind;  // the barrier
  vt_graph *graph;
  vt_arena *arena;
  vt_comm_group *group;
  vt_comm *comm;
  void *block;
  void *pinned;
} s;

#define TRY(call)                      \
  do {                                 \
    if ((call) != VT_OK) {             \
      return vt_last_error()->message; \
    }                                  \
  } while (0)

EXPORT const char *vt_session_enumerate(void) {
  int32_t count = 0;
  const vt_backend *backend = NULL;
  TRY(vt_device_get_count(VT_DEVICE_CPU, &count));
  TRY(vt_backend_get(CPU, &backend));
  return count == 1 ? NULL : "there isn't one CPU device";
}

EXPORT const char *vt_session_meet(void) {
  vt_comm_group *group = NULL;
  vt_queue *queue = NULL;
  TRY(vt_comm_group_create(2, NULL, &group));
  TRY(vt_queue_create(CPU, NULL, &queue));
  TRY(vt_comm_batch_begin());
  for (int32_t rank = 0; rank < 2; rank++) {
    vt_comm *comm = NULL;
    TRY(vt_comm_group_get_comm(group, rank, &comm));
    TRY(vt_comm_barrier(comm, queue, NULL));
  }
  TRY(vt_comm_batch_end());
  vt_queue_release(queue);
  vt_comm_group_release(group);
  return NULL;
}

static vt_status take_some_time(void *unused) {
  (void)unused;
  nanosleep(&(struct timespec){0, 1000000}, NULL);
  return VT_OK;
}

// Two branches, so a thread of the pool runs one of them.
static const char *begin_graph(void) {
  vt_queue *side = NULL;
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = VT_QUEUE_ASYNC;
  TRY(vt_queue_create(CPU, &options, &side));
  TRY(vt_graph_begin_capture(s.queue));
  TRY(vt_event_record(s.event, s.queue));
  TRY(vt_queue_after_event(side, s.event));
  TRY(vt_queue_host_func(side, take_some_time, NULL, NULL));
  TRY(vt_memset(s.queue, s.block, 1, BYTES));
  TRY(vt_event_record(s.event, side));
  TRY(vt_queue_after_event(s.queue, s.event));
  TRY(vt_graph_end_capture(s.queue, &s.graph));
  vt_queue_release(side);
  return NULL;
}

// Has a reference of its own: the other one is given back meanwhile.
static void *wait_elsewhere(void *event) {
  (void)vt_event_wait(event, UINT64_C(30000000000));
  vt_event_release(event);
  return NULL;
}

static const char *begin_waiting(void) {
  vt_comm_call call = VT_COMM_CALL_INIT;
  pthread_t thread;
  call.timeout_ns = UINT64_C(30000000000);
  TRY(vt_comm_group_get_comm(s.group, 0, &s.comm));
  TRY(vt_comm_retain(s.comm));
  TRY(vt_comm_barrier(s.comm, s.waiting, &call));
  TRY(vt_event_record(s.behind, s.waiting));
  TRY(vt_event_retain(s.behind));
  if (pthread_create(&thread, NULL, wait_elsewhere, s.behind) != 0) {
    return "no thread";
  }
  pthread_detach(thread);
  return NULL;
}

EXPORT const char *vt_session_begin(void) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = VT_QUEUE_ASYNC;
  TRY(vt_queue_create(CPU, &options, &s.queue));
  TRY(vt_queue_create(CPU, &options, &s.waiting));
  TRY(vt_event_create(CPU, 0, &s.event));
  TRY(vt_event_create(CPU, VT_EVENT_BLOCKING, &s.behind));
  TRY(vt_alloc(CPU, BYTES, &s.block));
  TRY(vt_pinned_alloc(CPU, BYTES, &s.pinned));
  TRY(vt_arena_create(CPU, BYTES, &s.arena));
  TRY(vt_comm_group_create(2, NULL, &s.group));
  const char *problem = begin_graph();
  problem = problem == NULL ? begin_waiting() : problem;
  for (int i = 0; problem == NULL && i < 20; i++) {
    TRY(vt_graph_launch(s.graph, s.queue));
    TRY(vt_copy(s.queue, s.pinned, s.block, BYTES));
  }
  TRY(vt_event_record(s.event, s.queue));
  return problem;
}

EXPORT const char *vt_session_use(void) {
  vt_event *late = NULL;
  TRY(vt_event_create(CPU, 0, &late));
  TRY(vt_graph_launch(s.graph, s.queue));
  TRY(vt_copy(s.queue, s.pinned, s.block, BYTES));
  TRY(vt_event_record(late, s.queue));
  TRY(vt_event_synchronize(late));
  if (((const char *)s.pinned)[BYTES - 1] != 1) {
    return "the late copy brought nothing";
  }
  vt_event_release(late);
  TRY(vt_event_query(s.event));
  vt_event_release(s.event);
  vt_graph_release(s.graph);
  vt_arena_release(s.arena);
  TRY(vt_queue_destroy(s.queue));
  TRY(vt_free(CPU, s.block));
  TRY(vt_pinned_free(CPU, s.pinned));
  TRY(vt_comm_abort(s.comm, "the process ends"));
  vt_comm_release(s.comm);
  vt_comm_group_release(s.group);
  vt_event_release(s.behind);
  vt_queue_release(s.waiting);
  return NULL;
}

EXPORT const char *vt_session_block(void) {
  vt_queue *queue = s.waiting;
  TRY(vt_queue_retain(queue));
  (void)vt_queue_synchronize(queue);
  vt_queue_release(queue);
  return NULL;
}

static void (*at_end)(void);

EXPORT void vt_session_at_end(void (*fn)(void)) {
  at_end = fn;
}

__attribute__((destructor)) static void end(void) {
  if (at_end != NULL) {
    at_end();
  }
}

// First use from many threads.

enum { RACERS = 8 };

static pthread_barrier_t door;

typedef struct racer {
  const vt_backend *cpu;
  vt_op_id op;
  char problem[VT_ERROR_MESSAGE_MAX];
} racer;

// A backend three times over, and what is built in.
static const char *race_once(racer *r) {
  vt_op_id op = 0;
  const vt_op_provider *found = NULL;
  for (int i = 0; i < 3; i++) {
    TRY(vt_toy_register((vt_device){VT_DEVICE_METAL, 0}));
  }
  TRY(vt_backend_get(CPU, &r->cpu));
  TRY(vt_op_intern("vt-session.race", &r->op));
  TRY(vt_op_intern("vt.all_reduce", &op));
  TRY(vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  return strcmp(found->name, VT_OP_NATIVE_NAME) == 0 ? vt_session_enumerate() : "another provider was found";
}

static void *race(void *arg) {
  racer *r = arg;
  pthread_barrier_wait(&door);
  const char *problem = race_once(r);
  snprintf(r->problem, sizeof(r->problem), "%s", problem == NULL ? "" : problem);
  return NULL;
}

EXPORT const char *vt_session_race(void) {
  static racer racers[RACERS];
  pthread_t threads[RACERS];
  int32_t count = 0;
  pthread_barrier_init(&door, NULL, RACERS);
  for (int i = 0; i < RACERS; i++) {
    if (pthread_create(&threads[i], NULL, race, &racers[i]) != 0) {
      return "no thread";
    }
  }
  for (int i = 0; i < RACERS; i++) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < RACERS; i++) {
    if (racers[i].problem[0] != 0) {
      return racers[i].problem;
    }
    if (racers[i].cpu != racers[0].cpu || racers[i].op != racers[0].op) {
      return "two threads found two devices, or two ids of one name";
    }
  }
  TRY(vt_device_get_count(VT_DEVICE_METAL, &count));
  return count == 1 ? NULL : "there isn't one METAL device";
}

// First calls.

static void some_function(void) {}

static vt_status first_provider(void) {
  const vt_op_provider provider = {.struct_size = sizeof(provider), .name = "vt-first", .priority = 1, .fn = some_function};
  vt_op_id op = 0;
  vt_status status = vt_op_intern("vt.all_reduce", &op);
  return status == VT_OK ? vt_op_provider_register(op, VT_DEVICE_CPU, &provider) : status;
}

static vt_status first_release(void) {
  vt_queue_release(NULL);
  vt_event_release(NULL);
  vt_graph_release(NULL);
  vt_comm_group_release(NULL);
  vt_op_set_strict(0);
  return vt_last_error()->status;
}

// Call number `n`: what it answers, and in *out what it should.
static vt_status call_first(int n, vt_status *out) {
  static void *object;
  int32_t count = 0;
  vt_device_info info = VT_DEVICE_INFO_INIT;
  *out = VT_OK;
  switch (n) {
    case 0:
      return vt_device_get_count(VT_DEVICE_CPU, &count);
    case 1:
      return vt_device_get_info(CPU, &info);
    case 2:
      return vt_queue_create(CPU, NULL, (vt_queue **)&object);
    case 3:
      return vt_event_create(CPU, VT_EVENT_TIMING, (vt_event **)&object);
    case 4:
      return vt_alloc(CPU, 100, &object);
    case 5:
      return vt_pinned_alloc(CPU, 100, &object);
    case 6:
      return vt_arena_create(CPU, 100, (vt_arena **)&object);
    case 7:
      return vt_comm_group_create(2, NULL, (vt_comm_group **)&object);
    case 8:
      return vt_toy_register((vt_device){VT_DEVICE_METAL, 0});
    case 9:
      return first_provider();
    case 10:
      return vt_comm_batch_begin() == VT_OK ? vt_comm_batch_end() : VT_ERR_INTERNAL;
    case 11:
      return vt_backend_find(CPU) != NULL ? VT_OK : VT_ERR_NOT_FOUND;
    case 12:
      return vt_device_flush(CPU);
    case 13:
      return first_release();
    case 14:
      *out = VT_ERR_INVALID_ARGUMENT;
      return vt_queue_synchronize(NULL);
    case 15:
      *out = VT_ERR_NOT_FOUND;
      return vt_alloc((vt_device){VT_DEVICE_CUDA, 0}, 100, &object);
    default:
      *out = VT_NOT_READY;
      return VT_NOT_READY;
  }
}

EXPORT const char *vt_session_first(int n) {
  vt_status expected;
  vt_status status = call_first(n, &expected);
  if (status != expected) {
    return status < 0 ? vt_last_error()->message : "the first call answered something else";
  }
  return status == VT_NOT_READY ? "no such call" : vt_session_enumerate();
}
