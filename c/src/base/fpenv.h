// fpenv.h: a known floating-point environment for arithmetic whose bits are promised.
#ifndef VT_BASE_FPENV_H
#define VT_BASE_FPENV_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef uint64_t vt__fpenv;

// Sets round to nearest, no flushing of subnormals, all exceptions masked. Answers what was set before.
static inline vt__fpenv vt__fpenv_enter(void) {
#if defined(__x86_64__)
  vt__fpenv before = _mm_getcsr();
  _mm_setcsr(0x1f80);
#else
  vt__fpenv before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
#endif
  return before;
}

static inline void vt__fpenv_leave(vt__fpenv before) {
#if defined(__x86_64__)
  _mm_setcsr((unsigned)before);
#else
  __asm__ volatile("msr fpcr, %0" : : "r"(before));
#endif
}

#endif
