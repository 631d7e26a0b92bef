// cpu.h: the objects of the CPU backend.
#ifndef VT_CPU_CPU_H
#define VT_CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"
#include "core/log.h"
#include "cpu/timeline.h"
#include "vllm_vt/backend.h"
#include "vllm_vt/event.h"

// Polls before a thread sleeps: some tens of microseconds, about the price of being woken.
#define VT__CPU_SPINS 2000

typedef struct vt__cpu_event vt__cpu_event;
typedef struct vt__cpu_graph vt__cpu_graph;

typedef enum vt__cpu_kind {
  VT__CPU_COPY,
  VT__CPU_COPY_BATCH,
  VT__CPU_COPY_2D,
  VT__CPU_FILL,
  VT__CPU_CALL,
  VT__CPU_WAIT,       // for a command of another queue
  VT__CPU_STAMP,      // of a timing event
  VT__CPU_LAUNCH,     // a graph
  VT__CPU_LANE_WAIT,  // in graphs only: for a position of another lane
} vt__cpu_kind;

// One operation, by value: an entry of a ring or of a graph's lane.
typedef struct vt__cpu_command {
  uint32_t kind;     // vt__cpu_kind
  uint32_t signals;  // in graphs: another lane waits for this position
  union {
    struct {
      void *dst;
      const void *src;
      size_t bytes;
    } copy;
    struct {
      const vt_copy_op *ops;
      size_t count;
      void *kept;  // memory of the ops, given back with the command; NULL: they are the caller's
    } batch;
    struct {
      char *dst;
      const char *src;
      size_t dst_pitch;
      size_t src_pitch;
      size_t width;
      size_t rows;
    } copy_2d;
    struct {
      void *ptr;
      size_t bytes;
      uint8_t value;
    } fill;
    vt_host_call call;
    struct {
      vt__timeline *timeline;  // holds a reference
      uint64_t ticket;
    } wait;
    struct {
      vt__cpu_event *event;  // holds a reference
      uint64_t generation;
    } stamp;
    vt__cpu_graph *graph;  // holds a reference
    struct {
      uint32_t lane;
      uint32_t position;
    } lane_wait;
  } u;
} vt__cpu_command;

#define VT__CPU_NAME_BYTES 16

// Where a command runs, for those who follow it.
typedef struct vt__cpu_place {
  uint64_t queue_id;
  const char *queue_name;
  uint64_t sequence;     // the ticket; in a graph, the position
  int32_t branch;        // in a graph, the lane
  vt__cpu_graph *graph;  // NULL outside
} vt__cpu_place;

// What different threads write lies on different lines: submitters and the worker would wait for each other's stores otherwise.
typedef struct vt__cpu_queue {
  _Atomic(vt__cpu_graph *) graph;     // that is being recorded; NULL: none is
  vt__timeline *timeline;             // NULL for a synchronous queue: its work is done when a call returns
  _Atomic uint64_t tickets;           // of a synchronous queue
  _Atomic(const void *) graph_owner;  // vt__thread_token() of the thread that records; set before `graph`
  uint32_t lane;                      // of this queue in the graph; of that thread only
  uint64_t id;
  vt_queue_options options;
  char name[VT__CPU_NAME_BYTES];

  // An asynchronous queue's ring. Command n lies in ring[(n - 1) % capacity] until it is done.
  vt__cpu_command *ring;

  // Of the submitters.
  _Alignas(VT_NO_SHARING) pthread_mutex_t submit_mutex;  // serialises submission, and guards what follows
  bool started;
  uint64_t known_done;  // the timeline had come this far when a submitter looked

  // Written by submitters, awaited by the worker.
  _Alignas(VT_NO_SHARING) vt__counter submitted;
  _Atomic uint32_t closing;  // no more submissions: run what is left, then go
  void (*done)(void *user);  // set before `closing`
  void *done_user;
} vt__cpu_queue;

// Answers whether an operation of this thread runs at once and nobody wants to hear of it: then a ticket, which is taken here, is
// all that it needs of the queue.
static inline bool vt__cpu_begin_plain(vt__cpu_queue *queue) {
  // relaxed: another thread's capture is told from one of this thread by vt__cpu_submit().
  if (queue->timeline != NULL || atomic_load_explicit(&queue->graph, memory_order_relaxed) != NULL || vt__trace_is_on()) {
    return false;
  }
  // relaxed: only uniqueness and growth are promised.
  atomic_fetch_add_explicit(&queue->tickets, 1, memory_order_relaxed);
  return true;
}

// The graph that this thread records on the queue, or NULL. Another thread's is none of its business.
vt__cpu_graph *vt__cpu_recording(vt__cpu_queue *queue);

