// toy_backend.c: a plug-in backend that defers, as an example and for the conformance suite.
//
// Nothing runs when it is submitted. Work runs on the thread that asks for it: by flushing the device, by waiting for a queue, a
// ticket or an event, or by querying them. It shows all that a backend has to provide except graphs: memory, pinned memory, queues
// with tickets and failures that stick, events, and a flush.
//
// One mutex guards everything; it is never held while a command runs. A queue is *busy* while a thread runs its first command, so
// commands of one queue run one at a time. An event is a pair (queue, ticket). Since a command can only wait for tickets that were
// given out before it, threads that wait for each other's queues never wait in a circle.
#define _GNU_SOURCE 1

#include "toy_backend.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct toy_queue toy_queue;

typedef enum { TOY_COPY, TOY_BATCH, TOY_MEMSET, TOY_HOST_CALL, TOY_AFTER } toy_kind;

typedef struct toy_command {
  toy_kind kind;
  void *dst;
  const void *src;
  size_t bytes;
  vt_copy_op *ops;  // TOY_BATCH: its own
  size_t count;
  uint8_t value;
  vt_host_call call;
  toy_queue *other;  // TOY_AFTER: holds a reference
  uint64_t ticket;   // of `other`
  struct toy_command *next;
} toy_command;

struct toy_queue {
  size_t refs;
  toy_queue *next;  // in the list of the device
  toy_command *first;
  toy_command *last;
  uint64_t submitted;  // ticket of the last command
  uint64_t completed;  // ticket of the last command that is over
  uint64_t failed;     // ticket of the command that failed; 0 = none
  int busy;
  vt_error error;  // of that command
  char message[VT_ERROR_MESSAGE_MAX];
};

typedef struct toy_event {
  toy_queue *queue;  // of the latest record; NULL = never recorded
  uint64_t ticket;
} toy_event;

typedef struct toy_device {
  pthread_mutex_t mutex;
  pthread_cond_t changed;  // some command is over
  toy_queue *queues;
} toy_device;

static vt_status fail(vt_status status, const char *method, const char *what) {
  return vt_error_set(status, VT_DOMAIN_VT, 0, method, "toy backend: %s", what);
}

// Queues: references, and answers. The mutex is held.

static void queue_unref(toy_device *device, toy_queue *queue) {
  if (--queue->refs > 0) {
    return;
  }
  toy_queue **link = &device->queues;
  while (*link != queue) {
    link = &(*link)->next;
  }
  *link = queue->next;
  free(queue);
}

static vt_status queue_error(const toy_queue *queue) {
  return vt_error_set(queue->error.status, queue->error.domain, queue->error.native, queue->error.function, "%s", queue->message);
}

// What the queue answers to somebody who asks about `ticket`.
static vt_status queue_answer(const toy_queue *queue, uint64_t ticket) {
  if (queue->failed != 0 && queue->failed <= ticket) {
    return queue_error(queue);
  }
  return queue->completed >= ticket ? VT_OK : VT_NOT_READY;
}

static void queue_keep_error(toy_queue *queue, uint64_t ticket, vt_status status) {
  const vt_error *last = vt_last_error();
  queue->failed = ticket;
  queue->error = *last;
  if (last->status != status) {
    queue->error = (vt_error){.status = status, .domain = VT_DOMAIN_VT, .function = "vt_queue_host_func"};
    strcpy(queue->message, "a host function failed");
    return;
  }
  snprintf(queue->message, sizeof(queue->message), "%s", last->message);
}

// Running. `deadline` is NULL where the caller waits as long as it takes; a deadline in the past makes a poll.

static vt_status drain(toy_device *device, toy_queue *queue, uint64_t ticket, const struct timespec *deadline);

static void run_batch(const toy_command *command) {
  for (size_t i = 0; i < command->count; i++) {
    if (command->ops[i].bytes != 0) {
      memcpy(command->ops[i].dst, command->ops[i].src, command->ops[i].bytes);
    }
  }
}

