// sse2.c: the kernels that every x86-64 runs.
#include "comm/reduce/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VT__WIDTH 16
#define VT__IS_BASELINE
#define VT__X86(name) _mm_##name
#define VT__X86_F32 __m128
#define VT__X86_F64 __m128d
#define VT__REDUCE_TABLE vt__reduce_sse2

#include "comm/reduce/x86.h"

#include "comm/reduce/f16.h"
#include "comm/reduce/loops.h"
#endif
