// guest.c: the library is a guest in its program: CPU masks, signal handlers and signal masks are the host's, and waits go on under
// the host's signals.
#include "vt_test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

// What belongs to the host: of the process, and of the thread that looks.
typedef struct host_state {
  cpu_set_t cpus;
  sigset_t blocked;
  struct sigaction actions[65];
} host_state;

static void take_host_state(host_state *state) {
  memset(state, 0, sizeof(*state));
  sched_getaffinity(0, sizeof(state->cpus), &state->cpus);
  pthread_sigmask(SIG_SETMASK, NULL, &state->blocked);
  for (int number = 1; number <= 64; number++) {
    (void)sigaction(number, NULL, &state->actions[number]);  // libc keeps two for itself: they stay zero
  }
}

static int same_signals(const sigset_t *a, const sigset_t *b) {
  for (int number = 1; number <= 64; number++) {
    if (sigismember(a, number) != sigismember(b, number)) {
      return 0;
    }
  }
  return 1;
}

static void expect_host_state(vt_case *c, const host_state *before, const char *after_what) {
  host_state now;
  take_host_state(&now);
  if (!CPU_EQUAL(&before->cpus, &now.cpus)) {
    FAIL_CASE(c, "%s changed the caller's CPU mask", after_what);
  }
  if (!same_signals(&before->blocked, &now.blocked)) {
    FAIL_CASE(c, "%s changed the caller's signal mask", after_what);
  }
  for (int number = 1; number <= 64; number++) {
    const struct sigaction *a = &before->actions[number];
    const struct sigaction *b = &now.actions[number];
    if (a->sa_handler != b->sa_handler || a->sa_flags != b->sa_flags || !same_signals(&a->sa_mask, &b->sa_mask)) {
      FAIL_CASE(c, "%s changed the handler of signal %d", after_what, number);
    }
  }
}

// The parts of the interface. Each waits for what it has begun, so threads of the library have come and, of some, gone.

static void use_devices(vt_case *c) {
  int32_t count = 0;
  vt_device_info info = VT_DEVICE_INFO_INIT;
  EXPECT_OK(c, vt_device_get_count(VT_DEVICE_CPU, &count));
  EXPECT_OK(c, vt_device_get_info(vt_test_device(c), &info));
  EXPECT_OK(c, vt_device_flush(vt_test_device(c)));
}

static void use_memory(vt_case *c) {
  void *block = NULL;
  vt_arena *arena = NULL;
  EXPECT_OK(c, vt_alloc(vt_test_device(c), 1 << 20, &block));
  EXPECT_OK(c, vt_free(vt_test_device(c), block));
  EXPECT_OK(c, vt_pinned_alloc(vt_test_device(c), 1 << 20, &block));
  EXPECT_OK(c, vt_pinned_free(vt_test_device(c), block));
  REQUIRE_OK(c, vt_arena_create(vt_test_device(c), 4096, &arena));
  vt_arena_release(arena);
}

static void use_queues(vt_case *c) {
  vt_queue_options options = vt_test_queue_options(c);
  vt_queue *queue = NULL;
  vt_event *event = vt_test_event(c, 0);
  unsigned char *block = vt_test_alloc(c, 64);
  options.cpu_mask = 1;
  options.priority = 5;
  REQUIRE_OK(c, vt_queue_create(vt_test_device(c), &options, &queue));
  EXPECT_OK(c, vt_memset(queue, block, 1, 64));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_event_synchronize(event));
  EXPECT_OK(c, vt_queue_destroy(queue));
}

// A graph of two branches: the second one has a thread of the pool.
static void use_graphs(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *side = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  unsigned char *block = vt_test_alloc(c, 64);
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_queue_after_event(side, event));
  EXPECT_OK(c, vt_memset(side, block, 1, 32));
  EXPECT_OK(c, vt_memset(queue, block + 32, 1, 32));
  EXPECT_OK(c, vt_event_record(event, side));
  EXPECT_OK(c, vt_queue_after_event(queue, event));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  vt_graph_release(graph);
}

static void use_providers(vt_case *c) {
  vt_op_id op = 0;
  const vt_op_provider *found = NULL;
  vt_op_stats stats = VT_OP_STATS_INIT;
  EXPECT_OK(c, vt_op_intern("vt.all_reduce", &op));
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_OK(c, vt_op_provider_get_stats(op, VT_DEVICE_CPU, VT_OP_NATIVE_NAME, &stats));
}

