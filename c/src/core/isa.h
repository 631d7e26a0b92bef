// isa.h: which instructions beyond the baseline this process may use.
#ifndef VT_CORE_ISA_H
#define VT_CORE_ISA_H

#include <stdbool.h>
#include <stdint.h>

// In rising order of preference.
typedef int32_t vt__isa;
enum {
#if defined(__x86_64__)
  VT__ISA_SSE2,
  VT__ISA_AVX2,  // and F16C
  VT__ISA_AVX512,
#else
  VT__ISA_NEON,
#endif
  VT__ISA_COUNT,
};

// Chooses the best set that the processor and the system have, or the one that VT_CPU_ISA names.
bool vt__isa_init(void);

// The chosen one.
vt__isa vt__isa_get(void);

const char *vt__isa_name(vt__isa isa);

#endif
