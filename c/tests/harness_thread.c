// harness_thread.c: the watchdog, threads that start together, doors, random numbers and random delays.
#include "suite.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_DEADLINE_S 60

uint64_t vt_test_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void vt_test_sleep_ns(uint64_t ns) {
  struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

int vt_test_is_tsan(void) {
#if defined(__SANITIZE_THREAD__)
  return 1;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return 1;
#else
  return 0;
#endif
#else
  return 0;
#endif
}

static int is_asan(void) {
#if defined(__SANITIZE_ADDRESS__)
  return 1;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return 1;
#else
  return 0;
#endif
#else
  return 0;
#endif
}

int vt_test_is_emulated(void) {
  const char *runner = getenv("VT_TEST_RUNNER");
  return runner != NULL && runner[0] != '\0';
}

int vt_test_is_slow(void) {
  const char *preload = getenv("LD_PRELOAD");
  return vt_test_is_tsan() || is_asan() || getenv("VT_TEST_SLOW") != NULL ||
         (preload != NULL && strstr(preload, "vgpreload") != NULL);
}

// The watchdog: one thread of the process, which sleeps until the deadline of the running case.

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  vt_case *running;
  uint64_t deadline_ns;
  int started;
} watchdog = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Noreturn void stop_the_program(vt_case *c) {
  fprintf(stderr, "\n%s/%s: HANGS (seed %llu)\n", c->row->name, c->test->name, (unsigned long long)c->seed);
  if (pthread_mutex_trylock(&c->mutex) == 0) {
    fprintf(stderr, "%.*s", (int)c->text_bytes, c->text);
    for (size_t i = 0; i < c->watched_count; i++) {
      static char text[65536];
      vt_comm_group_describe(c->watched[i], text, sizeof(text));
      fprintf(stderr, "  group %zu of %zu:\n%s\n", i + 1, c->watched_count, text);
    }
  }
  fflush(stderr);
  fflush(stdout);
  _exit(VT_SUITE_HANG_EXIT);
}

static void *watch(void *unused) {
  (void)unused;
  pthread_mutex_lock(&watchdog.mutex);
  for (;;) {
    if (watchdog.running == NULL) {
      pthread_cond_wait(&watchdog.changed, &watchdog.mutex);
    } else if (vt_test_now_ns() >= watchdog.deadline_ns) {
      stop_the_program(watchdog.running);
    } else {
      struct timespec until = {(time_t)(watchdog.deadline_ns / 1000000000u), (long)(watchdog.deadline_ns % 1000000000u)};
      pthread_cond_timedwait(&watchdog.changed, &watchdog.mutex, &until);
    }
  }
}

static void start_watchdog(vt_case *c) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&watchdog.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL) != 0) {
    vt_test_give_up(c, "no thread for the watchdog");
  }
  pthread_detach(thread);
  watchdog.started = 1;
}

static void set_deadline(vt_case *c, uint32_t seconds) {
  watchdog.running = c;
  watchdog.deadline_ns = vt_test_now_ns() + seconds * (vt_test_is_slow() ? UINT64_C(5000000000) : UINT64_C(1000000000));
  pthread_cond_signal(&watchdog.changed);
}

static uint32_t default_deadline(void) {
  const char *text = getenv("VT_TEST_DEADLINE");
  unsigned long seconds = text == NULL ? 0 : strtoul(text, NULL, 10);
  return seconds > 0 && seconds < 10000 ? (uint32_t)seconds : DEFAULT_DEADLINE_S;
}

void vt_test_set_deadline(vt_case *c, uint32_t seconds) {
  pthread_mutex_lock(&watchdog.mutex);
  set_deadline(c, seconds);
  pthread_mutex_unlock(&watchdog.mutex);
}

void vt_test_watch_begin(vt_case *c) {
  pthread_mutex_lock(&watchdog.mutex);
  if (!watchdog.started) {
    start_watchdog(c);
  }
  set_deadline(c, default_deadline());
  pthread_mutex_unlock(&watchdog.mutex);
}

void vt_test_watch_end(vt_case *c) {
  (void)c;
  pthread_mutex_lock(&watchdog.mutex);
  watchdog.running = NULL;
  pthread_cond_signal(&watchdog.changed);
  pthread_mutex_unlock(&watchdog.mutex);
}

void vt_test_watch_group(vt_case *c, vt_comm_group *group) {
  pthread_mutex_lock(&c->mutex);
  if (c->watched_count < VT_TEST_MAX_WATCHED) {
    c->watched[c->watched_count++] = group;
  }
  pthread_mutex_unlock(&c->mutex);
}

// Threads.

typedef struct thread_start {
  vt_case *c;
  vt_test_latch *door;
  vt_test_thread_fn fn;
  void *arg;
  int32_t index;
} thread_start;

