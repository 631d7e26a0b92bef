// event.c: an event's record is a number on a timeline; a captured one is a position in a graph's lane.

#include "base/alloc.h"
#include "base/clock.h"
#include "cpu/cpu.h"

struct vt__cpu_event {
  _Atomic uint32_t refs;
  uint32_t flags;
  pthread_mutex_t mutex;   // guards what follows
  bool recorded;           // at least once, outside of captures
  vt__timeline *timeline;  // of the latest record; NULL: it was complete at once
  uint64_t ticket;
  uint64_t tries;       // records that were begun: numbers their stamps
  uint64_t generation;  // of the latest record that was taken
  uint64_t stamped;     // generation of `stamp_ns`
  uint64_t stamp_ns;
  vt__cpu_graph *graph;     // if the latest record was made in a capture; only looked at while that is open
  const void *graph_owner;  // vt__thread_token() of the thread that captures
  uint32_t lane;
  uint32_t position;
};

vt_status vt__cpu_event_create(void *self, uint32_t flags, void **out_event) {
  (void)self;
  vt__cpu_event *event = vt__calloc(1, sizeof(*event));
  if (event == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_event_create", "no memory for an event");
  }
  event->flags = flags;
  pthread_mutex_init(&event->mutex, NULL);
  // relaxed: not shared yet.
  atomic_store_explicit(&event->refs, 1, memory_order_relaxed);
  *out_event = event;
  return VT_OK;
}

void vt__cpu_event_unref(vt__cpu_event *event) {
  // acq_rel: partners are the decrements of the other holders: the last one sees all that they did.
  if (atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) == 1) {
    vt__timeline_unref(event->timeline);
    pthread_mutex_destroy(&event->mutex);
    vt__free(event);
  }
}

void vt__cpu_event_destroy(void *self, void *event) {
  (void)self;
  vt__cpu_event_unref(event);
}

void vt__cpu_event_stamp(vt__cpu_event *event, uint64_t generation) {
  uint64_t now = vt__now_ns();
  pthread_mutex_lock(&event->mutex);
  if (event->stamped < generation) {
    event->stamp_ns = now;
    event->stamped = generation;
  }
  pthread_mutex_unlock(&event->mutex);
}

static void set_record(vt__cpu_event *event, vt__timeline *timeline, uint64_t ticket, uint64_t generation) {
  if (event->timeline != timeline) {
    if (timeline != NULL) {
      vt__timeline_ref(timeline);
    }
    vt__timeline_unref(event->timeline);
    event->timeline = timeline;
  }
  event->ticket = ticket;
  event->generation = generation;
  event->recorded = true;
  event->graph = NULL;
}

static void record_captured(vt__cpu_event *event, vt__cpu_queue *queue) {
  pthread_mutex_lock(&event->mutex);
  event->graph = vt__cpu_recording(queue);
  event->graph_owner = vt__thread_token();
  event->lane = queue->lane;
  event->position = vt__cpu_graph_get_position(queue);
  pthread_mutex_unlock(&event->mutex);
}

// Queues the stamp of a timing event. Its record is the stamp's own number, so whoever waits for the event finds it stamped.
static vt_status record_timed(vt__cpu_event *event, vt__cpu_queue *queue, uint64_t *out_generation) {
  pthread_mutex_lock(&event->mutex);
  uint64_t generation = ++event->tries;
  pthread_mutex_unlock(&event->mutex);
  *out_generation = generation;
  // relaxed: the caller holds a reference.
  atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
  vt__cpu_command command = {.kind = VT__CPU_STAMP, .u.stamp = {.event = event, .generation = generation}};
  return vt__cpu_submit(queue, &command);
}

vt_status vt__cpu_event_record(void *self, void *native, void *native_queue) {
  (void)self;
  vt__cpu_event *event = native;
  vt__cpu_queue *queue = native_queue;
  if (vt__cpu_recording(queue) != NULL) {
    record_captured(event, queue);
    return VT_OK;
  }
  if (queue->timeline != NULL) {
    VT_TRY(vt__timeline_get_failure(queue->timeline));
  }
  uint64_t generation = 0;
  if ((event->flags & VT_EVENT_TIMING) != 0) {
    VT_TRY(record_timed(event, queue, &generation));
  }
  pthread_mutex_lock(&event->mutex);
  set_record(event, queue->timeline, vt__cpu_last_ticket(queue), generation);
  pthread_mutex_unlock(&event->mutex);
  return VT_OK;
}

vt_status vt__cpu_event_query(void *self, void *native) {
  (void)self;
  vt__cpu_event *event = native;
  pthread_mutex_lock(&event->mutex);
  vt_status status = event->timeline == NULL ? VT_OK : vt__timeline_query(event->timeline, event->ticket);
  pthread_mutex_unlock(&event->mutex);
  return status;
}

