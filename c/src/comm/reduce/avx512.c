// avx512.c: the kernels for AVX-512 as all its processors have it. Its bf16 instructions are not used: they flush subnormals.
#include "comm/reduce/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "comm/reduce/target.h"

VT__TARGET_BEGIN("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")

#define VT__WIDTH 64
#define VT__X86(name) _mm512_##name
#define VT__X86_F32 __m512
#define VT__X86_F64 __m512d
#define VT__REDUCE_TABLE vt__reduce_avx512

#include "comm/reduce/x86.h"

// `yes` where the mask is set, else `no`.
VT__INLINE v_u32 choose(v_u32 mask, v_u32 yes, v_u32 no) {
  return (v_u32)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)yes, (__m512i)no, 0xca);
}
// The low halves of one and the high halves of the other.
VT__INLINE v_u32 mix(v_u32 low, v_u32 high) {
  return (v_u32)_mm512_mask_blend_epi16(0xaaaaaaaau, (__m512i)low, (__m512i)high);
}

VT__INLINE v_halves widen_f16(v_u32 words) {
  __m512i halves = (__m512i)words;
  return (v_halves){(v_f32)_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                    (v_f32)_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))};
}

// With a mask of all lanes: without one, the macro that gcc has in place of a function at -O0 converts a sign.
VT__INLINE v_u32 narrow_f16(v_halves value) {
  __m256i low = _mm512_maskz_cvtps_ph(0xffff, (__m512)value.x, _MM_FROUND_TO_NEAREST_INT);
  __m256i high = _mm512_maskz_cvtps_ph(0xffff, (__m512)value.y, _MM_FROUND_TO_NEAREST_INT);
  return (v_u32)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

#include "comm/reduce/loops.h"

VT__TARGET_END
#endif
