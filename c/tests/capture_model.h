// capture_model.h: which queues and events belong to which capture, by the rules of graph.h and event.h and nothing else. The
// reference that random programs are compared with. One thread.
#ifndef VT_TESTS_CAPTURE_MODEL_H
#define VT_TESTS_CAPTURE_MODEL_H

#include <stdint.h>
#include <vllm_vt/vt.h>

enum { MODEL_QUEUES = 4, MODEL_EVENTS = 6, MODEL_MEMBERS = 64 };

// Work that a point in a capture comes after: operations so far of each member.
typedef struct model_clock {
  uint32_t of[MODEL_MEMBERS];
} model_clock;

typedef struct model_capture {
  uint64_t id;       // 0: not open
  int origin;        // a queue
  vt_status failed;  // first failure; VT_OK: none
  uint32_t count;    // members, those that were dropped since included
  uint32_t done[MODEL_MEMBERS];
  model_clock clocks[MODEL_MEMBERS];
} model_capture;

typedef struct model_queue {
  model_capture *capture;  // NULL: not capturing
  uint32_t member;
} model_queue;

typedef struct model_event {
  uint64_t capture_id;  // of its latest record; 0: that was none of a capture, or there is none
  model_clock clock;
} model_event;

// All zero is the beginning.
typedef struct capture_model {
  uint64_t ids;
  model_queue queues[MODEL_QUEUES];
  model_event events[MODEL_EVENTS];
  model_capture captures[MODEL_QUEUES];  // each has another origin
} capture_model;

// Each does to the model what the call does, and answers the call's status where the queue itself is well.
vt_status model_begin(capture_model *model, int queue);
vt_status model_end(capture_model *model, int queue);
vt_status model_abort(capture_model *model, int queue);
vt_status model_record(capture_model *model, int queue, int event);
vt_status model_wait(capture_model *model, int queue, int event);
vt_status model_work(capture_model *model, int queue);
// A call on the queue was refused with this status.
void model_refused(capture_model *model, int queue, vt_status status);
// Another queue, or event, takes the place of this one.
void model_drop_queue(capture_model *model, int queue);
void model_drop_event(capture_model *model, int event);

static inline int model_is_capturing(const capture_model *model, int queue) {
  return model->queues[queue].capture != NULL;
}

#endif
