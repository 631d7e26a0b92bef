// stream.c: queues, events and captures.
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"

static vt_status succeed(void *unused) {
  (void)unused;
  return VT_OK;
}

static vt_status fail(void *unused) {
  (void)unused;
  return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, __func__, "as wanted");
}

int stream_is_capturing(const stream *s) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (s->captures.captures[i].id != 0) {
      return 1;
    }
  }
  return 0;
}

static void new_queue(stream_queue *q, uint8_t dice, int device) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  q->async = dice & 1;
  q->may_be_full = (dice & 6) == 6;
  q->failed = 0;
  q->device = device;
  options.flags = (q->async ? VT_QUEUE_ASYNC : 0u) | (q->may_be_full ? VT_QUEUE_FAIL_FULL : 0u);
  options.ring_capacity = 1u << (dice >> 4 & 3);
  CALL(FUZZ_OK, vt_queue_create((vt_device){VT_DEVICE_CPU, device}, &options, &q->queue));
}

static void new_event(stream *s, int e) {
  CALL(FUZZ_OK, vt_event_create((vt_device){VT_DEVICE_CPU, e == MODEL_EVENTS - 1}, e == 0 ? VT_EVENT_TIMING : 0, &s->events[e]));
  s->event_failed[e] = 0;
}

void stream_begin(stream *s, fuzz_input *in) {
  static unsigned char buffers[MODEL_QUEUES][2][STREAM_BYTES];
  memset(buffers, 0, sizeof(buffers));
  for (int i = 0; i < MODEL_QUEUES; i++) {
    new_queue(&s->queues[i], fuzz_byte(in), i == MODEL_QUEUES - 1);
    s->queues[i].buffers[0] = buffers[i][0];
    s->queues[i].buffers[1] = buffers[i][1];
    s->queues[i].known = 1;
  }
  for (int e = 0; e < MODEL_EVENTS; e++) {
    new_event(s, e);
  }
}

// Waits until the queue has nothing pending, in a way that captures allow.
static void settle(const stream *s, const stream_queue *q) {
  uint64_t ticket = 0;
  time_t end = time(NULL) + 60;
  CALL(FUZZ_OK, vt_queue_get_ticket(q->queue, &ticket));
  if (!stream_is_capturing(s)) {
    CALL(FUZZ_OK | FUZZ_FAILED, vt_queue_wait_ticket(q->queue, ticket, UINT64_C(60000000000)));
  }
  while (vt_queue_wait_ticket(q->queue, ticket, 0) == VT_NOT_READY) {
    MUST(time(NULL) < end);
    sched_yield();
  }
}

void stream_settle(stream *s) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (s->queues[i].queue != NULL) {
      settle(s, &s->queues[i]);
    }
  }
}

void stream_compare(stream *s) {
  stream_settle(s);
  for (int i = 0; i < MODEL_QUEUES; i++) {
    const stream_queue *q = &s->queues[i];
    MUST(!q->known || memcmp(q->expected[0], q->buffers[0], STREAM_BYTES) == 0);
    MUST(!q->known || memcmp(q->expected[1], q->buffers[1], STREAM_BYTES) == 0);
    if (q->queue != NULL) {
      MUST(vt_queue_is_capturing(q->queue) == model_is_capturing(&s->captures, i));
    }
  }
}

// A copy is one range, a batch of two, or two rows: of a third of the bytes each, apart in the first buffer.
enum { COPY_BATCH = 1, COPY_ROWS = 2 };
static int way_of(const stream_op *op) {
  int way = op->value % 4;
  return way == COPY_ROWS && op->bytes % 3 != 0 ? 0 : way;
}

void stream_apply(stream *s, const stream_op *op) {
  stream_queue *q = &s->queues[op->queue];
  if (op->kind == STREAM_SET) {
    memset(q->expected[0] + op->at, op->value, op->bytes);
  } else if (op->kind == STREAM_COPY && way_of(op) == COPY_ROWS) {
    size_t width = op->bytes / 3;
    memcpy(q->expected[0] + op->at, q->expected[1] + op->from, width);
    memcpy(q->expected[0] + op->at + 2 * width, q->expected[1] + op->from + width, width);
  } else if (op->kind == STREAM_COPY) {
    memcpy(q->expected[0] + op->at, q->expected[1] + op->from, op->bytes);
  }
}