static void use_group(vt_case *c) {
  float data[2][4] = {{1, 2, 3, 4}, {1, 2, 3, 4}};
  vt_comm_group *group = NULL;
  vt_queue *queues[2] = {vt_test_queue(c), vt_test_queue(c)};
  REQUIRE_OK(c, vt_comm_group_create(2, NULL, &group));
  EXPECT_OK(c, vt_comm_batch_begin());
  for (int32_t rank = 0; rank < 2; rank++) {
    vt_comm *comm = NULL;
    EXPECT_OK(c, vt_comm_group_get_comm(group, rank, &comm));
    EXPECT_OK(c, vt_comm_all_reduce(comm, queues[rank], data[rank], data[rank], 4, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  }
  EXPECT_OK(c, vt_comm_batch_end());
  EXPECT_OK(c, vt_queue_synchronize(queues[0]));
  EXPECT_OK(c, vt_queue_synchronize(queues[1]));
  vt_comm_group_release(group);
}

static void use_trace_file(vt_case *c) {
  char path[] = "/tmp/vt_guest_XXXXXX";
  int file = mkstemp(path);
  REQUIRE_TRUE(c, file >= 0);
  EXPECT_OK(c, vt_trace_file_begin(path));
  use_queues(c);
  EXPECT_OK(c, vt_trace_file_end());
  close(file);
  unlink(path);
}

static void fail_a_call(vt_case *c) {
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_queue_synchronize(NULL));
  vt_queue_release((vt_queue *)(void *)vt_test_event(c, 0));
}

static const struct {
  const char *name;
  void (*use)(vt_case *c);
  uint32_t needs;
} parts[] = {
    {"using devices", use_devices, 0},        {"using memory", use_memory, 0},       {"using queues", use_queues, 0},
    {"using graphs", use_graphs, NEED_GRAPH}, {"using providers", use_providers, 0}, {"using a group", use_group, NEED_COMM},
    {"tracing to a file", use_trace_file, 0}, {"a failure", fail_a_call, 0},
};

static _Atomic int32_t host_signals;

static void count_signal(int number) {
  (void)number;
  // relaxed: a count.
  atomic_fetch_add_explicit(&host_signals, 1, memory_order_relaxed);
}

static void the_hosts_cpu_mask_and_signals_are_left_alone(vt_case *c) {
  struct sigaction own = {.sa_handler = count_signal};
  struct sigaction segv, usr2;
  host_state before;
  // Handlers that a host may have, and that libraries like to take.
  sigaction(SIGSEGV, &own, &segv);
  sigaction(SIGUSR2, &own, &usr2);
  take_host_state(&before);
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    if (vt_test_has(c, parts[i].needs)) {
      parts[i].use(c);
      expect_host_state(c, &before, parts[i].name);
    }
  }
  // relaxed: this thread's own signal.
  int32_t seen = atomic_load_explicit(&host_signals, memory_order_relaxed);
  raise(SIGSEGV);
  EXPECT_EQ(c, seen + 1, atomic_load_explicit(&host_signals, memory_order_relaxed));  // relaxed: as above
  sigaction(SIGSEGV, &segv, NULL);
  sigaction(SIGUSR2, &usr2, NULL);
}

// What a thread of the library sees of itself.
typedef struct thread_view {
  sigset_t blocked;
  cpu_set_t cpus;
  int priority;
} thread_view;

static vt_status look_around(void *user) {
  thread_view *view = user;
  pthread_sigmask(SIG_SETMASK, NULL, &view->blocked);
  sched_getaffinity(0, sizeof(view->cpus), &view->cpus);
  view->priority = getpriority(PRIO_PROCESS, 0);
  return VT_OK;
}

static void expect_no_signals(vt_case *c, const thread_view *view, const char *what) {
  int last = vt_test_is_emulated() ? 62 : 64;  // qemu keeps two for itself
  for (int number = 1; number <= last; number++) {
    int unblockable = number == SIGKILL || number == SIGSTOP || (number >= 32 && number < SIGRTMIN);
    if (!unblockable && !sigismember(&view->blocked, number)) {
      FAIL_CASE(c, "%s takes signal %d", what, number);
    }
  }
}

