// avx2.c: the kernels for AVX2 and F16C.
#include "comm/reduce/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "comm/reduce/target.h"

VT__TARGET_BEGIN("avx2,f16c")

#define VT__WIDTH 32
#define VT__X86(name) _mm256_##name
#define VT__X86_F32 __m256
#define VT__X86_F64 __m256d
#define VT__REDUCE_TABLE vt__reduce_avx2

#include "comm/reduce/x86.h"

// `yes` where the mask is set, else `no`.
VT__INLINE v_u32 choose(v_u32 mask, v_u32 yes, v_u32 no) {
  return (v_u32)_mm256_blendv_epi8((__m256i)no, (__m256i)yes, (__m256i)mask);
}
// The low halves of one and the high halves of the other.
VT__INLINE v_u32 mix(v_u32 low, v_u32 high) {
  return (v_u32)_mm256_blend_epi16((__m256i)low, (__m256i)high, 0xaa);
}

VT__INLINE v_halves widen_f16(v_u32 words) {
  __m256i halves = (__m256i)words;
  return (v_halves){(v_f32)_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                    (v_f32)_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}

VT__INLINE v_u32 narrow_f16(v_halves value) {
  __m128i low = _mm256_cvtps_ph((__m256)value.x, _MM_FROUND_TO_NEAREST_INT);
  __m128i high = _mm256_cvtps_ph((__m256)value.y, _MM_FROUND_TO_NEAREST_INT);
  return (v_u32)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

#include "comm/reduce/loops.h"

VT__TARGET_END
#endif