static vt_status run_command(toy_command *command) {
  switch (command->kind) {
    case TOY_BATCH:
      run_batch(command);
      return VT_OK;
    case TOY_COPY:
      memcpy(command->dst, command->src, command->bytes);
      return VT_OK;
    case TOY_MEMSET:
      memset(command->dst, command->value, command->bytes);
      return VT_OK;
    case TOY_HOST_CALL:
      return command->call.run(command->call.payload);
    default:
      return VT_OK;
  }
}

static void drop_command(toy_command *command, int cancelled) {
  if (command->kind == TOY_HOST_CALL) {
    if (cancelled && command->call.cancel != NULL) {
      command->call.cancel(command->call.payload);
    }
    if (command->call.drop != NULL) {
      command->call.drop(command->call.payload);
    }
  }
  free(command->ops);
  free(command);
}

// Runs the first command of an idle queue. VT_NOT_READY: it waits for another queue, and the deadline has passed.
static vt_status run_first(toy_device *device, toy_queue *queue, const struct timespec *deadline) {
  toy_command *command = queue->first;
  vt_status status = VT_OK;
  queue->busy = 1;
  if (queue->failed == 0 && command->kind == TOY_AFTER) {
    status = drain(device, command->other, command->ticket, deadline);
  }
  if (status == VT_NOT_READY) {
    queue->busy = 0;
    pthread_cond_broadcast(&device->changed);
    return status;
  }
  queue->first = command->next;
  int cancelled = queue->failed != 0;
  if (cancelled) {
    (void)queue_error(queue);  // who is cancelled finds out why
  }
  toy_queue *other = command->kind == TOY_AFTER ? command->other : NULL;
  pthread_mutex_unlock(&device->mutex);
  if (status == VT_OK && !cancelled) {
    status = run_command(command);
  }
  drop_command(command, cancelled);
  pthread_mutex_lock(&device->mutex);
  queue->completed++;
  if (status != VT_OK && !cancelled) {
    queue_keep_error(queue, queue->completed, status);
  }
  if (other != NULL) {
    queue_unref(device, other);
  }
  queue->busy = 0;
  pthread_cond_broadcast(&device->changed);
  return VT_OK;
}

// Runs the queue up to `ticket`. The mutex is held, and given up while commands run; the caller holds a reference to the queue.
static void run_up_to(toy_device *device, toy_queue *queue, uint64_t ticket, const struct timespec *deadline) {
  vt_status status = VT_OK;
  while (status == VT_OK && queue->completed < ticket) {
    if (!queue->busy) {
      status = run_first(device, queue, deadline);
    } else if (deadline == NULL) {
      pthread_cond_wait(&device->changed, &device->mutex);
    } else if (pthread_cond_timedwait(&device->changed, &device->mutex, deadline) == ETIMEDOUT) {
      status = VT_NOT_READY;
    }
  }
}

// The same, and the queue's answer about `ticket`.
static vt_status drain(toy_device *device, toy_queue *queue, uint64_t ticket, const struct timespec *deadline) {
  queue->refs++;
  run_up_to(device, queue, ticket, deadline);
  vt_status status = queue_answer(queue, ticket);
  queue_unref(device, queue);
  return status;
}

static vt_status locked_drain(toy_device *device, toy_queue *queue, uint64_t ticket, const struct timespec *deadline) {
  pthread_mutex_lock(&device->mutex);
  vt_status status = drain(device, queue, ticket, deadline);
  pthread_mutex_unlock(&device->mutex);
  return status;
}

static struct timespec after_ns(uint64_t ns) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  uint64_t seconds = ns / 1000000000u < 1000000000u ? ns / 1000000000u : 1000000000u;
  at.tv_sec += (time_t)seconds;
  at.tv_nsec += (long)(ns % 1000000000u);
  if (at.tv_nsec >= 1000000000) {
    at.tv_nsec -= 1000000000;
    at.tv_sec++;
  }
  return at;
}

// Submitting.