static void threads_of_the_library_take_no_signals(vt_case *c) {
  vt_queue *queue = vt_test_queue(c);
  vt_queue *side = vt_test_queue(c);
  vt_event *event = vt_test_event(c, 0);
  vt_graph *graph = NULL;
  thread_view worker = {0};
  thread_view branch = {0};
  EXPECT_OK(c, vt_queue_host_func(queue, look_around, &worker, NULL));
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_queue_after_event(side, event));
  EXPECT_OK(c, vt_queue_host_func(side, look_around, &branch, NULL));
  EXPECT_OK(c, vt_event_record(event, side));
  EXPECT_OK(c, vt_queue_after_event(queue, event));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  expect_no_signals(c, &worker, "a worker");
  expect_no_signals(c, &branch, "a branch's thread");
  vt_graph_release(graph);
}

// Masks.

typedef struct warnings {
  pthread_mutex_t mutex;
  int count;
  char last[512];
} warnings;

static void take_warning(void *user, vt_log_level level, const char *message) {
  warnings *w = user;
  (void)level;
  pthread_mutex_lock(&w->mutex);
  w->count++;
  snprintf(w->last, sizeof(w->last), "%s", message);
  pthread_mutex_unlock(&w->mutex);
}

// The CPUs of a queue's worker that was asked to run on those of a mask.
static cpu_set_t cpus_of_worker(vt_case *c, uint64_t mask) {
  vt_queue_options options = vt_test_queue_options(c);
  options.cpu_mask = mask;
  options.priority = 19;
  thread_view view = {0};
  vt_queue *queue = vt_test_queue_with(c, &options);
  EXPECT_OK(c, vt_queue_host_func(queue, look_around, &view, NULL));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 19, view.priority);
  return view.cpus;
}

static void expect_warning(vt_case *c, warnings *w, uint64_t usable, uint64_t wanted) {
  char part[128];
  snprintf(part, sizeof(part), "may use CPUs 0x%llx of the 0x%llx asked for", (unsigned long long)usable,
           (unsigned long long)wanted);
  EXPECT_EQ(c, 1, w->count);
  if (strstr(w->last, part) == NULL) {
    FAIL_CASE(c, "\"%s\" lacks \"%s\"", w->last, part);
  }
  w->count = 0;
}

// The first CPU from `from` on that is in the set; 64: none is.
static size_t next_cpu(const cpu_set_t *set, size_t from) {
  while (from < 64 && !CPU_ISSET(from, set)) {
    from++;
  }
  return from;
}

