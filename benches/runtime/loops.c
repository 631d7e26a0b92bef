// loops.c: the C half of the runtime benchmark: C calls C, in a process of its own.
//
// usage: loops MASK WORKERS
//
// Runs on the processors of the bit mask MASK, and queues' workers on those of WORKERS. Lists the cases, "NAME OPERATIONS" a line,
// then an empty line. Then it reads names, one a line, takes one sample of each and answers "NS ok" or "NS wrong": the time of one
// operation, and whether the work was really done. cases.rs does the same work from Rust.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vllm_vt/vt.h>

enum { COPY = 64, NODES = 1000, PAGES = 300, PAGE = 16384, FORKS = 40, ARENA_STEP = 256, BLOCK = 4096 };

static const vt_device cpu = {VT_DEVICE_CPU, 0};
static vt_queue *now_queue;   // synchronous
static vt_queue *main_queue;  // asynchronous, like the next one
static vt_queue *side_queue;
static vt_event *fork_event;
static vt_event *join_event;
static vt_arena *arena;
static vt_op_id plain_op;
static vt_op_id asked_op;
static vt_op_id refused_op;
static vt_graph *now_calls;  // graphs, by what they hold
static vt_graph *now_copies;
static vt_graph *main_calls;
static vt_graph *main_forks;

static unsigned char source[COPY];
static unsigned char target[COPY];
static unsigned char *pages;       // PAGES of PAGE bytes
static unsigned char *page_store;  // the same
static vt_copy_op page_ops[PAGES];
static uint64_t calls;  // of the host function
static const vt_op_provider *found;
static void *room;
static vt_status worst;  // the first status that was not VT_OK
static volatile size_t copy_bytes = COPY;

static inline void note(vt_status status) {
  if (__builtin_expect(status != VT_OK, 0) && worst == VT_OK) {
    worst = status;
  }
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void hide(const void *pointer) {
  __asm__ volatile("" : : "r"(pointer) : "memory");
}

// References.

static void nothing(unsigned n) {
  (void)n;
}

__attribute__((noinline)) static int empty(const void *argument) {
  hide(argument);
  return 0;
}

static void run_empty(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(empty(source));
  }
}

static void run_memcpy(unsigned n) {
  size_t bytes = copy_bytes;
  for (unsigned i = 0; i < n; i++) {
    memcpy(target, source, bytes);
    hide(target);
  }
}

enum { TRIPS = 256 };

static uint64_t worker_mask;

static void be_on(uint64_t mask) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < 64; i++) {
    if ((mask >> i & 1) != 0) {
      CPU_SET(i, &set);
    }
  }
  (void)sched_setaffinity(0, sizeof(set), &set);
}

// A thread that sleeps on `bell` and answers each change of it in `answer`; then it returns `trips` balls.
static _Alignas(128) _Atomic uint32_t bell;
static _Alignas(128) _Atomic uint32_t answer;
static _Alignas(128) _Atomic uint32_t ball;
static _Alignas(128) _Atomic uint32_t ball_back;
static uint32_t trips;

static void *sleeper(void *unused) {
  (void)unused;
  be_on(worker_mask);
  for (uint32_t seen = 0;;) {
    while (atomic_load_explicit(&bell, memory_order_acquire) == seen) {
      (void)syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    seen = atomic_load_explicit(&bell, memory_order_acquire);
    uint32_t balls = trips;
    atomic_store_explicit(&answer, seen, memory_order_release);
    for (uint32_t i = 1; i <= balls; i++) {
      while (atomic_load_explicit(&ball, memory_order_acquire) != i) {
      }
      atomic_store_explicit(&ball_back, i, memory_order_release);
    }
  }
  return NULL;
}

static void run_wake_call(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    atomic_fetch_add_explicit(&bell, 1, memory_order_release);
    (void)syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

static void await_answer(void) {
  while (atomic_load_explicit(&answer, memory_order_acquire) != atomic_load_explicit(&bell, memory_order_relaxed)) {
  }
}

static void run_wake(unsigned n) {
  run_wake_call(n);
  await_answer();
}

static void start_ping_pong(void) {
  trips = TRIPS;
  atomic_store_explicit(&ball, 0, memory_order_relaxed);
  atomic_store_explicit(&ball_back, 0, memory_order_relaxed);
  run_wake(1);
  trips = 0;
}

// An operation is one way: two of them make a trip.
static void run_ping_pong(unsigned n) {
  for (uint32_t i = 1; i <= n / 2; i++) {
    atomic_store_explicit(&ball, i, memory_order_release);
    while (atomic_load_explicit(&ball_back, memory_order_acquire) != i) {
    }
  }
}

// What runs at once.

static void run_arena(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    if (i % ARENA_STEP == 0) {
      note(vt_arena_reset(arena));
    }
    note(vt_arena_alloc(arena, COPY, &room));
  }
}

static bool check_arena(void) {
  vt_arena_stats stats = {.struct_size = sizeof(stats)};
  return vt_arena_get_stats(arena, &stats) == VT_OK && stats.used == ARENA_STEP * COPY && stats.resets > 0;
}

static void look_up(vt_op_id op, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  }
}
static void run_lookup(unsigned n) {
  look_up(plain_op, n);
}
static void run_lookup_asked(unsigned n) {
  look_up(asked_op, n);
}
static void run_lookup_refused(unsigned n) {
  look_up(refused_op, n);
}

