// wait.h: waiting for a value that another thread publishes.
//
// Two tools: a backoff for polls of several words at once, with a bell to sleep on, and a counter that threads can sleep on.
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

// A word to sleep on: odd while somebody may sleep, counted up by the ring that follows.
typedef _Atomic uint32_t vt__bell;

void vt__bell_ring_slow(vt__bell *bell);

// Wakes who sleeps on the bell. Called after a publication. Costs one load of a line that nobody writes while nobody sleeps.
static inline void vt__bell_ring(vt__bell *bell) {
  // relaxed: partner is the exchange in vt__backoff_rest(). A stronger order would keep this load from overtaking the publication,
  // for as much as a small collective's tenth. Instead the sleeper polls on for longer than a publication needs to become visible,
  // and what that may miss is bounded: every sleep ends within 1 ms.
  if (VT_UNLIKELY((atomic_load_explicit(bell, memory_order_relaxed) & 1) != 0)) {
    vt__bell_ring_slow(bell);
  }
}

typedef enum vt__wait_policy {
  VT__WAIT_ADAPTIVE,  // spins as long as that has paid on this thread, yields, then sleeps
  VT__WAIT_SLEEP,     // sleeps after a few polls
  VT__WAIT_YIELD,     // yields without end
  VT__WAIT_SPIN,      // spins without end
} vt__wait_policy;

// How long it yields before it sleeps.
#define VT__YIELD_NS 100000

// Polls before a thread yields, or sleeps.
uint32_t vt__backoff_spins(uint32_t contenders, vt__wait_policy policy);

// A poll loop's patience: it spins, then yields, then sleeps for at most 1 ms at a time.
typedef struct vt__backoff {
  uint32_t polls;  // since something moved
  uint32_t spins;  // polls before it yields
  vt__wait_policy policy;
  bool tired;           // sleeps from now on
  bool others_ran;      // the last yield let another thread run
  uint32_t last_polls;  // since it took hold of the bell
  uint32_t sleeps;
  uint32_t rung;      // the bell's word, if that is unchanged it sleeps
  vt__bell *bell;     // the one it took hold of
  uint64_t since_ns;  // of the first yield
} vt__backoff;

// `contenders` threads are expected to run at once: with more of them than processors the adaptive policy yields almost at once,
// and so it does where yielding has let others run before.
static inline vt__backoff vt__backoff_begin(uint32_t contenders, vt__wait_policy policy) {
  return (vt__backoff){.spins = vt__backoff_spins(contenders, policy), .policy = policy};
}

void vt__backoff_learn(vt__backoff *backoff);

// What was waited for has come, or some of it: patience begins anew.
static inline void vt__backoff_moved(vt__backoff *backoff) {
  if (backoff->polls > 0) {
    vt__backoff_learn(backoff);
  }
  backoff->polls = backoff->last_polls = backoff->sleeps = 0;
  backoff->tired = false;
  backoff->since_ns = 0;
}

// Called after an unsuccessful poll. Answers true where the time should be looked at, which is not at every poll. `bell` is rung
// after what is waited for; it is read where `tired`, and NULL is fine.
bool vt__backoff_pause(vt__backoff *backoff);
bool vt__backoff_rest(vt__backoff *backoff, vt__bell *bell);
static inline bool vt__backoff_wait(vt__backoff *backoff, vt__bell *bell) {
  return VT_UNLIKELY(backoff->tired) ? vt__backoff_rest(backoff, bell) : vt__backoff_pause(backoff);
}

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
