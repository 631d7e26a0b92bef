// queue.c: synchronous queues, and asynchronous ones: a bounded ring and a worker.
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "core/log.h"
#include "cpu/cpu.h"

static vt__cpu_command *slot_of(vt__cpu_queue *queue, uint64_t ticket) {
  return &queue->ring[(ticket - 1) & (queue->options.ring_capacity - 1)];
}

static void free_queue(vt__cpu_queue *queue) {
  pthread_mutex_destroy(&queue->submit_mutex);
  vt__timeline_unref(queue->timeline);
  vt__free(queue->ring);
  vt__free(queue);
}

vt_status vt__cpu_queue_create(void *self, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)self;
  vt__cpu_queue *queue = vt__calloc_lines(sizeof(*queue));
  if (queue == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_queue_create", "no memory for a queue");
  }
  queue->id = id;
  queue->options = *options;
  const char *name = options->name == NULL ? "vt-queue" : options->name;
  memcpy(queue->name, name, strnlen(name, sizeof(queue->name) - 1));
  queue->options.name = queue->name;
  pthread_mutex_init(&queue->submit_mutex, NULL);
  if ((options->flags & VT_QUEUE_ASYNC) != 0) {
    queue->timeline = vt__timeline_new(id);
    queue->ring = vt__malloc_aligned(VT_NO_SHARING, options->ring_capacity * sizeof(*queue->ring));
    if (queue->timeline == NULL || queue->ring == NULL) {
      free_queue(queue);
      return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_queue_create", "no memory for a ring of %u operations",
                          options->ring_capacity);
    }
  }
  *out_queue = queue;
  return VT_OK;
}

// Runs or, once the queue has failed, cancels one command, and marks it as done.
static void consume(vt__cpu_queue *queue, uint64_t ticket, bool *failed) {
  vt__cpu_command *command = slot_of(queue, ticket);
  if (*failed) {
    (void)vt__timeline_get_failure(queue->timeline);  // the command finds it in the thread's record
    vt__cpu_command_cancel(command);
  } else {
    vt_status status = vt__cpu_command_run(command, &(vt__cpu_place){queue->id, queue->name, ticket, 0, NULL});
    if (status < 0) {
      vt__timeline_fail(queue->timeline, ticket, status);
      *failed = true;
    }
  }
  vt__cpu_command_drop(command);
  vt__counter_publish(&queue->timeline->done, ticket);
}

// Where it runs is best effort: what it didn't get is a warning.
static void warn_of_what_is_missing(const vt__cpu_queue *queue) {
  uint64_t wanted = queue->options.cpu_mask;
  uint64_t usable = vt__thread_granted.cpu_mask;
  if (usable != wanted) {
    vt__log(VT_LOG_WARN, "the worker of queue %llu may use CPUs 0x%llx of the 0x%llx asked for%s", (unsigned long long)queue->id,
            (unsigned long long)usable, (unsigned long long)wanted, usable == 0 ? ": it isn't bound" : "");
  }
  if (!vt__thread_granted.priority) {
    vt__log(VT_LOG_WARN, "the worker of queue %llu didn't get priority %d", (unsigned long long)queue->id, queue->options.priority);
  }
}

static void worker_main(void *arg) {
  vt__cpu_queue *queue = arg;
  bool failed = false;
  warn_of_what_is_missing(queue);
  uint64_t ticket = 0;
  for (;;) {
    (void)vt__counter_wait(&queue->submitted, ticket + 1, VT_WAIT_FOREVER, &queue->closing, VT__CPU_SPINS);
    // Looked at after the stop flag: what was submitted before closing still runs. And once for all that is there, since each look
    // takes the line from the submitter.
    uint64_t last = vt__counter_load(&queue->submitted);
    if (last == ticket) {
      break;
    }
    while (ticket < last) {
      consume(queue, ++ticket, &failed);
    }
  }
  // Who closed the queue may still be ringing: see vt__cpu_queue_destroy().
  pthread_mutex_lock(&queue->submit_mutex);
  void (*done)(void *user) = queue->done;
  void *user = queue->done_user;
  pthread_mutex_unlock(&queue->submit_mutex);
  free_queue(queue);
  done(user);
}

void vt__cpu_queue_destroy(void *self, void *native, void (*done)(void *user), void *user) {
  (void)self;
  vt__cpu_queue *queue = native;
  if (!queue->started) {
    free_queue(queue);
    done(user);
    return;
  }
  // Once it sees the flag, the worker frees the queue. It takes this lock first, so the bell is rung before.
  pthread_mutex_lock(&queue->submit_mutex);
  queue->done = done;
  queue->done_user = user;
  // seq_cst: partner is stopped() in vt__counter_wait(): either the worker sees the flag, or it is seen sleeping and woken.
  atomic_store_explicit(&queue->closing, 1, memory_order_seq_cst);
  vt__counter_ring(&queue->submitted);
  pthread_mutex_unlock(&queue->submit_mutex);
}