// A second thread that looks up the same operation meanwhile.
static _Atomic bool rival_wanted;
static pthread_t rival_thread;

static void *rival(void *unused) {
  const vt_op_provider *provider = unused;
  be_on(worker_mask);
  while (atomic_load_explicit(&rival_wanted, memory_order_relaxed)) {
    (void)vt_op_get(plain_op, VT_DEVICE_CPU, NULL, &provider);
  }
  return NULL;
}

static void start_rival(void) {
  atomic_store_explicit(&rival_wanted, true, memory_order_relaxed);
  if (pthread_create(&rival_thread, NULL, rival, NULL) != 0) {
    exit(1);
  }
}

static bool check_first(void) {
  return strcmp(found->name, "first") == 0;
}
static bool check_rivalled(void) {
  atomic_store_explicit(&rival_wanted, false, memory_order_relaxed);
  return pthread_join(rival_thread, NULL) == 0 && check_first();
}
static bool check_second(void) {
  return strcmp(found->name, "second") == 0;
}

static void run_copy(unsigned n) {
  size_t bytes = copy_bytes;
  for (unsigned i = 0; i < n; i++) {
    note(vt_copy(now_queue, target, source, bytes));
  }
}

static vt_status count(void *counter) {
  ++*(uint64_t *)counter;
  return VT_OK;
}

static void run_calls(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_queue_host_func(now_queue, count, &calls, NULL));
  }
}

static void run_alloc(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    void *block = NULL;
    note(vt_alloc(cpu, BLOCK, &block));
    note(vt_free(cpu, block));
  }
}

static void run_pool(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    void *block = NULL;
    note(vt_alloc_async(now_queue, BLOCK, &block));
    note(vt_free_async(now_queue, block));
  }
}

static void run_replay_calls(unsigned n) {
  (void)n;
  note(vt_graph_launch(now_calls, now_queue));
}

static void run_replay_copies(unsigned n) {
  (void)n;
  note(vt_graph_launch(now_copies, now_queue));
}

// What a worker runs.

static void settle(void) {
  note(vt_queue_synchronize(main_queue));
  note(vt_queue_synchronize(side_queue));
}

// The worker has just run something: it looks for more.
static void worker_awake(void) {
  for (int i = 0; i < 4; i++) {
    note(vt_copy(main_queue, target, source, COPY));
  }
  note(vt_queue_synchronize(main_queue));
  memset(target, 0, COPY);
}

// Long enough for a thread that looks for work to have gone to sleep.
static void worker_asleep(void) {
  struct timespec time = {.tv_sec = 0, .tv_nsec = 2000000};
  nanosleep(&time, NULL);
}

static void run_submit(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_copy(main_queue, target, source, COPY));
  }
}

static void run_round_trip(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_copy(main_queue, target, source, COPY));
    note(vt_queue_synchronize(main_queue));
  }
}

static void run_record(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_event_record(fork_event, main_queue));
  }
}

static void run_query(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_event_query(fork_event));
  }
}

static void run_wait(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_event_synchronize(fork_event));
  }
}

static void run_after(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_queue_after_event(side_queue, fork_event));
  }
}

static void fork_and_join(void) {
  note(vt_event_record(fork_event, main_queue));
  note(vt_queue_after_event(side_queue, fork_event));
  note(vt_copy(side_queue, target, source, COPY));
  note(vt_event_record(join_event, side_queue));
  note(vt_queue_after_event(main_queue, join_event));
}