static void *thread_main(void *argument) {
  thread_start *start = argument;
  vt_test_latch_wait(start->door);
  start->fn(start->c, start->index, start->arg);
  return NULL;
}

void vt_test_threads(vt_case *c, int32_t count, vt_test_thread_fn fn, void *arg) {
  vt_test_latch door = VT_TEST_LATCH_INIT;
  pthread_t *threads = calloc((size_t)count, sizeof(*threads));
  thread_start *starts = calloc((size_t)count, sizeof(*starts));
  if (threads == NULL || starts == NULL) {
    vt_test_give_up(c, "no memory");
  }
  for (int32_t i = 0; i < count; i++) {
    starts[i] = (thread_start){.c = c, .door = &door, .fn = fn, .arg = arg, .index = i};
    if (pthread_create(&threads[i], NULL, thread_main, &starts[i]) != 0) {
      vt_test_give_up(c, "no thread");
    }
  }
  vt_test_latch_open(&door);
  for (int32_t i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
  }
  free(threads);
  free(starts);
}

int32_t vt_test_count_threads(vt_case *c) {
  DIR *folder = opendir("/proc/self/task");
  int32_t count = 0;
  if (!EXPECT_TRUE(c, folder != NULL)) {
    return 0;
  }
  while (readdir(folder) != NULL) {
    count++;
  }
  closedir(folder);
  return count;
}

// Doors.

void vt_test_latch_open(vt_test_latch *latch) {
  pthread_mutex_lock(&latch->mutex);
  latch->open = 1;
  pthread_cond_broadcast(&latch->changed);
  pthread_mutex_unlock(&latch->mutex);
}

void vt_test_latch_wait(vt_test_latch *latch) {
  pthread_mutex_lock(&latch->mutex);
  latch->waiting++;
  pthread_cond_broadcast(&latch->changed);
  while (!latch->open) {
    pthread_cond_wait(&latch->changed, &latch->mutex);
  }
  latch->waiting--;
  pthread_mutex_unlock(&latch->mutex);
}

void vt_test_latch_await_waiter(vt_test_latch *latch) {
  pthread_mutex_lock(&latch->mutex);
  while (!latch->open && latch->waiting == 0) {
    pthread_cond_wait(&latch->changed, &latch->mutex);
  }
  pthread_mutex_unlock(&latch->mutex);
}

vt_status vt_test_host_wait(void *latch) {
  vt_test_latch_wait(latch);
  return VT_OK;
}

vt_status vt_test_host_count(void *counter) {
  // release: partner is the acquire load of a case that polls the count.
  atomic_fetch_add_explicit((_Atomic int32_t *)counter, 1, memory_order_release);
  return VT_OK;
}

void vt_test_drop_count(void *counter) {
  // release: partner is the acquire load of a case that polls the count.
  atomic_fetch_add_explicit((_Atomic int32_t *)counter, 1, memory_order_release);
}

vt_status vt_test_host_fail(void *text) {
  return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, __func__, "%s", (const char *)text);
}

// Random numbers.

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

uint64_t vt_test_seed(vt_case *c) {
  return c->seed;
}

vt_test_rng vt_test_rng_begin(vt_case *c, uint64_t stream) {
  return (vt_test_rng){mix(c->seed + stream * UINT64_C(0xd1342543de82ef95) + 1)};
}

uint64_t vt_test_random(vt_test_rng *rng) {
  rng->state += UINT64_C(0x9e3779b97f4a7c15);
  return mix(rng->state);
}

uint64_t vt_test_random_below(vt_test_rng *rng, uint64_t limit) {
  return vt_test_random(rng) % limit;
}

void vt_test_random_fill(vt_test_rng *rng, void *ptr, size_t bytes) {
  unsigned char *p = ptr;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = vt_test_random(rng);
    memcpy(p + i, &word, bytes - i < 8 ? bytes - i : 8);
  }
}

// Random delays: every operation sleeps before it begins, for a time that is a pure function of the seed and the operation.

static _Atomic uint64_t delay_seed;

static void delay(void *unused, const vt_trace_event *event) {
  (void)unused;
  if (event->is_end != 0) {
    return;
  }
  // relaxed: a number.
  uint64_t seed = atomic_load_explicit(&delay_seed, memory_order_relaxed);
  uint64_t dice = mix(seed ^ mix(event->queue_id * 64 + (uint64_t)event->kind) ^ mix(event->sequence + 1));
  if (dice % 128 == 0) {
    vt_test_sleep_ns(1000000 + (dice >> 20) % 3000000);
  } else if (dice % 4 != 1) {
    vt_test_sleep_ns((dice >> 20) % 200000);
  }
}

void vt_test_delays_begin(uint64_t seed) {
  // relaxed: a number.
  atomic_store_explicit(&delay_seed, seed, memory_order_relaxed);
  vt_trace_set(delay, NULL);
}

void vt_test_delays_end(void) {
  vt_trace_set(NULL, NULL);
}
