// capture_model.c: see capture_model.h.
#include "capture_model.h"

#include <string.h>

static vt_status refuse(capture_model *model, int queue) {
  model_refused(model, queue, VT_ERR_FAILED_PRECONDITION);
  return VT_ERR_FAILED_PRECONDITION;
}

void model_refused(capture_model *model, int queue, vt_status status) {
  model_capture *capture = model->queues[queue].capture;
  if (capture != NULL && capture->failed == VT_OK) {
    capture->failed = status;
  }
}

static void add_member(model_capture *capture, model_queue *queue) {
  queue->capture = capture;
  queue->member = capture->count;
  capture->done[capture->count] = 0;
  memset(&capture->clocks[capture->count], 0, sizeof(capture->clocks[0]));
  capture->count++;
}

vt_status model_begin(capture_model *model, int queue) {
  if (model->queues[queue].capture != NULL) {
    return refuse(model, queue);
  }
  model_capture *capture = model->captures;
  while (capture->id != 0) {
    capture++;
  }
  capture->id = ++model->ids;
  capture->origin = queue;
  capture->failed = VT_OK;
  capture->count = 0;
  add_member(capture, &model->queues[queue]);
  return VT_OK;
}

static void close_capture(capture_model *model, model_capture *capture) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (model->queues[i].capture == capture) {
      model->queues[i].capture = NULL;
    }
  }
  capture->id = 0;
}

static int is_origin(const capture_model *model, int queue) {
  const model_capture *capture = model->queues[queue].capture;
  return capture != NULL && capture->origin == queue;
}

static int is_joined(const model_capture *capture) {
  for (uint32_t i = 1; i < capture->count; i++) {
    if (capture->clocks[0].of[i] < capture->done[i]) {
      return 0;
    }
  }
  return 1;
}

vt_status model_end(capture_model *model, int queue) {
  if (!is_origin(model, queue)) {
    return VT_ERR_FAILED_PRECONDITION;
  }
  model_capture *capture = model->queues[queue].capture;
  vt_status status = capture->failed != VT_OK ? capture->failed : is_joined(capture) ? VT_OK : VT_ERR_FAILED_PRECONDITION;
  close_capture(model, capture);
  return status;
}

vt_status model_abort(capture_model *model, int queue) {
  if (!is_origin(model, queue)) {
    return VT_ERR_FAILED_PRECONDITION;
  }
  close_capture(model, model->queues[queue].capture);
  return VT_OK;
}

vt_status model_record(capture_model *model, int queue, int event) {
  const model_queue *from = &model->queues[queue];
  model->events[event].capture_id = from->capture == NULL ? 0 : from->capture->id;
  if (from->capture != NULL) {
    model->events[event].clock = from->capture->clocks[from->member];
  }
  return VT_OK;
}

static model_capture *find(capture_model *model, uint64_t id) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (model->captures[i].id == id) {
      return &model->captures[i];
    }
  }
  return NULL;
}

vt_status model_wait(capture_model *model, int queue, int event) {
  model_queue *waiter = &model->queues[queue];
  const model_event *record = &model->events[event];
  if (record->capture_id == 0) {
    return waiter->capture == NULL ? VT_OK : refuse(model, queue);
  }
  model_capture *capture = find(model, record->capture_id);
  if (capture == NULL || (waiter->capture != NULL && waiter->capture != capture)) {
    return refuse(model, queue);
  }
  if (waiter->capture == NULL) {
    if (capture->count == MODEL_MEMBERS) {
      return VT_ERR_UNSUPPORTED;
    }
    add_member(capture, waiter);
  }
  uint32_t *own = capture->clocks[waiter->member].of;
  for (uint32_t i = 0; i < capture->count; i++) {
    own[i] = own[i] < record->clock.of[i] ? record->clock.of[i] : own[i];
  }
  return VT_OK;
}

vt_status model_work(capture_model *model, int queue) {
  model_queue *worker = &model->queues[queue];
  if (worker->capture != NULL) {
    worker->capture->clocks[worker->member].of[worker->member] = ++worker->capture->done[worker->member];
  }
  return VT_OK;
}

void model_drop_queue(capture_model *model, int queue) {
  if (is_origin(model, queue)) {
    close_capture(model, model->queues[queue].capture);
  } else {
    (void)refuse(model, queue);
  }
  model->queues[queue].capture = NULL;
}

void model_drop_event(capture_model *model, int event) {
  model->events[event].capture_id = 0;
}
