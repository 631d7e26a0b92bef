// wait.h: waiting for a value that another thread publishes.
//
// Two tools: a backoff for polls of several words at once, and a counter that one or more threads can sleep on.
#ifndef VT_BASE_WAIT_H
#define VT_BASE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

static inline void vt__pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

// Processors that this process may use, read once.
uint32_t vt__cpu_count(void);

// A poll loop's patience: it spins, then yields, then naps for at most 1 ms at a time.
typedef struct vt__backoff {
  uint32_t polls;
  uint32_t spin_limit;  // polls before it yields
} vt__backoff;

// `contenders` threads are expected to run at once; with more of them than processors it yields almost at once.
static inline vt__backoff vt__backoff_begin(uint32_t contenders) {
  return (vt__backoff){.polls = 0, .spin_limit = contenders <= vt__cpu_count() ? 4000 : 32};
}

// Called after an unsuccessful poll. Answers true where the time should be looked at, which is not at every poll.
bool vt__backoff_pause(vt__backoff *backoff);

// A 64-bit value that only grows, with sleepers.
typedef struct vt__counter {
  _Atomic uint64_t value;
  _Atomic uint32_t asleep;  // 1: somebody may sleep who was not rung for yet
  _Atomic uint32_t bell;    // futex word: changes whenever sleepers are to look again
} vt__counter;

static inline uint64_t vt__counter_load(const vt__counter *counter) {
  // acquire: partner is the store in vt__counter_publish(); what was done before it is visible.
  return atomic_load_explicit(&((vt__counter *)(uintptr_t)counter)->value, memory_order_acquire);
}

// Wakes the sleepers without a new value, so that they look at their stop flag again.
void vt__counter_ring_slow(vt__counter *counter);
static inline void vt__counter_ring(vt__counter *counter) {
  // seq_cst: partner is the store in sleep_until(). Either this load sees that somebody sleeps, or the sleeper, whose look at the
  // value and at its stop flag comes after its store, sees what was stored before this load.
  if (VT_UNLIKELY(atomic_load_explicit(&counter->asleep, memory_order_seq_cst) != 0)) {
    vt__counter_ring_slow(counter);
  }
}

// Publishes a new value and wakes the sleepers.
static inline void vt__counter_publish(vt__counter *counter, uint64_t value) {
  // seq_cst: partner is vt__counter_load() for the data, and the sleeper's load in sleep_until() for the order against `asleep`.
  atomic_store_explicit(&counter->value, value, memory_order_seq_cst);
  vt__counter_ring(counter);
}

// Waits until the value has reached `target`, `deadline_ns` (UINT64_MAX: never) has passed, or *stop (may be NULL) is not 0.
// Answers whether the target was reached. `spins` polls come first; then the thread sleeps.
bool vt__counter_wait(vt__counter *counter, uint64_t target, uint64_t deadline_ns, const _Atomic uint32_t *stop, uint32_t spins);

// Waits without sleeping: between its polls it pauses or, if `yields`, offers its processor to other threads. Answers whether the
// target was reached.
bool vt__counter_poll(const vt__counter *counter, uint64_t target, uint64_t deadline_ns, bool yields);

#endif