static cpu_set_t only(size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

// CPU 63 is one that this machine hasn't; a cpuset that lacks it is the same to the system.
static void cpus_that_a_worker_may_not_use_are_a_warning(vt_case *c) {
  host_state before;
  take_host_state(&before);
  size_t cpu = next_cpu(&before.cpus, 0);
  if (cpu == 64 || sysconf(_SC_NPROCESSORS_CONF) > 63) {
    SKIP_CASE(c, "may use none of CPUs 0 to 63, or has all of them");
  }
  warnings w = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  uint64_t own = UINT64_C(1) << cpu;
  uint64_t other = UINT64_C(1) << 63;
  cpu_set_t one = only(cpu);
  EXPECT_OK(c, vt_log_set(take_warning, &w, VT_LOG_WARN));
  cpu_set_t outside = cpus_of_worker(c, other);
  expect_warning(c, &w, 0, other);
  cpu_set_t partly = cpus_of_worker(c, own | other);
  expect_warning(c, &w, own, own | other);
  cpu_set_t inside = cpus_of_worker(c, own);
  EXPECT_EQ(c, 0, w.count);
  EXPECT_TRUE(c, CPU_EQUAL(&outside, &before.cpus) && CPU_EQUAL(&partly, &one) && CPU_EQUAL(&inside, &one));
  EXPECT_OK(c, vt_log_set(NULL, NULL, VT_LOG_OFF));
}

// As an engine does that keeps a CPU for its own thread.
static void a_worker_runs_where_it_is_told_whatever_its_starter_is_bound_to(vt_case *c) {
  host_state before;
  take_host_state(&before);
  size_t cpu = next_cpu(&before.cpus, 0);
  size_t other = cpu == 64 ? 64 : next_cpu(&before.cpus, cpu + 1);
  if (other == 64) {
    SKIP_CASE(c, "may use one CPU only");
  }
  cpu_set_t starter = only(cpu);
  cpu_set_t expected = only(other);
  EXPECT_EQ(c, 0, sched_setaffinity(0, sizeof(starter), &starter));
  cpu_set_t worker = cpus_of_worker(c, UINT64_C(1) << other);
  EXPECT_TRUE(c, CPU_EQUAL(&worker, &expected));
  cpu_set_t now;
  sched_getaffinity(0, sizeof(now), &now);
  EXPECT_TRUE(c, CPU_EQUAL(&now, &starter));
  sched_setaffinity(0, sizeof(before.cpus), &before.cpus);
}

// Waits under a signal every millisecond. Thread 0 sends the signals, opens the gate after a while, and lets the others go only
// when it sends no more.

enum { WAITERS = 4 };

typedef struct rain {
  pthread_t threads[WAITERS + 1];
  _Atomic int32_t there;
  _Atomic int32_t timed_out;  // 1: the waits that the gate must not end are over
  _Atomic int32_t calls;
  _Atomic int32_t done;
  vt_test_latch gate;
  vt_test_latch over;
  vt_queue *queue;  // its first function waits at the gate
  vt_queue *full;   // of four places, likewise
  vt_event *event;
  uint64_t ticket;
  vt_queue *queues[2];
  vt_comm *comms[2];
  vt_comm *lonely;  // its peer never comes
} rain;

static int32_t load(_Atomic int32_t *value) {
  // acquire: partner is the increment of a waiter.
  return atomic_load_explicit(value, memory_order_acquire);
}

static void add_one(_Atomic int32_t *value) {
  // release: partner is the load of thread 0.
  atomic_fetch_add_explicit(value, 1, memory_order_release);
}

static void send_signals(rain *r) {
  while (load(&r->there) < WAITERS) {
    vt_test_sleep_ns(100000);
  }
  for (int i = 0; load(&r->done) < WAITERS; i++) {
    for (int k = 1; k <= WAITERS; k++) {
      pthread_kill(r->threads[k], SIGALRM);
    }
    vt_test_sleep_ns(1000000);
    if (i >= 200 && load(&r->timed_out) != 0) {
      vt_test_latch_open(&r->gate);
    }
  }
  vt_test_latch_open(&r->over);
}

static void wait_for_queue(vt_case *c, rain *r) {
  for (vt_wait_mode mode = VT_WAIT_MODE_DEFAULT; r->queue != NULL && mode <= VT_WAIT_MODE_SPIN; mode++) {
    uint64_t begin = vt_test_now_ns();
    EXPECT_STATUS(c, VT_ERR_TIMEOUT, vt_event_wait_by(r->event, mode, 10000000));
    EXPECT_STATUS(c, VT_ERR_TIMEOUT, vt_queue_wait_ticket(r->queue, r->ticket, 10000000));
    EXPECT_TRUE(c, vt_test_now_ns() - begin >= 20000000);
  }
  add_one(&r->timed_out);
  if (r->queue != NULL) {
    EXPECT_OK(c, vt_event_synchronize(r->event));
    EXPECT_OK(c, vt_queue_wait_ticket(r->queue, r->ticket, VT_WAIT_FOREVER));
    EXPECT_OK(c, vt_queue_synchronize(r->queue));
  }
}

static void submit_to_full_queue(vt_case *c, rain *r) {
  for (int i = 0; r->full != NULL && i < 12; i++) {
    EXPECT_OK(c, vt_queue_host_func(r->full, vt_test_host_count, &r->calls, NULL));
  }
  if (r->full != NULL) {
    EXPECT_OK(c, vt_queue_destroy(r->full));
    EXPECT_EQ(c, 12, load(&r->calls));
  }
}

// Rank 1 comes first and waits inside its calls, or for its queue.
static void meet(vt_case *c, rain *r, int32_t rank) {
  char byte = (char)rank;
  vt_status status = VT_OK;
  if (rank == 0) {
    vt_test_sleep_ns(100000000);
    status = vt_comm_send(r->comms[0], r->queues[0], &byte, 1, VT_DTYPE_U8, 1, NULL);
  } else {
    status = vt_comm_recv(r->comms[1], r->queues[1], &byte, 1, VT_DTYPE_U8, 0, NULL);
  }
  EXPECT_OK(c, status);
  EXPECT_OK(c, vt_queue_synchronize(r->queues[rank]));
  EXPECT_EQ(c, 0, byte);
  vt_test_sleep_ns(rank == 0 ? 100000000 : 0);
  EXPECT_OK(c, vt_comm_barrier(r->comms[rank], r->queues[rank], NULL));
  EXPECT_OK(c, vt_queue_synchronize(r->queues[rank]));
}

static void miss(vt_case *c, rain *r) {
  vt_comm_call call = VT_COMM_CALL_INIT;
  call.timeout_ns = 50000000;
  uint64_t begin = vt_test_now_ns();
  vt_status status = vt_comm_barrier(r->lonely, r->queues[0], &call);
  status = status == VT_OK ? vt_queue_synchronize(r->queues[0]) : status;
  EXPECT_EQ(c, VT_ERR_TIMEOUT, status);
  EXPECT_TRUE(c, vt_test_now_ns() - begin >= 50000000);
}

static void wait_in_the_rain(vt_case *c, int32_t index, void *arg) {
  rain *r = arg;
  if (index == 0) {
    send_signals(r);
    return;
  }
  r->threads[index] = pthread_self();
  add_one(&r->there);
  if (index == 1) {
    wait_for_queue(c, r);
  } else if (index == 2) {
    submit_to_full_queue(c, r);
  } else {
    meet(c, r, index - 3);
  }
  if (index == 3) {
    miss(c, r);
  }
  add_one(&r->done);
  vt_test_latch_wait(&r->over);
}

static void block_queues(vt_case *c, rain *r) {
  vt_queue_options options = vt_test_queue_options(c);
  options.ring_capacity = 4;
  r->queue = vt_test_queue(c);
  r->event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_queue_host_func(r->queue, vt_test_host_wait, &r->gate, NULL));
  EXPECT_OK(c, vt_event_record(r->event, r->queue));
  EXPECT_OK(c, vt_queue_get_ticket(r->queue, &r->ticket));
  EXPECT_OK(c, vt_queue_create(vt_test_device(c), &options, &r->full));
  EXPECT_OK(c, vt_queue_host_func(r->full, vt_test_host_wait, &r->gate, NULL));
}