static void run_forks(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    fork_and_join();
  }
  note(vt_queue_synchronize(main_queue));
}

static void run_replay_forks(unsigned n) {
  (void)n;
  note(vt_graph_launch(main_forks, main_queue));
  note(vt_queue_synchronize(main_queue));
}

static void run_eager(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_queue_host_func(main_queue, count, &calls, NULL));
  }
  note(vt_queue_synchronize(main_queue));
}

static void run_replay(unsigned n) {
  (void)n;
  note(vt_graph_launch(main_calls, main_queue));
  note(vt_queue_synchronize(main_queue));
}

static void clear_pages(void) {
  memset(page_store, 0, PAGES * PAGE);
  worker_awake();
}

static void run_pages(unsigned n) {
  for (size_t i = 0; i < n; i++) {
    note(vt_copy(main_queue, page_store + i * PAGE, pages + i * PAGE, PAGE));
  }
}

static void run_pages_through(unsigned n) {
  run_pages(n);
  note(vt_queue_synchronize(main_queue));
}

static void run_batch(unsigned n) {
  note(vt_copy_batch(main_queue, page_ops, n));
}

static void run_batch_through(unsigned n) {
  run_batch(n);
  note(vt_queue_synchronize(main_queue));
}

static bool check_pages(void) {
  settle();
  return memcmp(pages, page_store, PAGES * PAGE) == 0;
}

static bool check_copied(void) {
  settle();
  return memcmp(source, target, COPY) == 0;
}

static bool check_called(void) {
  settle();
  return calls == NODES;
}

static bool check_nothing(void) {
  return true;
}

// The cases.

typedef struct bench_case {
  const char *name;
  unsigned operations;
  void (*before)(void);
  void (*run)(unsigned n);
  bool (*check)(void);
} bench_case;

static void clear(void) {
  calls = 0;
  memset(target, 0, COPY);
}

static void record_complete(void) {
  note(vt_event_record(fork_event, main_queue));
  settle();
}

static const bench_case cases[] = {
    {"timer", 1, clear, nothing, check_nothing},
    {"empty", 4096, clear, run_empty, check_nothing},
    {"memcpy", 4096, clear, run_memcpy, check_copied},
    {"ping_pong", 2 * TRIPS, start_ping_pong, run_ping_pong, check_nothing},
    {"wake_call", 1, worker_asleep, run_wake_call, check_nothing},
    {"wake", 1, worker_asleep, run_wake, check_nothing},
    {"lookup", 4096, clear, run_lookup, check_first},
    {"lookup_asked", 4096, clear, run_lookup_asked, check_first},
    {"lookup_refused", 4096, clear, run_lookup_refused, check_second},
    {"lookup_rivalled", 4096, start_rival, run_lookup, check_rivalled},
    {"arena", 4096, clear, run_arena, check_arena},
    {"alloc", 512, clear, run_alloc, check_nothing},
    {"pool", 512, clear, run_pool, check_nothing},
    {"copy", 4096, clear, run_copy, check_copied},
    {"host_func", NODES, clear, run_calls, check_called},
    {"replay_calls", NODES, clear, run_replay_calls, check_called},
    {"eager_copies", NODES, clear, run_copy, check_copied},
    {"replay_copies", NODES, clear, run_replay_copies, check_copied},
    {"submit", 64, worker_awake, run_submit, check_copied},
    {"submit_one", 1, worker_awake, run_submit, check_copied},
    {"submit_asleep", 1, worker_asleep, run_submit, check_copied},
    {"round_trip", 64, worker_awake, run_round_trip, check_copied},
    {"round_trip_asleep", 1, worker_asleep, run_round_trip, check_copied},
    {"record", 1024, worker_awake, run_record, check_nothing},
    {"query", 1024, record_complete, run_query, check_nothing},
    {"wait", 1024, record_complete, run_wait, check_nothing},
    {"after_event", 1024, record_complete, run_after, check_nothing},
    {"fork_join", FORKS, worker_awake, run_forks, check_copied},
    {"replay_fork_join", FORKS, worker_awake, run_replay_forks, check_copied},
    {"eager", NODES, worker_awake, run_eager, check_called},
    {"replay", NODES, worker_awake, run_replay, check_called},
    {"pages_calls", PAGES, clear_pages, run_pages, check_pages},
    {"pages_batch", PAGES, clear_pages, run_batch, check_pages},
    {"pages_calls_done", PAGES, clear_pages, run_pages_through, check_pages},
    {"pages_batch_done", PAGES, clear_pages, run_batch_through, check_pages},
};

