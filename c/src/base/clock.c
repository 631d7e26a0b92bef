// clock.c: see clock.h.
#include "base/clock.h"

#include <time.h>

uint64_t vt__now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);  // can't fail: the clock always exists on Linux
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t vt__deadline_after(uint64_t timeout_ns) {
  uint64_t now = vt__now_ns();
  return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}