static vt_status submit_copy(stream_queue *q, unsigned char *to, const stream_op *op) {
  const unsigned char *from = q->buffers[1] + op->from;
  if (way_of(op) == COPY_BATCH) {
    size_t half = op->bytes / 2;
    vt_copy_op ops[2] = {{to, from, half}, {to + half, from + half, op->bytes - half}};
    return vt_copy_batch(q->queue, ops, 2);
  }
  size_t width = op->bytes / 3;
  return way_of(op) == COPY_ROWS ? vt_copy_2d(q->queue, to, 2 * width, from, width, width, 2)
                                 : vt_copy(q->queue, to, from, op->bytes);
}

static vt_status submit(stream_queue *q, const stream_op *op) {
  unsigned char *to = q->buffers[0] + op->at;
  switch (op->kind) {
    case STREAM_SET:
      return vt_memset(q->queue, to, op->value, op->bytes);
    case STREAM_COPY:
      return submit_copy(q, to, op);
    case STREAM_COUNT:
      return vt_queue_host_func(q->queue, succeed, NULL, NULL);
    default:
      return vt_queue_host_func(q->queue, fail, NULL, NULL);
  }
}

uint32_t stream_possible(const stream_queue *q) {
  uint32_t allowed = FUZZ_OK | (q->async && q->may_be_full ? FUZZ_NOT_READY : 0u);
  return allowed | (q->failed ? FUZZ_FAILED : 0u);
}

static void work(stream *s, int index, fuzz_input *in) {
  stream_queue *q = &s->queues[index];
  stream_op op = {.kind = fuzz_below(in, 16) == 15 ? STREAM_FAIL : (stream_kind)fuzz_below(in, 3), .queue = (uint8_t)index};
  op.at = fuzz_below(in, STREAM_BYTES);
  op.from = fuzz_below(in, STREAM_BYTES);
  op.value = fuzz_byte(in);
  uint8_t room = (uint8_t)(STREAM_BYTES - (op.at > op.from ? op.at : op.from));
  op.bytes = fuzz_below(in, (uint8_t)(room + 1));
  if (op.kind == STREAM_COUNT || op.kind == STREAM_FAIL) {
    op.bytes = 1;
  }
  if (model_is_capturing(&s->captures, index)) {
    CALL(FUZZ_OK, submit(q, &op));
    if (op.bytes > 0) {  // on no bytes there is nothing to record
      (void)model_work(&s->captures, index);
      stream_record_op(s, &op);
    }
    return;
  }
  uint32_t allowed = stream_possible(q);
  if (op.kind == STREAM_FAIL && !q->async) {
    allowed = FUZZ_FAILED;
  }
  vt_status status = CALL(allowed, submit(q, &op));
  if (status == VT_OK && !q->failed) {
    stream_apply(s, &op);
    q->failed = q->async && op.kind == STREAM_FAIL;
  }
}

static void bad_work(stream *s, int index, fuzz_input *in) {
  stream_queue *q = &s->queues[index];
  switch (fuzz_below(in, 5)) {
    case 0:
      CALL(FUZZ_INVALID, vt_memset(q->queue, q->buffers[0], 256 + fuzz_byte(in), fuzz_byte(in)));
      break;
    case 1:
      CALL(FUZZ_INVALID, vt_copy(q->queue, q->buffers[0], q->buffers[0] + 5, 6 + (size_t)fuzz_below(in, 40)));
      break;
    case 2:
      CALL(FUZZ_INVALID, vt_copy(q->queue, NULL, q->buffers[0], 1));
      break;
    case 3:
      CALL(FUZZ_INVALID, vt_queue_host_func(q->queue, NULL, NULL, NULL));
      break;
    default:
      CALL(FUZZ_INVALID, vt_event_record((vt_event *)(void *)q->queue, q->queue));
      break;
  }
  model_refused(&s->captures, index, VT_ERR_INVALID_ARGUMENT);
}