static vt_status submit(toy_device *device, toy_queue *queue, const toy_command *command) {
  toy_command *kept = malloc(sizeof(*kept));
  if (kept == NULL) {
    return fail(VT_ERR_OUT_OF_MEMORY, "submit", "no memory for a command");
  }
  *kept = *command;
  kept->next = NULL;
  pthread_mutex_lock(&device->mutex);
  vt_status status = queue->failed != 0 ? queue_error(queue) : VT_OK;
  if (status == VT_OK) {
    if (queue->first == NULL) {
      queue->first = kept;
    } else {
      queue->last->next = kept;
    }
    queue->last = kept;
    queue->submitted++;
    if (kept->kind == TOY_AFTER) {
      kept->other->refs++;
    }
  }
  pthread_mutex_unlock(&device->mutex);
  if (status != VT_OK) {
    free(kept);
  }
  return status;
}

// The methods.

static vt_status toy_alloc(void *self, size_t bytes, void **out_ptr) {
  (void)self;
  void *ptr = bytes <= PTRDIFF_MAX - 63 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  if (ptr == NULL) {
    return fail(VT_ERR_OUT_OF_MEMORY, "alloc", "no memory");
  }
  *out_ptr = ptr;
  return VT_OK;
}

static vt_status toy_free(void *self, void *ptr) {
  (void)self;
  free(ptr);
  return VT_OK;
}

static vt_status toy_copy(void *self, void *queue, void *dst, const void *src, size_t bytes) {
  return submit(self, queue, &(toy_command){.kind = TOY_COPY, .dst = dst, .src = src, .bytes = bytes});
}

static vt_status submit_batch(void *self, void *queue, vt_copy_op *ops, size_t count) {
  vt_status status = submit(self, queue, &(toy_command){.kind = TOY_BATCH, .ops = ops, .count = count});
  if (status != VT_OK) {
    free(ops);
  }
  return status;
}

static vt_status toy_copy_batch(void *self, void *queue, const vt_copy_op *ops, size_t count) {
  vt_copy_op *kept = malloc(count * sizeof(*kept));
  if (kept == NULL) {
    return fail(VT_ERR_OUT_OF_MEMORY, "copy_batch", "no memory for a batch");
  }
  memcpy(kept, ops, count * sizeof(*kept));
  return submit_batch(self, queue, kept, count);
}

static vt_status toy_copy_2d(void *self, void *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                             size_t rows) {
  vt_copy_op *ops = calloc(rows, sizeof(*ops));
  if (ops == NULL) {
    return fail(VT_ERR_OUT_OF_MEMORY, "copy_2d", "no memory for the rows");
  }
  for (size_t i = 0; i < rows; i++) {
    ops[i] = (vt_copy_op){(char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width};
  }
  return submit_batch(self, queue, ops, rows);
}

static vt_status toy_memset(void *self, void *queue, void *ptr, uint8_t value, size_t bytes) {
  return submit(self, queue, &(toy_command){.kind = TOY_MEMSET, .dst = ptr, .value = value, .bytes = bytes});
}

static vt_status toy_queue_create(void *self, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)options;
  (void)id;
  toy_device *device = self;
  toy_queue *queue = calloc(1, sizeof(*queue));
  if (queue == NULL) {
    return fail(VT_ERR_OUT_OF_MEMORY, "queue_create", "no memory for a queue");
  }
  queue->refs = 1;
  pthread_mutex_lock(&device->mutex);
  queue->next = device->queues;
  device->queues = queue;
  pthread_mutex_unlock(&device->mutex);
  *out_queue = queue;
  return VT_OK;
}

// The end of a queue: what it holds is run on a thread of its own, since destroying may not wait.

typedef struct toy_farewell {
  toy_device *device;
  toy_queue *queue;
  void (*done)(void *user);
  void *user;
} toy_farewell;

static void say_farewell(const toy_farewell *farewell) {
  pthread_mutex_lock(&farewell->device->mutex);
  run_up_to(farewell->device, farewell->queue, farewell->queue->submitted, NULL);
  queue_unref(farewell->device, farewell->queue);
  pthread_mutex_unlock(&farewell->device->mutex);
  farewell->done(farewell->user);
}

static void *farewell_main(void *argument) {
  toy_farewell farewell = *(toy_farewell *)argument;
  free(argument);
  say_farewell(&farewell);
  return NULL;
}

