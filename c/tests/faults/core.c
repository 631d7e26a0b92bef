// core.c: memory, arenas, queues, events, hooks.
#include <stdatomic.h>
#include <unistd.h>

#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

// The library's table of blocks grows with the last ones.
enum { MANY_BLOCKS = 130 };

static void blocks(int pass) {
  void *device[MANY_BLOCKS];
  void *pinned = NULL;
  (void)pass;
  for (int i = 0; i < MANY_BLOCKS; i++) {
    DO_UNLESS(i > 0 && i < MANY_BLOCKS - 5, vt_alloc, (cpu, 100, &device[i]));
  }
  DO(vt_pinned_alloc, (cpu, 64, &pinned));
  ASK(vt_pinned_free, (cpu, pinned));
  for (int i = 0; i < MANY_BLOCKS; i++) {
    ASK(vt_free, (cpu, device[i]));
  }
}

// A mapping of its own, which another process could map.
static void shareable(int pass) {
  vt_alloc_options options = VT_ALLOC_OPTIONS_INIT;
  vt_memory_info info = VT_MEMORY_INFO_INIT;
  void *block = NULL;
  int32_t fd = -1;
  size_t offset;
  size_t bytes;
  (void)pass;
  options.flags = VT_ALLOC_SHAREABLE;
  DO(vt_alloc_with, (cpu, 100, &options, &block));
  ASK(vt_memory_get_info, (cpu, block, &info));
  ASK(vt_memory_export_fd, (cpu, block, &fd, &offset, &bytes));
  SURE(close(fd) == 0);
  ASK(vt_free, (cpu, block));
}

static void arenas(int pass) {
  vt_arena *arena = NULL;
  void *ptr;
  vt_arena_mark mark;
  vt_arena_stats stats = VT_ARENA_STATS_INIT;
  vt_device device;
  (void)pass;
  DO(vt_arena_create, (cpu, 256, &arena));
  ASK(vt_arena_retain, (arena));
  ASK(vt_arena_get_mark, (arena, &mark));
  ASK(vt_arena_alloc, (arena, 10, &ptr));
  ASK(vt_arena_alloc_elements, (arena, 10, VT_DTYPE_F32, &ptr));
  ASK(vt_arena_rewind, (arena, mark));
  ASK(vt_arena_reset, (arena));
  ASK(vt_arena_get_stats, (arena, &stats));
  ASK(vt_arena_get_device, (arena, &device));
  TELL(vt_arena_release, (arena));
  TELL(vt_arena_release, (arena));
}

typedef struct counts {
  _Atomic int ran;
  _Atomic int dropped;
} counts;

static vt_status run(void *user) {
  atomic_fetch_add(&((counts *)user)->ran, 1);
  return VT_OK;
}

static void drop(void *user) {
  atomic_fetch_add(&((counts *)user)->dropped, 1);
}

static void hook(void *counter) {
  atomic_fetch_add((_Atomic int *)counter, 1);
}

// What a queue that has its worker is asked needs nothing.
static void use_queue(vt_queue *queue) {
  char to[4] = {0};
  uint64_t ticket;
  vt_device device;
  ASK(vt_memset, (queue, to, 1, 4));
  ASK(vt_copy, (queue, to, "abc", 4));
  ASK(vt_queue_get_ticket, (queue, &ticket));
  ASK(vt_queue_wait_ticket, (queue, ticket, VT_WAIT_FOREVER));
  ASK(vt_queue_synchronize, (queue));
  ASK(vt_queue_query, (queue));
  ASK(vt_queue_get_device, (queue, &device));
  SURE(strcmp(to, "abc") == 0);
  LOOK(vt_queue_get_id, (queue));
  LOOK(vt_queue_get_native, (queue));
  LOOK(vt_queue_is_synchronous, (queue));
  LOOK(vt_queue_is_capturing, (queue));
  ASK(vt_device_flush, (device));
}

static void any_queue(uint32_t flags) {
  static counts counted;
  static _Atomic int ended;
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  vt_queue *queue = NULL;
  options.flags = flags;
  atomic_store(&counted.ran, 0);
  atomic_store(&counted.dropped, 0);
  DO(vt_queue_create, (cpu, &options, &queue));
  DO(vt_queue_on_destroy, (queue, hook, &ended));
  // The first operation starts the worker. Where that fails, the function is dropped and did not run.
  bool failed = !TRY(vt_queue_host_func, (queue, run, &counted, drop));
  if (failed) {
    SURE(atomic_load(&counted.ran) == 0 && atomic_load(&counted.dropped) == 1);
    DO(vt_queue_host_func, (queue, run, &counted, drop));
  }
  use_queue(queue);
  ASK(vt_queue_retain, (queue));
  ASK(vt_queue_destroy, (queue));
  SURE(atomic_load(&counted.ran) == 1);
  TELL(vt_queue_release, (queue));
}

static void sync_queue(int pass) {
  (void)pass;
  any_queue(0);
}

static void async_queue(int pass) {
  (void)pass;
  any_queue(VT_QUEUE_ASYNC);
}