static void record(stream *s, int index, int e) {
  stream_queue *q = &s->queues[index];
  if (q->device != (e == MODEL_EVENTS - 1)) {
    CALL(FUZZ_INVALID, vt_event_record(s->events[e], q->queue));
    model_refused(&s->captures, index, VT_ERR_INVALID_ARGUMENT);
    return;
  }
  int capturing = model_is_capturing(&s->captures, index);
  if (CALL(capturing ? FUZZ_OK : stream_possible(q), vt_event_record(s->events[e], q->queue)) == VT_OK) {
    (void)model_record(&s->captures, index, e);
    s->event_failed[e] = capturing ? s->event_failed[e] : q->failed;
  }
}

static void wait(stream *s, int index, int e) {
  stream_queue *q = &s->queues[index];
  int now = s->captures.events[e].capture_id == 0;
  if (!now) {
    settle(s, q);  // so that a queue that joins has nothing pending that could run into a launch
  }
  int was = model_is_capturing(&s->captures, index);
  vt_status expected = model_wait(&s->captures, index, e);
  if (was || expected != VT_OK || !now) {
    CALL(ONE_OF(expected), vt_queue_after_event(q->queue, s->events[e]));
    return;
  }
  uint32_t allowed = stream_possible(q);
  if (!q->async && s->event_failed[e]) {
    allowed = FUZZ_FAILED;
  }
  if (CALL(allowed, vt_queue_after_event(q->queue, s->events[e])) == VT_OK && q->async) {
    q->failed |= s->event_failed[e];
  }
}

static void begin(stream *s, int index) {
  stream_queue *q = &s->queues[index];
  settle(s, q);
  if (q->failed && !model_is_capturing(&s->captures, index)) {
    CALL(FUZZ_FAILED, vt_graph_begin_capture(q->queue));
    return;
  }
  vt_status expected = model_begin(&s->captures, index);
  CALL(ONE_OF(expected), vt_graph_begin_capture(q->queue));
  if (expected == VT_OK) {
    stream_graph *graph = &s->recorded[s->captures.queues[index].capture - s->captures.captures];
    *graph = (stream_graph){.is_there = 1, .device = q->device};
  }
}

// The handle is dead now: every call says so, and none touches what came after.
static void poke_dead(vt_queue *queue, fuzz_input *in) {
  uint64_t ticket;
  switch (fuzz_below(in, 4)) {
    case 0:
      CALL(FUZZ_INVALID, vt_memset(queue, &ticket, 0, 1));
      break;
    case 1:
      CALL(FUZZ_INVALID, vt_queue_synchronize(queue));
      break;
    case 2:
      CALL(FUZZ_INVALID, vt_graph_begin_capture(queue));
      break;
    default:
      CALL(FUZZ_INVALID, vt_queue_get_ticket(queue, &ticket));
      break;
  }
}

static void note_gone(void *gone) {
  // release: partner is the acquire load in release_busy().
  atomic_store_explicit((_Atomic int *)gone, 1, memory_order_release);
}

// The queue still runs what it holds.
static void release_busy(vt_queue *queue) {
  _Atomic int gone = 0;
  time_t end = time(NULL) + 60;
  CALL(FUZZ_OK, vt_queue_on_destroy(queue, note_gone, &gone));
  vt_queue_release(queue);
  // acquire: partner is the release store in note_gone().
  while (atomic_load_explicit(&gone, memory_order_acquire) == 0) {
    MUST(time(NULL) < end);
    sched_yield();
  }
}

// A queue may be dropped while it is busy, unless a capture is open, in which it may live on as a member.
static void drop_queue(stream *s, int index, fuzz_input *in) {
  stream_queue *q = &s->queues[index];
  int capturing = model_is_capturing(&s->captures, index);
  vt_queue *queue = q->queue;
  if (fuzz_byte(in) & 1) {
    uint32_t allowed = stream_is_capturing(s) ? FUZZ_MOMENT : q->failed ? FUZZ_FAILED : FUZZ_OK;
    CALL(allowed, vt_queue_destroy(queue));
    if (allowed == FUZZ_MOMENT) {
      model_refused(&s->captures, index, VT_ERR_FAILED_PRECONDITION);
      return;
    }
  } else if (stream_is_capturing(s) || (fuzz_byte(in) & 1) != 0) {
    settle(s, q);
    vt_queue_release(queue);
  } else {
    release_busy(queue);
  }
  q->queue = NULL;
  q->stored = (stream_graph){0};
  model_drop_queue(&s->captures, index);
  if (!capturing) {
    poke_dead(queue, in);
  }
  if (!stream_is_capturing(s)) {
    new_queue(q, fuzz_byte(in), q->device);
  }
}

