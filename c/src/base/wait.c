// wait.c: see wait.h.
#include "base/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"

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

// How far this thread's spins are shortened: by as many halvings. Spinning pays as long as the awaited thread runs on another
// processor, and only the waits themselves can tell.
static _Thread_local uint32_t halvings;

uint32_t vt__backoff_spins(uint32_t contenders, vt__wait_policy policy) {
  enum { MOST = 4000, FEW = 32, FEWEST = 16 };
  if (VT_UNLIKELY(policy != VT__WAIT_ADAPTIVE)) {
    return policy == VT__WAIT_SPIN ? UINT32_MAX : FEW;
  }
  uint32_t spins = (contenders <= vt__cpu_count() ? (uint32_t)MOST : (uint32_t)FEW) >> halvings;
  return spins > FEWEST ? spins : FEWEST;
}

void vt__backoff_learn(vt__backoff *backoff) {
  enum { MOST_HALVINGS = 8 };
  if (VT_UNLIKELY(backoff->others_ran)) {
    halvings += halvings < MOST_HALVINGS;
  } else if (VT_UNLIKELY(halvings > 0)) {
    halvings--;
  }
  backoff->others_ran = false;
}

// Offers the processor, and notes whether another thread took it.
static void offer(vt__backoff *backoff) {
  enum { ALONE_NS = 1000 };  // a yield that finds no other thread takes a third of it
  uint64_t before = vt__now_ns();
  (void)sched_yield();
  uint64_t now = vt__now_ns();
  backoff->others_ran = now - before > ALONE_NS;
  backoff->since_ns = backoff->since_ns == 0 ? before : backoff->since_ns;
  backoff->tired = backoff->policy == VT__WAIT_ADAPTIVE && now - backoff->since_ns > VT__YIELD_NS;
}

bool vt__backoff_pause(vt__backoff *backoff) {
  uint32_t polls = ++backoff->polls;  // may wrap around: it spins anew, and goes on looking at the time
  if (polls < backoff->spins) {
    vt__pause();
    return (polls & 255) == 0;
  }
  if (backoff->policy == VT__WAIT_SLEEP) {
    backoff->tired = true;
  } else {
    offer(backoff);
  }
  return (polls & 15) == 0;
}

void vt__bell_ring_slow(vt__bell *bell) {
  // relaxed: a ring publishes nothing; the sleeper finds what it waits for by its own acquire loads.
  uint32_t seen = atomic_load_explicit(bell, memory_order_relaxed);
  // relaxed: as above. Fails where another ring has come first, which is as good.
  if ((seen & 1) != 0 &&
      atomic_compare_exchange_strong_explicit(bell, &seen, seen + 1, memory_order_relaxed, memory_order_relaxed)) {
    futex_wake_all(bell);
  }
}

// Short sleeps at first: something that rings no bell may be awaited, and a ring may have been missed.
static uint64_t sleep_ns(uint32_t sleeps) {
  return sleeps < 16 ? 50000 : 1000000;
}

bool vt__backoff_rest(vt__backoff *backoff, vt__bell *bell) {
  enum { LAST_POLLS = 64 };
  if (bell == NULL) {
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)sleep_ns(backoff->sleeps++)};
    (void)nanosleep(&time, NULL);  // an early end is as good as a full nap: the caller polls again
    return true;
  }
  if (backoff->last_polls == 0) {
    backoff->bell = bell;
    // seq_cst: partner is the load in vt__bell_ring(), see there. The polls that follow come after it.
    backoff->rung = atomic_fetch_or_explicit(bell, 1, memory_order_seq_cst) | 1;
  }
  if (backoff->last_polls++ < LAST_POLLS) {
    vt__pause();
    return false;
  }
  backoff->last_polls = 0;
  futex_wait(backoff->bell, backoff->rung, vt__now_ns() + sleep_ns(backoff->sleeps++));
  return true;
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
