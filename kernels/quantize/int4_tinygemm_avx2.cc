// torchao 0.18 _choose_qparams_affine_tinygemm and _quantize_affine_tinygemm, as int4_tinygemm_scalar.cc has
// them. Every step rounds to the weight's dtype, so eight codes cost a quotient and two roundings, in
// bfloat16 of five operations each: some 17 operations, which bound the kernel. Roundings skip the care for
// NaN: a group with a NaN or an infinity has codes 0 throughout, and those of others are finite.
#include <math.h>

#include "kernels/avx2_quantize.h"

namespace {

using namespace qcts::avx2;

struct Int4Group {
  float scale, zero;
};

// Finite eight, rounded to the dtype.
template <uint32_t kDtype>
__m256 rounded(__m256 value) {
  if (kDtype == QCTS_F32) return value;
  if (kDtype == QCTS_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7FFF));
  return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

template <uint32_t kDtype>
float rounded1(float value) {
  return _mm256_cvtss_f32(rounded<kDtype>(_mm256_set1_ps(value)));
}

float least_of(__m256 value) {
  __m128 least = _mm_min_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  least = _mm_min_ps(least, _mm_movehl_ps(least, least));
  return _mm_cvtss_f32(_mm_min_ss(least, _mm_movehdup_ps(least)));
}
float most_of(__m256 value) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

template <uint32_t kDtype>
Int4Group choose_int4(const char* at, int64_t count, float least_scale) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  __m256 low = load8(kDtype, at), high = low, nan = _mm256_cmp_ps(low, low, _CMP_UNORD_Q);
  for (int64_t i = kLanes; i < count; i += kLanes) {
    const __m256 x = load8(kDtype, at + i * kBytes);
    low = _mm256_min_ps(low, x);
    high = _mm256_max_ps(high, x);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  if (_mm256_movemask_ps(nan) != 0) return {NAN, NAN};
  const float least = least_of(low), most = most_of(high);
  float scale = rounded1<kDtype>(rounded1<kDtype>(most - least) / 15.0f);
  if (scale < least_scale) scale = least_scale;
  return {scale, rounded1<kDtype>(least + rounded1<kDtype>(scale * 8.0f))};
}

// Eight steps as int32: round((x - low) / scale). In bfloat16 the product with the reciprocal rounds to the
// same: no quotient of two numbers of 8 bits lies half way between two of 8 bits (odd times b would need a
// ninth), and the nearest is 2^-17 away from there, the product 2^-23 from the quotient.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m256i int4_steps(const char* at, __m256 low, __m256 scale,
                                                 __m256 reciprocal) {
  const __m256 above = rounded<kDtype>(_mm256_sub_ps(load8(kDtype, at), low));
  const __m256 steps = kDtype == QCTS_BF16 ? _mm256_mul_ps(above, reciprocal) : _mm256_div_ps(above, scale);
  return _mm256_cvtps_epi32(rounded<kDtype>(steps));
}

// Bytes of 32 steps, clamped to 0 .. 15 and in order.
[[gnu::always_inline]] inline __m256i int4_codes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_min_epu8(_mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)),
                         _mm256_set1_epi8(15));
}

// 32 codes to 16 bytes, the even one in the high nibble: of each 16-bit lane, byte 0 * 16 + byte 1.
__m128i int4_pairs(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x0110));
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0xD8));
}

template <uint32_t kDtype>
void quantize_int4_group(const char* at, int64_t count, Int4Group group, uint8_t* out) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const float offset = rounded1<kDtype>(group.zero - rounded1<kDtype>(group.scale * 8.0f));
  if (!(offset - offset == 0) || !(group.scale - group.scale == 0)) {
    std::memset(out, 0, static_cast<size_t>(count / 2));
    return;
  }
  const __m256 low = _mm256_set1_ps(offset), scale = _mm256_set1_ps(group.scale);
  const __m256 reciprocal = _mm256_set1_ps(1.0f / group.scale);
  int64_t i = 0;
  for (; i + 32 <= count; i += 32)
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out + i / 2),
        int4_pairs(int4_codes(int4_steps<kDtype>(at + i * kBytes, low, scale, reciprocal),
                              int4_steps<kDtype>(at + (i + 8) * kBytes, low, scale, reciprocal),
                              int4_steps<kDtype>(at + (i + 16) * kBytes, low, scale, reciprocal),
                              int4_steps<kDtype>(at + (i + 24) * kBytes, low, scale, reciprocal))));
  for (; i < count; i += kLanes) {
    const __m256i wide = int4_steps<kDtype>(at + i * kBytes, low, scale, reciprocal);
    uint8_t pairs[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs), int4_pairs(int4_codes(wide, wide, wide, wide)));
    std::memcpy(out + i / 2, pairs, 4);
  }
}

// Int4OpaqueTensor.from_hp passes eps 1e-6; Int4TilePackedTo4dTensor.from_hp none, which is bfloat16's
// smallest normal.
float int4_least_scale(const qcts_problem& p) {
  if (p.layout != nullptr && std::strcmp(p.layout, "tile_packed_4d") == 0) return 0x1p-126f;
  return round_once(p.w_dtype, 1e-6f);
}

template <uint32_t kDtype>
void quantize_int4_dtype(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  auto* qdata = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto* pairs = static_cast<char*>(qcts::out_plane(p, "scale_and_zero"));
  const float least_scale = int4_least_scale(p);
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      const char* at = static_cast<const char*>(p.x) + n * p.ldx_bytes + k * kBytes;
      const Int4Group group = choose_int4<kDtype>(at, p.group, least_scale);
      quantize_int4_group<kDtype>(at, p.group, group, qdata + (n * p.k + k) / 2);
      char pair[32];
      store8(kDtype, pair, _mm256_setr_ps(group.scale, group.zero, 0, 0, 0, 0, 0, 0));
      std::memcpy(pairs + 2 * kBytes * (k / p.group * p.n + n), pair, 2 * kBytes);
    }
}

void quantize_int4_rows(const qcts_problem& p, int64_t first, int64_t last) {
  if (p.w_dtype == QCTS_F32) return quantize_int4_dtype<QCTS_F32>(p, first, last);
  if (p.w_dtype == QCTS_F16) return quantize_int4_dtype<QCTS_F16>(p, first, last);
  quantize_int4_dtype<QCTS_BF16>(p, first, last);
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_int4_tinygemm_avx2, quantize_int4_rows>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "avx2",
        "two passes a group, the second in cache; bound by a quotient and two roundings for eight codes");