static vt_status start_worker(vt__cpu_queue *queue, const char *function) {
  vt__thread_options options = {.name = queue->name, .cpu_mask = queue->options.cpu_mask, .priority = queue->options.priority};
  int error = vt__thread_start(&options, worker_main, queue);
  if (error != 0) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_ERRNO, error, function, "no thread for queue %llu (errno %d)",
                        (unsigned long long)queue->id, error);
  }
  queue->started = true;
  return VT_OK;
}

// Waits until the ring has room for command `ticket`. The caller holds the lock.
static vt_status wait_for_room(vt__cpu_queue *queue, uint64_t ticket) {
  uint64_t capacity = queue->options.ring_capacity;
  if (ticket <= queue->known_done + capacity) {
    return VT_OK;
  }
  queue->known_done = vt__counter_load(&queue->timeline->done);
  if (ticket <= queue->known_done + capacity) {
    return VT_OK;
  }
  if ((queue->options.flags & VT_QUEUE_FAIL_FULL) != 0) {
    return VT_NOT_READY;
  }
  // Without a deadline: the worker runs operations that have theirs, or host functions of the user.
  (void)vt__counter_wait(&queue->timeline->done, ticket - capacity, VT_WAIT_FOREVER, NULL, VT__CPU_SPINS);
  return VT_OK;
}

static vt_status push_locked(vt__cpu_queue *queue, const vt__cpu_command *command) {
  VT_TRY(vt__timeline_get_failure(queue->timeline));
  if (VT_UNLIKELY(!queue->started)) {
    VT_TRY(start_worker(queue, vt__cpu_command_function(command)));
  }
  // relaxed: written under this lock only.
  uint64_t ticket = atomic_load_explicit(&queue->submitted.value, memory_order_relaxed) + 1;
  VT_TRY(wait_for_room(queue, ticket));
  *slot_of(queue, ticket) = *command;
  vt__counter_publish(&queue->submitted, ticket);
  return VT_OK;
}

static vt_status push(vt__cpu_queue *queue, vt__cpu_command *command) {
  pthread_mutex_lock(&queue->submit_mutex);
  vt_status status = push_locked(queue, command);
  pthread_mutex_unlock(&queue->submit_mutex);
  if (status != VT_OK) {
    vt__cpu_command_drop(command);
  }
  return status;
}

static vt_status run_now(vt__cpu_queue *queue, vt__cpu_command *command) {
  // relaxed: only uniqueness and growth are promised.
  uint64_t ticket = atomic_fetch_add_explicit(&queue->tickets, 1, memory_order_relaxed) + 1;
  vt_status status = vt__cpu_command_run(command, &(vt__cpu_place){queue->id, queue->name, ticket, 0, NULL});
  vt__cpu_command_drop(command);
  return status;
}

vt__cpu_graph *vt__cpu_recording(vt__cpu_queue *queue) {
  // relaxed: only what this thread stored itself leads on.
  vt__cpu_graph *graph = atomic_load_explicit(&queue->graph, memory_order_relaxed);
  bool own = graph != NULL && atomic_load_explicit(&queue->graph_owner, memory_order_relaxed) == vt__thread_token();
  return own ? graph : NULL;
}

// A call that came through the checks before another thread began to capture runs as if it had come before that.
vt_status vt__cpu_submit(vt__cpu_queue *queue, vt__cpu_command *command) {
  if (VT_UNLIKELY(vt__cpu_recording(queue) != NULL)) {
    vt_status status = vt__cpu_graph_append(queue, command);
    if (status != VT_OK) {
      vt__cpu_command_drop(command);
    }
    return status;
  }
  return queue->timeline == NULL ? run_now(queue, command) : push(queue, command);
}

uint64_t vt__cpu_last_ticket(vt__cpu_queue *queue) {
  // relaxed: see run_now().
  return queue->timeline == NULL ? atomic_load_explicit(&queue->tickets, memory_order_relaxed)
                                 : vt__counter_load(&queue->submitted);
}

vt_status vt__cpu_queue_get_ticket(void *self, void *native, uint64_t *out_ticket) {
  (void)self;
  *out_ticket = vt__cpu_last_ticket(native);
  return VT_OK;
}

vt_status vt__cpu_queue_wait_ticket(void *self, void *native, uint64_t ticket, uint64_t timeout_ns) {
  (void)self;
  vt__cpu_queue *queue = native;
  if (queue->timeline == NULL) {
    return VT_OK;
  }
  if (timeout_ns == 0) {
    return vt__timeline_query(queue->timeline, ticket);
  }
  return vt__timeline_wait(queue->timeline, ticket, timeout_ns, VT_WAIT_MODE_DEFAULT, "vt_queue_wait_ticket");
}

vt_status vt__cpu_queue_synchronize(void *self, void *native) {
  return vt__cpu_queue_wait_ticket(self, native, vt__cpu_last_ticket(native), VT_WAIT_FOREVER);
}

vt_status vt__cpu_queue_query(void *self, void *native) {
  return vt__cpu_queue_wait_ticket(self, native, vt__cpu_last_ticket(native), 0);
}