// Other questions and waits.
static void ask(stream *s, int index, int e, fuzz_input *in) {
  stream_queue *q = &s->queues[index];
  int capturing = model_is_capturing(&s->captures, index);
  int any = stream_is_capturing(s);
  int captured = s->captures.events[e].capture_id != 0;
  uint32_t at_event = captured ? FUZZ_MOMENT : FUZZ_OK | (s->event_failed[e] ? FUZZ_FAILED : 0u);
  uint64_t ns;
  switch (fuzz_below(in, 7)) {
    case 0:
      CALL(capturing ? FUZZ_MOMENT : FUZZ_OK | FUZZ_NOT_READY | (q->failed ? FUZZ_FAILED : 0u), vt_queue_query(q->queue));
      break;
    case 1:
      CALL(any ? FUZZ_MOMENT : q->failed ? FUZZ_FAILED : FUZZ_OK, vt_queue_synchronize(q->queue));
      break;
    case 2:
      CALL(at_event | (captured ? 0u : FUZZ_NOT_READY), vt_event_query(s->events[e]));
      return;
    case 3:
      CALL(captured || any ? FUZZ_MOMENT : s->event_failed[e] ? FUZZ_FAILED : FUZZ_OK, vt_event_synchronize(s->events[e]));
      return;
    case 4:
      CALL(FUZZ_OK | FUZZ_NOT_READY | FUZZ_MOMENT | FUZZ_INVALID | FUZZ_FAILED,
           vt_event_get_elapsed(s->events[0], s->events[e], &ns));
      return;
    case 5:
      CALL(captured || any ? FUZZ_MOMENT : FUZZ_OK | FUZZ_NOT_READY | (s->event_failed[e] ? FUZZ_FAILED : 0u),
           vt_event_wait_by(s->events[e], (vt_wait_mode)fuzz_below(in, 4), VT_WAIT_FOREVER));
      return;
    default:
      stream_compare(s);
      return;
  }
  if (capturing) {
    model_refused(&s->captures, index, VT_ERR_FAILED_PRECONDITION);
  }
}

static void on_a_queue(stream *s, uint8_t what, int index, fuzz_input *in) {
  int e = fuzz_below(in, MODEL_EVENTS);
  if (what < 10) {
    work(s, index, in);
  } else if (what < 11) {
    bad_work(s, index, in);
  } else if (what < 14) {
    record(s, index, e);
  } else if (what < 17) {
    wait(s, index, e);
  } else if (what < 19) {
    begin(s, index);
  } else if (what < 21) {
    stream_end_capture(s, index, fuzz_below(in, STREAM_GRAPHS + 2));
  } else if (what < 22) {
    ask(s, index, e, in);
  } else if (what < 23) {
    drop_queue(s, index, in);
  } else {
    vt_event_release(s->events[e]);
    new_event(s, e);
    model_drop_event(&s->captures, e);
  }
}

void stream_step(stream *s, fuzz_input *in) {
  uint8_t what = fuzz_below(in, 28);
  int index = fuzz_below(in, MODEL_QUEUES);
  stream_queue *q = &s->queues[index];
  if (q->queue == NULL && !stream_is_capturing(s)) {
    new_queue(q, fuzz_byte(in), q->device);
  }
  if (q->queue == NULL) {
    return;
  }
  if (what < 24) {
    on_a_queue(s, what, index, in);
  } else if (what < 26) {
    stream_launch(s, in);
  } else {
    stream_replay(s, in);
  }
}

void stream_end(stream *s) {
  for (int i = 0; i < MODEL_QUEUES; i++) {
    if (s->queues[i].queue != NULL) {
      CALL(ONE_OF(model_abort(&s->captures, i)), vt_graph_abort_capture(s->queues[i].queue));
    }
  }
  stream_compare(s);
  for (int i = 0; i < MODEL_QUEUES; i++) {
    vt_queue_release(s->queues[i].queue);
  }
  for (int e = 0; e < MODEL_EVENTS; e++) {
    vt_event_release(s->events[e]);
  }
  for (int g = 0; g < STREAM_GRAPHS; g++) {
    vt_graph_release(s->graphs[g].graph);
  }
}