// command.c: what a command does. Running it answers its own status; exactly one of run and cancel is called per turn, and drop
// once.
vt_status vt__cpu_command_run_other(vt__cpu_command *command, const vt__cpu_place *place);
vt_status vt__cpu_command_run_traced(vt__cpu_command *command, const vt__cpu_place *place);
static inline vt_status vt__cpu_command_run_untraced(vt__cpu_command *command, const vt__cpu_place *place) {
  if (command->kind == VT__CPU_COPY) {
    memcpy(command->u.copy.dst, command->u.copy.src, command->u.copy.bytes);
    return VT_OK;
  }
  return vt__cpu_command_run_other(command, place);
}
static inline vt_status vt__cpu_command_run(vt__cpu_command *command, const vt__cpu_place *place) {
  return VT_UNLIKELY(vt__trace_is_on()) ? vt__cpu_command_run_traced(command, place) : vt__cpu_command_run_untraced(command, place);
}
void vt__cpu_command_cancel(vt__cpu_command *command);
const char *vt__cpu_command_function(const vt__cpu_command *command);  // the public function that submits such a command
void vt__cpu_command_drop(vt__cpu_command *command);

// copy.c: what a batch or a block of rows does, and its bytes.
void vt__cpu_copy_run(const vt__cpu_command *command);
uint64_t vt__cpu_copy_bytes(const vt__cpu_command *command);

// queue.c: takes over the command in any case: runs, queues or records it, or drops it and answers why.
vt_status vt__cpu_submit(vt__cpu_queue *queue, vt__cpu_command *command);

// The number of the last command submitted.
uint64_t vt__cpu_last_ticket(vt__cpu_queue *queue);

// The methods of vt_backend_ops, by file.
vt_status vt__cpu_queue_create(void *self, const vt_queue_options *options, uint64_t id, void **out_queue);
void vt__cpu_queue_destroy(void *self, void *queue, void (*done)(void *user), void *user);
vt_status vt__cpu_queue_synchronize(void *self, void *queue);
vt_status vt__cpu_queue_query(void *self, void *queue);
vt_status vt__cpu_queue_get_ticket(void *self, void *queue, uint64_t *out_ticket);
vt_status vt__cpu_queue_wait_ticket(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns);

vt_status vt__cpu_copy(void *self, void *queue, void *dst, const void *src, size_t bytes);
vt_status vt__cpu_copy_batch(void *self, void *queue, const vt_copy_op *ops, size_t count);
vt_status vt__cpu_copy_2d(void *self, void *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          size_t rows);

vt_status vt__cpu_event_create(void *self, uint32_t flags, void **out_event);
void vt__cpu_event_destroy(void *self, void *event);
vt_status vt__cpu_event_record(void *self, void *event, void *queue);
vt_status vt__cpu_event_query(void *self, void *event);
vt_status vt__cpu_event_wait(void *self, void *event, uint64_t timeout_ns);
vt_status vt__cpu_event_wait_by(void *self, void *event, vt_wait_mode mode, uint64_t timeout_ns);
vt_status vt__cpu_queue_after_event(void *self, void *queue, void *event);
vt_status vt__cpu_event_get_elapsed(void *self, void *start, void *end, uint64_t *out_ns);

// event.c: the moment of a timing event's record.
void vt__cpu_event_stamp(vt__cpu_event *event, uint64_t generation);
void vt__cpu_event_unref(vt__cpu_event *event);

vt_status vt__cpu_capture_begin(void *self, void *queue);
vt_status vt__cpu_capture_end(void *self, void *queue, void **out_graph);
vt_status vt__cpu_capture_abort(void *self, void *queue);
vt_status vt__cpu_graph_launch(void *self, void *graph, void *queue);
void vt__cpu_graph_destroy(void *self, void *graph);
vt_status vt__cpu_graph_get_node_count(void *self, void *graph, size_t *out_count);

// graph.c: recording.
vt_status vt__cpu_graph_append(vt__cpu_queue *queue, const vt__cpu_command *command);
uint32_t vt__cpu_graph_get_position(vt__cpu_queue *queue);
vt_status vt__cpu_graph_join(vt__cpu_graph *graph, vt__cpu_queue *queue, uint32_t lane, uint32_t position);
void vt__cpu_graph_unref(vt__cpu_graph *graph);

// launch.c: one run of a graph on the calling thread and helpers; or the cancellation of all its calls; and what a lane wait does.
vt_status vt__cpu_graph_run(vt__cpu_graph *graph, const vt__cpu_place *place);
void vt__cpu_graph_cancel(vt__cpu_graph *graph);
void vt__cpu_graph_wait_for_lane(vt__cpu_graph *graph, const vt__cpu_command *command);

// mapping.c: memory with options, straight from the system.
vt_status vt__cpu_alloc_with(void *self, size_t bytes, vt_alloc_options *options, void **out_ptr);
vt_status vt__cpu_export_fd(void *self, const void *ptr, int32_t *out_fd, size_t *out_offset, size_t *out_bytes);
// Gives such memory back. False if `ptr` is none.
bool vt__cpu_mapping_free(void *ptr);

#endif
