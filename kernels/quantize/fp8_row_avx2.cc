// torchao 0.18 Float8Tensor.from_hp per row, as fp8_row_scalar.cc has it. Eight codes cost one division, 5
// cycles of its own unit, and some 14 operations beside it, about what reading and writing them takes. Of a
// quotient below 2^-6 the addition of 2^14 leaves units of 2^-9, the smallest subnormal; above, rounding is
// an addition to the bits.
#include "kernels/avx2_quantize.h"

namespace {

using namespace qcts::avx2;

// Magnitudes of e4m3 codes of eight finite quotients, as int32.
[[gnu::always_inline]] inline __m256i e4m3_magnitudes(__m256 quotient) {
  const __m256 magnitude = _mm256_min_ps(
      _mm256_and_ps(quotient, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF))), _mm256_set1_ps(448));
  const __m256i bits = _mm256_castps_si256(magnitude);
  const __m256i subnormal = _mm256_sub_epi32(
      _mm256_castps_si256(_mm256_add_ps(magnitude, _mm256_set1_ps(0x1p14f))), _mm256_set1_epi32(0x46800000));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7FFFF - 0x3C000000));
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3C800000), bits);
  return _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 20), subnormal, small);
}

// Codes of 32 quotients. The packs saturate: those of the quotients' own bits keep the sign.
[[gnu::always_inline]] inline __m256i e4m3_codes(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256i codes =
      narrow_to_bytes(e4m3_magnitudes(a), e4m3_magnitudes(b), e4m3_magnitudes(c), e4m3_magnitudes(d));
  const __m256i signs = narrow_to_bytes(_mm256_castps_si256(a), _mm256_castps_si256(b),
                                        _mm256_castps_si256(c), _mm256_castps_si256(d));
  return _mm256_or_si256(codes, _mm256_and_si256(signs, _mm256_set1_epi8(static_cast<char>(0x80))));
}

template <uint32_t kDtype>
void quantize_fp8_codes(const char* row, int64_t k_count, float row_scale, uint8_t* codes) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const __m256 scale = _mm256_set1_ps(row_scale);
  int64_t k = 0;
  for (; k + 32 <= k_count; k += 32) {
    const char* at = row + k * kBytes;
    const __m256i narrow = e4m3_codes(_mm256_div_ps(load8(kDtype, at), scale),
                                      _mm256_div_ps(load8(kDtype, at + 8 * kBytes), scale),
                                      _mm256_div_ps(load8(kDtype, at + 16 * kBytes), scale),
                                      _mm256_div_ps(load8(kDtype, at + 24 * kBytes), scale));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k), narrow);
  }
  for (; k < k_count; k += kLanes) {
    const int64_t some = k_count - k < kLanes ? k_count - k : kLanes;
    const __m256 quotient = _mm256_div_ps(load_some(kDtype, row + k * kBytes, some), scale);
    uint8_t narrow[32];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(narrow),
                        e4m3_codes(quotient, quotient, quotient, quotient));
    std::memcpy(codes + k, narrow, static_cast<size_t>(some));
  }
}

// A row whose scale is zero or not finite: some of its quotients are NaN, which keeps its sign, that of 0/0
// and Inf/Inf being the processor's own.
void quantize_fp8_odd_row(uint32_t dtype, const char* row, int64_t k_count, float scale, uint8_t* codes) {
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  for (int64_t k = 0; k < k_count; ++k) {
    const __m256 quotient = _mm256_div_ps(load_some(dtype, row + k * bytes, 1), _mm256_set1_ps(scale));
    const float value = _mm256_cvtss_f32(quotient);
    if (value != value) {
      codes[k] = static_cast<uint8_t>((__builtin_bit_cast(uint32_t, value) >> 24 & 0x80) | 0x7F);
    } else {
      const __m256i code = e4m3_codes(quotient, quotient, quotient, quotient);
      codes[k] = static_cast<uint8_t>(_mm256_cvtsi256_si32(code));
    }
  }
}

void quantize_fp8_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto* scales = static_cast<char*>(qcts::out_plane(p, "scale"));
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float absmax = float_of_bits(p.w_dtype, largest_magnitude_bits(p.w_dtype, row, p.k));
    const float scale = round_once(p.w_dtype, absmax / 448.0f);
    uint8_t* codes = qdata + n * p.k;
    if (!(scale > 0) || !(scale - scale == 0)) {
      quantize_fp8_odd_row(p.w_dtype, row, p.k, scale, codes);
    } else if (p.w_dtype == QCTS_BF16) {
      quantize_fp8_codes<QCTS_BF16>(row, p.k, scale, codes);
    } else if (p.w_dtype == QCTS_F16) {
      quantize_fp8_codes<QCTS_F16>(row, p.k, scale, codes);
    } else {
      quantize_fp8_codes<QCTS_F32>(row, p.k, scale, codes);
    }
    std::memcpy(scales + 4 * n, &scale, 4);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_fp8_row_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_fp8_row_avx2, quantize_fp8_rows>(
        QCTS_OP_QUANTIZE, "fp8_row", "avx2",
        "two passes a row, the second in cache; bound by one division for eight codes, or by memory");