// Each operation that may be the first one of a queue, and so the one that starts its worker.
static void first_operations(int pass) {
  static char to[4];
  vt_event *event = NULL;
  (void)pass;
  DO(vt_event_create, (cpu, VT_EVENT_TIMING, &event));
  for (int first = 0; first < 5; first++) {
    vt_queue *queue = fault_queue(cpu, VT_QUEUE_ASYNC);
    if (first == 0) {
      DO(vt_copy, (queue, to, "abc", 4));
    } else if (first == 3) {
      DO(vt_copy_batch, (queue, &(vt_copy_op){to, "abc", 4}, 1));
    } else if (first == 4) {
      DO(vt_copy_2d, (queue, to, 2, "abc", 2, 1, 2));
    } else if (first == 1) {
      DO(vt_memset, (queue, to, 0, 4));
    } else {
      DO(vt_event_record, (event, queue));
    }
    ASK(vt_queue_destroy, (queue));
    fault_await_queues(0);
  }
  vt_event_release(event);
}

static vt_status wait_for_flag(void *flag) {
  while (atomic_load((_Atomic int *)flag) == 0) {
  }
  return VT_OK;
}

// A wait for what is pending starts the worker of the queue that waits.
static void waiting(int pass) {
  static _Atomic int flag;
  vt_queue *busy = fault_queue(cpu, VT_QUEUE_ASYNC);
  vt_queue *waiter = fault_queue(cpu, VT_QUEUE_ASYNC);
  vt_event *event = NULL;
  (void)pass;
  atomic_store(&flag, 0);
  DO(vt_event_create, (cpu, 0, &event));
  DO(vt_queue_host_func, (busy, wait_for_flag, &flag, NULL));
  DO(vt_event_record, (event, busy));
  DO(vt_queue_after_event, (waiter, event));
  atomic_store(&flag, 1);
  ASK(vt_queue_destroy, (waiter));
  ASK(vt_queue_destroy, (busy));
  vt_event_release(event);
}

static void events(int pass) {
  vt_queue *queue = fault_queue(cpu, 0);
  vt_event *event = NULL;
  vt_event *other = NULL;
  vt_device device;
  uint64_t ns;
  (void)pass;
  DO(vt_event_create, (cpu, VT_EVENT_TIMING, &event));
  DO(vt_event_create, (cpu, VT_EVENT_TIMING | VT_EVENT_BLOCKING, &other));
  ASK(vt_event_record, (event, queue));
  ASK(vt_event_record, (other, queue));
  ASK(vt_event_query, (event));
  ASK(vt_event_wait, (event, VT_WAIT_FOREVER));
  ASK(vt_event_wait_by, (event, VT_WAIT_MODE_SPIN, VT_WAIT_FOREVER));
  ASK(vt_event_synchronize, (event));
  ASK(vt_queue_after_event, (queue, event));
  ASK(vt_event_get_elapsed, (event, other, &ns));
  ASK(vt_event_get_device, (event, &device));
  ASK(vt_event_retain, (event));
  LOOK(vt_event_get_id, (event));
  LOOK(vt_event_get_native, (event));
  TELL(vt_event_release, (event));
  TELL(vt_event_release, (event));
  TELL(vt_event_release, (other));
  TELL(vt_queue_release, (queue));
}

static void on_log(void *user, vt_log_level level, const char *message) {
  (void)user;
  (void)level;
  (void)message;
}

static void on_trace(void *user, const vt_trace_event *event) {
  (void)event;
  atomic_fetch_add((_Atomic int *)user, 1);
}

static void hooks(int pass) {
  static _Atomic int traced;
  char byte;
  vt_queue *queue = fault_queue(cpu, 0);
  (void)pass;
  DO(vt_log_set, (on_log, NULL, VT_LOG_DEBUG));
  DO(vt_trace_set, (on_trace, &traced));
  int before = atomic_load(&traced);
  ASK(vt_memset, (queue, &byte, 0, 1));
  SURE(atomic_load(&traced) == before + 2);
  ASK(vt_trace_set, (NULL, NULL));
  ASK(vt_log_set, (NULL, NULL, VT_LOG_OFF));
  TELL(vt_queue_release, (queue));
}

// A thread without a buffer loses operations, which the end of the file reports.
static void trace_file(int pass) {
  char byte;
  vt_queue *queue = fault_queue(cpu, 0);
  (void)pass;
  DO(vt_trace_file_begin, ("/dev/null"));
  DO_ANYWAY(vt_memset, (queue, &byte, 0, 1));
  bool lost = fault_was_met();
  fault_begin("vt_trace_file_end");
  SURE(vt_trace_file_end() == (lost ? VT_ERR_OUT_OF_MEMORY : VT_OK));
  SURE(!lost || strstr(vt_last_error()->message, "1 operations are missing") != NULL);
  TELL(vt_queue_release, (queue));
}

const scenario fault_scenarios_core[] = {{"blocks", blocks, false},
                                         {"shareable", shareable, false},
                                         {"arenas", arenas, false},
                                         {"sync_queue", sync_queue, false},
                                         {"async_queue", async_queue, false},
                                         {"first_operations", first_operations, false},
                                         {"waiting", waiting, false},
                                         {"events", events, false},
                                         {"hooks", hooks, false},
                                         {"trace_file", trace_file, false},
                                         {NULL, NULL, false}};
