// reduce.c: a reduction by the kernels of the instruction set that was chosen.
#include "comm/reduce.h"

#include "base/fpenv.h"
#include "comm/reduce/kernels.h"
#include "core/isa.h"

#if defined(__x86_64__)
#define BASELINE vt__reduce_sse2
static const vt__reduce_table *const tables[VT__ISA_COUNT] = {
    [VT__ISA_SSE2] = &vt__reduce_sse2,
    [VT__ISA_AVX2] = &vt__reduce_avx2,
    [VT__ISA_AVX512] = &vt__reduce_avx512,
};
#else
#define BASELINE vt__reduce_neon
static const vt__reduce_table *const tables[VT__ISA_COUNT] = {[VT__ISA_NEON] = &vt__reduce_neon};
#endif

void vt__reduce(vt_dtype dtype, vt_reduce_op op, const vt__reduce_operands *operands, size_t bytes) {
  vt__fpenv before = vt__fpenv_enter();
  size_t done = (*tables[vt__isa_get()])[dtype][op](operands, bytes);
  if (done < bytes) {
    vt__reduce_operands rest = *operands;
    rest.source_at += done;
    rest.out_at += done;
    BASELINE[dtype][op](&rest, bytes - done);
  }
  vt__fpenv_leave(before);
}