static void waits_go_on_under_signals(vt_case *c) {
  struct sigaction own = {.sa_handler = count_signal};  // without SA_RESTART: what can be interrupted is
  struct sigaction before;
  rain r = {.gate = VT_TEST_LATCH_INIT, .over = VT_TEST_LATCH_INIT};
  if (vt_test_has(c, NEED_WORKER)) {
    block_queues(c, &r);
  }
  vt_comm_group *group = vt_test_group(c, 2, NULL);
  for (int32_t rank = 0; rank < 2; rank++) {
    r.queues[rank] = vt_test_queue(c);
    REQUIRE_OK(c, vt_comm_group_get_comm(group, rank, &r.comms[rank]));
  }
  REQUIRE_OK(c, vt_comm_group_get_comm(vt_test_group(c, 2, NULL), 0, &r.lonely));
  // relaxed, both: a count.
  int32_t seen = atomic_load_explicit(&host_signals, memory_order_relaxed);
  sigaction(SIGALRM, &own, &before);
  vt_test_threads(c, WAITERS + 1, wait_in_the_rain, &r);
  EXPECT_TRUE(c, atomic_load_explicit(&host_signals, memory_order_relaxed) - seen >= 100);
  sigaction(SIGALRM, &before, NULL);
}

const vt_test_case vt_cases_guest[] = {
    {"the_hosts_cpu_mask_and_signals_are_left_alone", 0, the_hosts_cpu_mask_and_signals_are_left_alone},
    {"threads_of_the_library_take_no_signals", NEED_WORKER | NEED_GRAPH, threads_of_the_library_take_no_signals},
    {"cpus_that_a_worker_may_not_use_are_a_warning", NEED_WORKER, cpus_that_a_worker_may_not_use_are_a_warning},
    {"a_worker_runs_where_it_is_told_whatever_its_starter_is_bound_to", NEED_WORKER,
     a_worker_runs_where_it_is_told_whatever_its_starter_is_bound_to},
    {"waits_go_on_under_signals", NEED_COMM, waits_go_on_under_signals},
    VT_TEST_END};