static int start_farewell(const toy_farewell *farewell) {
  toy_farewell *kept = malloc(sizeof(*kept));
  pthread_t thread;
  if (kept == NULL) {
    return 0;
  }
  *kept = *farewell;
  if (pthread_create(&thread, NULL, farewell_main, kept) != 0) {
    free(kept);
    return 0;
  }
  pthread_detach(thread);
  return 1;
}

static void toy_queue_destroy(void *self, void *queue, void (*done)(void *user), void *user) {
  toy_farewell farewell = {.device = self, .queue = queue, .done = done, .user = user};
  pthread_mutex_lock(&farewell.device->mutex);
  int idle = farewell.queue->completed == farewell.queue->submitted;
  pthread_mutex_unlock(&farewell.device->mutex);
  if (idle || !start_farewell(&farewell)) {
    say_farewell(&farewell);
  }
}

static uint64_t last_ticket(toy_device *device, const toy_queue *queue) {
  pthread_mutex_lock(&device->mutex);
  uint64_t ticket = queue->submitted;
  pthread_mutex_unlock(&device->mutex);
  return ticket;
}

static vt_status toy_queue_synchronize(void *self, void *queue) {
  return locked_drain(self, queue, last_ticket(self, queue), NULL);
}

static vt_status toy_queue_query(void *self, void *queue) {
  struct timespec now = after_ns(0);
  return locked_drain(self, queue, last_ticket(self, queue), &now);
}

static vt_status toy_queue_get_ticket(void *self, void *queue, uint64_t *out_ticket) {
  *out_ticket = last_ticket(self, queue);
  return VT_OK;
}

static vt_status timed_drain(toy_device *device, toy_queue *queue, uint64_t ticket, uint64_t timeout_ns, const char *method) {
  if (timeout_ns == VT_WAIT_FOREVER) {
    return locked_drain(device, queue, ticket, NULL);
  }
  struct timespec deadline = after_ns(timeout_ns);
  vt_status status = locked_drain(device, queue, ticket, &deadline);
  return status == VT_NOT_READY && timeout_ns != 0 ? fail(VT_ERR_TIMEOUT, method, "the work is not done yet") : status;
}

static vt_status toy_queue_wait_ticket(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns) {
  return timed_drain(self, queue, ticket, timeout_ns, "queue_wait_ticket");
}

static vt_status toy_queue_host_call(void *self, void *queue, const vt_host_call *call) {
  vt_status status = submit(self, queue, &(toy_command){.kind = TOY_HOST_CALL, .call = *call});
  if (status != VT_OK) {
    vt_host_call refused = *call;
    if (refused.cancel != NULL) {
      refused.cancel(refused.payload);
    }
    if (refused.drop != NULL) {
      refused.drop(refused.payload);
    }
  }
  return status;
}

static void *toy_queue_get_native(void *self, void *queue) {
  (void)self;
  return queue;
}

static vt_status toy_event_create(void *self, uint32_t flags, void **out_event) {
  (void)self;
  (void)flags;
  toy_event *event = calloc(1, sizeof(*event));
  if (event == NULL) {
    return fail(VT_ERR_OUT_OF_MEMORY, "event_create", "no memory for an event");
  }
  *out_event = event;
  return VT_OK;
}

static void toy_event_destroy(void *self, void *event) {
  toy_device *device = self;
  toy_event *e = event;
  pthread_mutex_lock(&device->mutex);
  if (e->queue != NULL) {
    queue_unref(device, e->queue);
  }
  pthread_mutex_unlock(&device->mutex);
  free(e);
}

static vt_status toy_event_record(void *self, void *event, void *queue) {
  toy_device *device = self;
  toy_event *e = event;
  toy_queue *q = queue;
  pthread_mutex_lock(&device->mutex);
  vt_status status = q->failed != 0 ? queue_error(q) : VT_OK;
  q->refs++;
  if (e->queue != NULL) {
    queue_unref(device, e->queue);
  }
  e->queue = q;
  e->ticket = q->submitted;
  pthread_mutex_unlock(&device->mutex);
  return status;
}

static vt_status event_drain(toy_device *device, const toy_event *event, const struct timespec *deadline) {
  pthread_mutex_lock(&device->mutex);
  vt_status status = event->queue == NULL ? VT_OK : drain(device, event->queue, event->ticket, deadline);
  pthread_mutex_unlock(&device->mutex);
  return status;
}

