// kernels.h: the kernels of each instruction set. One file defines one table, from the same loops.
#ifndef VT_COMM_REDUCE_KERNELS_H
#define VT_COMM_REDUCE_KERNELS_H

#include "comm/reduce.h"

// Answers how many of the bytes were reduced: whole vectors; by the baseline all of them.
typedef size_t (*vt__reduce_kernel)(const vt__reduce_operands *operands, size_t bytes);
typedef vt__reduce_kernel vt__reduce_table[VT_DTYPE_COUNT][VT_REDUCE_COUNT];

#if defined(__x86_64__)
extern const vt__reduce_table vt__reduce_sse2;
extern const vt__reduce_table vt__reduce_avx2;
extern const vt__reduce_table vt__reduce_avx512;
#else
extern const vt__reduce_table vt__reduce_neon;
#endif

#endif
