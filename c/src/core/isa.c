// isa.c: the instruction set, by what the processor and the system have and by VT_CPU_ISA.
#include "core/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#if defined(__x86_64__)
#include <cpuid.h>

static const char *const names[VT__ISA_COUNT] = {"sse2", "avx2", "avx512"};

// Register state that the system saves and restores: XCR0.
static uint64_t saved_state(void) {
  uint32_t low;
  uint32_t high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool has_all(uint64_t set, uint64_t wanted) {
  return (set & wanted) == wanted;
}

static vt__isa best_isa(void) {
  enum { YMM_STATE = 0x6, ZMM_STATE = 0xe6 };
  const uint32_t avx2 = bit_AVX2;
  const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, bit_OSXSAVE | bit_AVX | bit_F16C)) {
    return VT__ISA_SSE2;
  }
  uint64_t state = saved_state();
  if (!has_all(state, YMM_STATE) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, avx2)) {
    return VT__ISA_SSE2;
  }
  return has_all(state, ZMM_STATE) && has_all(b, avx512) ? VT__ISA_AVX512 : VT__ISA_AVX2;
}
#else
static const char *const names[VT__ISA_COUNT] = {"neon"};

static vt__isa best_isa(void) {
  return VT__ISA_NEON;
}
#endif

static _Atomic vt__isa chosen;

// VT__ISA_COUNT for a name that isn't known here.
static vt__isa isa_of(const char *name) {
  if (strcmp(name, "baseline") == 0) {
    return 0;
  }
  vt__isa isa = 0;
  while (isa < VT__ISA_COUNT && strcmp(name, names[isa]) != 0) {
    isa++;
  }
  return isa;
}

bool vt__isa_init(void) {
  vt__isa best = best_isa();
  vt__isa isa = best;
  const char *wanted = getenv("VT_CPU_ISA");
  if (wanted != NULL && wanted[0] != 0) {
    isa = isa_of(wanted);
    if (isa > best) {
      vt__log(VT_LOG_WARN, "VT_CPU_ISA=%s is %s; %s is used", wanted,
              isa == VT__ISA_COUNT ? "no instruction set of this architecture" : "not what this machine has", names[best]);
      isa = best;
    }
  }
  vt__log(VT_LOG_INFO, "CPU kernels use %s; the best of this machine is %s", names[isa], names[best]);
  // relaxed: published with the library's readiness, see runtime.c.
  atomic_store_explicit(&chosen, isa, memory_order_relaxed);
  return true;
}

vt__isa vt__isa_get(void) {
  // relaxed: written before the library was ready.
  return atomic_load_explicit(&chosen, memory_order_relaxed);
}

const char *vt__isa_name(vt__isa isa) {
  return names[isa];
}
