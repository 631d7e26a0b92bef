// wait.c: see wait.h.
#include "base/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static uint32_t count_cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return (uint32_t)CPU_COUNT(&set);
  }
  // The mask of a machine with more processors than a cpu_set_t holds is refused.
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

uint32_t vt__cpu_count(void) {
  static _Atomic uint32_t cached;
  // relaxed: every thread would compute the same value.
  uint32_t count = atomic_load_explicit(&cached, memory_order_relaxed);
  if (count == 0) {
    count = count_cpus();
    atomic_store_explicit(&cached, count, memory_order_relaxed);  // relaxed: as above
  }
  return count;
}

static void nap(uint32_t round) {
  long ns = round < 16 ? 50000 : 1000000;
  struct timespec time = {.tv_sec = 0, .tv_nsec = ns};
  (void)nanosleep(&time, NULL);  // an early end is as good as a full nap: the caller polls again
}

bool vt__backoff_pause(vt__backoff *backoff) {
  enum { YIELDS = 512 };
  uint32_t polls = backoff->polls < UINT32_MAX ? ++backoff->polls : UINT32_MAX;
  if (polls < backoff->spin_limit) {
    vt__pause();
    return (polls & 255) == 0;
  }
  if (polls < backoff->spin_limit + YIELDS) {
    (void)sched_yield();
    return (polls & 15) == 0;
  }
  nap(polls - backoff->spin_limit - YIELDS);
  return true;
}

static void futex_wake_all(_Atomic uint32_t *word) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}

// Sleeps while *word is `expected`, until `deadline_ns` at most. May return early.
static void futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns) {
  struct timespec until;
  struct timespec *limit = NULL;
  if (deadline_ns != UINT64_MAX) {
    until.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000));
    until.tv_nsec = (long)(deadline_ns % UINT64_C(1000000000));
    limit = &until;
  }
  // WAIT_BITSET takes an absolute monotonic time, so an interrupted wait doesn't stretch.
  (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, limit, NULL, FUTEX_BITSET_MATCH_ANY);
}

void vt__counter_ring_slow(vt__counter *counter) {
  // seq_cst: partner is the store in sleep_until(). Taken back, so that whoever publishes before the sleepers are up again makes no
  // further system call. A sleeper whose word is taken back here read the bell before, so it doesn't sleep through the next line.
  if (atomic_exchange_explicit(&counter->asleep, 0, memory_order_seq_cst) != 0) {
    // release: partner is the acquire load of the bell in sleep_until().
    atomic_fetch_add_explicit(&counter->bell, 1, memory_order_release);
    futex_wake_all(&counter->bell);
  }
}

static bool stopped(const _Atomic uint32_t *stop) {
  // seq_cst: partner is the store of whoever rings the counter after setting its flag.
  return stop != NULL && atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)stop, memory_order_seq_cst) != 0;
}

static bool sleep_until(vt__counter *counter, uint64_t target, uint64_t deadline_ns, const _Atomic uint32_t *stop) {
  for (;;) {
    // acquire: partner is the increment in vt__counter_ring_slow(). Read before the word of sleep, so a ring in between ends the
    // wait.
    uint32_t bell = atomic_load_explicit(&counter->bell, memory_order_acquire);
    // seq_cst: partner is the load in vt__counter_ring().
    atomic_store_explicit(&counter->asleep, 1, memory_order_seq_cst);
    // seq_cst: partner is the store in vt__counter_publish().
    if (atomic_load_explicit(&counter->value, memory_order_seq_cst) >= target) {
      return true;
    }
    if (stopped(stop) || (deadline_ns != UINT64_MAX && vt__now_ns() >= deadline_ns)) {
      return false;
    }
    futex_wait(&counter->bell, bell, deadline_ns);
    if (vt__counter_load(counter) >= target) {
      return true;  // without a word of sleep that nobody takes back
    }
  }
}

bool vt__counter_wait(vt__counter *counter, uint64_t target, uint64_t deadline_ns, const _Atomic uint32_t *stop, uint32_t spins) {
  for (uint32_t i = 0; i < spins; i++) {
    if (vt__counter_load(counter) >= target) {
      return true;
    }
    if (stopped(stop)) {
      return false;
    }
    vt__pause();
  }
  return vt__counter_load(counter) >= target || sleep_until(counter, target, deadline_ns, stop);
}

bool vt__counter_poll(const vt__counter *counter, uint64_t target, uint64_t deadline_ns, bool yields) {
  for (uint32_t polls = 1; vt__counter_load(counter) < target; polls++) {
    if (yields) {
      (void)sched_yield();
    } else {
      vt__pause();
    }
    if (polls % 16 == 0 && deadline_ns != UINT64_MAX && vt__now_ns() >= deadline_ns) {
      return vt__counter_load(counter) >= target;
    }
  }
  return true;
}