// The latest record, with a reference to its timeline, or NULL if it is complete without one.
static vt__timeline *take_record(vt__cpu_event *event, uint64_t *out_ticket) {
  pthread_mutex_lock(&event->mutex);
  vt__timeline *timeline = event->timeline;
  *out_ticket = event->ticket;
  if (timeline != NULL) {
    vt__timeline_ref(timeline);
  }
  pthread_mutex_unlock(&event->mutex);
  return timeline;
}

static vt_status wait(vt__cpu_event *event, vt_wait_mode mode, uint64_t timeout_ns) {
  uint64_t ticket;
  vt__timeline *timeline = take_record(event, &ticket);
  if (timeline == NULL) {
    return VT_OK;
  }
  vt_status status = vt__timeline_wait(timeline, ticket, timeout_ns, mode, "vt_event_wait");
  vt__timeline_unref(timeline);
  return status;
}

vt_status vt__cpu_event_wait(void *self, void *native, uint64_t timeout_ns) {
  (void)self;
  vt__cpu_event *event = native;
  return wait(event, (event->flags & VT_EVENT_BLOCKING) != 0 ? VT_WAIT_MODE_BLOCK : VT_WAIT_MODE_DEFAULT, timeout_ns);
}

vt_status vt__cpu_event_wait_by(void *self, void *native, vt_wait_mode mode, uint64_t timeout_ns) {
  (void)self;
  return wait(native, mode, timeout_ns);
}

// Answers whether the event was recorded in a capture of this thread. Another thread may be recording it into its own meanwhile:
// that capture is none of this thread's business.
static bool take_captured(vt__cpu_event *event, vt__cpu_graph **out_graph, uint32_t *out_lane, uint32_t *out_position) {
  pthread_mutex_lock(&event->mutex);
  bool own = event->graph != NULL && event->graph_owner == vt__thread_token();
  *out_graph = event->graph;
  *out_lane = event->lane;
  *out_position = event->position;
  pthread_mutex_unlock(&event->mutex);
  return own;
}

vt_status vt__cpu_queue_after_event(void *self, void *native_queue, void *native) {
  (void)self;
  vt__cpu_queue *queue = native_queue;
  vt__cpu_event *event = native;
  vt__cpu_graph *graph;
  uint32_t lane;
  uint32_t position;
  if (take_captured(event, &graph, &lane, &position)) {
    return vt__cpu_graph_join(graph, queue, lane, position);
  }
  if (vt__cpu_recording(queue) != NULL) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_queue_after_event",
                        "another thread has recorded the event outside of the capture of queue %llu",
                        (unsigned long long)queue->id);
  }
  uint64_t ticket;
  vt__timeline *timeline = take_record(event, &ticket);
  // Nothing to wait for: complete, or ordered by the queue itself.
  if (timeline == NULL || timeline == queue->timeline || vt__timeline_query(timeline, ticket) == VT_OK) {
    vt__timeline_unref(timeline);
    return queue->timeline == NULL ? VT_OK : vt__timeline_get_failure(queue->timeline);
  }
  vt__cpu_command command = {.kind = VT__CPU_WAIT, .u.wait = {.timeline = timeline, .ticket = ticket}};
  return vt__cpu_submit(queue, &command);
}

// The time of the latest record.
static vt_status read_stamp(vt__cpu_event *event, const char *what, uint64_t *out_ns) {
  vt_status status;
  pthread_mutex_lock(&event->mutex);
  if (!event->recorded) {
    status =
        vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, "vt_event_get_elapsed", "the %s event was never recorded", what);
  } else {
    status = event->timeline == NULL ? VT_OK : vt__timeline_query(event->timeline, event->ticket);
  }
  if (status == VT_OK && event->stamped < event->generation) {
    status = VT_NOT_READY;  // another thread is recording it right now
  }
  *out_ns = event->stamp_ns;
  pthread_mutex_unlock(&event->mutex);
  return status;
}

vt_status vt__cpu_event_get_elapsed(void *self, void *start, void *end, uint64_t *out_ns) {
  (void)self;
  uint64_t start_ns;
  uint64_t end_ns;
  VT_TRY(read_stamp(start, "start", &start_ns));
  VT_TRY(read_stamp(end, "end", &end_ns));
  if (end_ns < start_ns) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_event_get_elapsed",
                        "the end event lies %llu ns before the start event", (unsigned long long)(start_ns - end_ns));
  }
  *out_ns = end_ns - start_ns;
  return VT_OK;
}
