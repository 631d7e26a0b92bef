// clock.h: time for deadlines (ns) and for records (cycle counter).
#ifndef VT_BASE_CLOCK_H
#define VT_BASE_CLOCK_H

#include <stdint.h>

// Monotonic time in ns.
uint64_t vt__now_ns(void);

// `timeout_ns` from now, saturating: UINT64_MAX stays "never".
uint64_t vt__deadline_after(uint64_t timeout_ns);

// The processor's cycle counter: cheap, of constant rate, the same on all cores.
static inline uint64_t vt__ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

#endif