static vt_status toy_event_query(void *self, void *event) {
  struct timespec now = after_ns(0);
  return event_drain(self, event, &now);
}

static vt_status toy_event_wait(void *self, void *event, uint64_t timeout_ns) {
  if (timeout_ns == VT_WAIT_FOREVER) {
    return event_drain(self, event, NULL);
  }
  struct timespec deadline = after_ns(timeout_ns);
  vt_status status = event_drain(self, event, &deadline);
  return status == VT_NOT_READY ? fail(VT_ERR_TIMEOUT, "event_wait", "the event is not complete yet") : status;
}

static vt_status toy_queue_after_event(void *self, void *queue, void *event) {
  toy_device *device = self;
  toy_command command = {.kind = TOY_AFTER};
  pthread_mutex_lock(&device->mutex);
  command.other = ((toy_event *)event)->queue;
  command.ticket = ((toy_event *)event)->ticket;
  if (command.other != NULL) {
    command.other->refs++;  // until it is submitted: the event may be released meanwhile
  }
  pthread_mutex_unlock(&device->mutex);
  if (command.other == NULL || command.other == queue) {
    // Never recorded, or this queue's own past: nothing to wait for. The reference isn't needed.
    pthread_mutex_lock(&device->mutex);
    if (command.other != NULL) {
      queue_unref(device, command.other);
    }
    pthread_mutex_unlock(&device->mutex);
    return VT_OK;
  }
  vt_status status = submit(device, queue, &command);
  pthread_mutex_lock(&device->mutex);
  queue_unref(device, command.other);
  pthread_mutex_unlock(&device->mutex);
  return status;
}

static vt_status toy_get_info(void *self, vt_device_info *out_info) {
  (void)self;
  out_info->unified_memory = 1;
  out_info->host_addressable = 1;
  out_info->caps = VT_CAP_ASYNC_QUEUES | VT_CAP_EVENTS;
  strcpy(out_info->name, "toy device that defers");
  return VT_OK;
}

// Runs everything that was submitted so far, on every queue.
static vt_status toy_flush(void *self) {
  toy_device *device = self;
  pthread_mutex_lock(&device->mutex);
  toy_queue *queue = device->queues;
  while (queue != NULL) {
    queue->refs++;
    run_up_to(device, queue, queue->submitted, NULL);
    toy_queue *next = queue->next;
    queue_unref(device, queue);
    queue = next;
  }
  pthread_mutex_unlock(&device->mutex);
  return VT_OK;
}

static const vt_backend_ops toy_ops = {
    .struct_size = sizeof(vt_backend_ops),
    .abi_major = VT_BACKEND_ABI_MAJOR,
    .abi_minor = VT_BACKEND_ABI_MINOR,
    .alloc = toy_alloc,
    .free = toy_free,
    .pinned_alloc = toy_alloc,
    .pinned_free = toy_free,
    .copy = toy_copy,
    .memset = toy_memset,
    .queue_create = toy_queue_create,
    .queue_destroy = toy_queue_destroy,
    .queue_synchronize = toy_queue_synchronize,
    .queue_query = toy_queue_query,
    .queue_get_ticket = toy_queue_get_ticket,
    .queue_wait_ticket = toy_queue_wait_ticket,
    .queue_host_call = toy_queue_host_call,
    .queue_get_native = toy_queue_get_native,
    .event_create = toy_event_create,
    .event_destroy = toy_event_destroy,
    .event_record = toy_event_record,
    .event_query = toy_event_query,
    .event_wait = toy_event_wait,
    .queue_after_event = toy_queue_after_event,
    .get_info = toy_get_info,
    .flush = toy_flush,
    .copy_batch = toy_copy_batch,
    .copy_2d = toy_copy_2d,
};

const vt_backend_ops *vt_toy_get_ops(void) {
  return &toy_ops;
}

static toy_device the_device = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void *vt_toy_get_self(void) {
  return &the_device;
}

static void init_the_device(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&the_device.changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

vt_status vt_toy_register(vt_device device) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, init_the_device);
  return vt_backend_register(device, "toy", &toy_ops, &the_device);
}