static const bench_case *case_of(const char *name) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(cases[i].name, name) == 0) {
      return &cases[i];
    }
  }
  return NULL;
}

static double once(const bench_case *it, bool *right) {
  calls = 0;
  it->before();
  uint64_t begin = now_ns();
  it->run(it->operations);
  uint64_t end = now_ns();
  *right = it->check() && worst == VT_OK;
  settle();
  return (double)(end - begin) / it->operations;
}

// The first turn is for caches and branch predictors, which are then those of the case and not of what ran before.
static void measure(const bench_case *it) {
  bool right = true;
  if (it->operations > 1) {
    (void)once(it, &right);
  }
  bool right_again;
  double ns = once(it, &right_again);
  printf("%.4f %s\n", ns, right && right_again ? "ok" : "wrong");
}

static int wants_all(void *user, vt_op_question *question) {
  (void)user;
  (void)question;
  return 1;
}

static int wants_none(void *user, vt_op_question *question) {
  (void)user;
  (void)question;
  return 0;
}

static void some_function(void) {}

static void provide(const char *name, vt_op_id *out_op, int (*first)(void *, vt_op_question *), bool second) {
  note(vt_op_intern(name, out_op));
  vt_op_provider provider = {.struct_size = sizeof(provider), .name = "first", .fn = some_function, .supports = first};
  note(vt_op_provider_register(*out_op, VT_DEVICE_CPU, &provider));
  if (second) {
    provider = (vt_op_provider){.struct_size = sizeof(provider), .name = "second", .priority = -1, .fn = some_function};
    note(vt_op_provider_register(*out_op, VT_DEVICE_CPU, &provider));
  }
}

static vt_graph *capture(vt_queue *queue, int repeats, void (*body)(unsigned n)) {
  vt_graph *graph = NULL;
  note(vt_graph_begin_capture(queue));
  body((unsigned)repeats);
  note(vt_graph_end_capture(queue, &graph));
  return graph;
}

static void forks_of(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    fork_and_join();
  }
}

static void calls_on_main(unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    note(vt_queue_host_func(main_queue, count, &calls, NULL));
  }
}

static void prepare(void) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = VT_QUEUE_ASYNC;
  options.cpu_mask = worker_mask;
  note(vt_queue_create(cpu, NULL, &now_queue));
  note(vt_queue_create(cpu, &options, &main_queue));
  note(vt_queue_create(cpu, &options, &side_queue));
  note(vt_event_create(cpu, 0, &fork_event));
  note(vt_event_create(cpu, 0, &join_event));
  note(vt_arena_create(cpu, ARENA_STEP * COPY, &arena));
  provide("bench.plain", &plain_op, NULL, false);
  provide("bench.asked", &asked_op, wants_all, false);
  provide("bench.refused", &refused_op, wants_none, true);
  note(vt_alloc(cpu, PAGES * PAGE, (void **)&pages));
  note(vt_alloc(cpu, PAGES * PAGE, (void **)&page_store));
  if (worst == VT_OK) {
    memset(pages, 7, PAGES * PAGE);
    for (size_t i = 0; i < PAGES; i++) {
      page_ops[i] = (vt_copy_op){.dst = page_store + i * PAGE, .src = pages + i * PAGE, .bytes = PAGE};
    }
    memset(source, 9, COPY);
    now_calls = capture(now_queue, NODES, run_calls);
    now_copies = capture(now_queue, NODES, run_copy);
    main_calls = capture(main_queue, NODES, calls_on_main);
    main_forks = capture(main_queue, FORKS, forks_of);
  }
}

static void serve(void) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    printf("%s %u\n", cases[i].name, cases[i].operations);
  }
  printf("\n");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof(line), stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    const bench_case *it = case_of(line);
    if (it == NULL) {
      printf("unknown\n");
    } else {
      measure(it);
    }
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: loops MASK WORKERS\n");
    return 2;
  }
  worker_mask = strtoull(argv[2], NULL, 0);
  be_on(strtoull(argv[1], NULL, 0));
  pthread_t thread;
  if (pthread_create(&thread, NULL, sleeper, NULL) != 0) {
    return 1;
  }
  prepare();
  if (worst != VT_OK) {
    fprintf(stderr, "%s\n", vt_last_error()->message);
    return 1;
  }
  serve();
  return 0;
}
