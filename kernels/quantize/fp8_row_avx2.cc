// torchao 0.18 Float8Tensor.from_hp per row, as fp8_row_scalar.cc has it. Eight codes cost one division, about 5 cycles
// of its own unit, and some 16 operations beside it, which is about what reading and writing them takes. Of a
// quotient below 2^-6 the addition of 2^14 leaves units of 2^-9, the smallest subnormal; above, rounding is an
// addition to the bits.
#include "kernels/avx2_quantize.h"

namespace {

using namespace qcts::avx2;

// e4m3 codes of eight quotients, as int32; NaN keeps its sign.
__m256i e4m3_codes(__m256 quotient) {
  const __m256 clamped =
      _mm256_max_ps(_mm256_set1_ps(-448), _mm256_min_ps(_mm256_set1_ps(448), quotient));  // NaN is the second
  const __m256i bits = _mm256_castps_si256(clamped);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
  const __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(0x1p14f));
  const __m256i subnormal = _mm256_sub_epi32(_mm256_castps_si256(sum), _mm256_set1_epi32(0x46800000));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 20), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(magnitude, odd), _mm256_set1_epi32(0x7FFFF - 0x3C000000));
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3C800000), magnitude);
  const __m256i finite = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 20), subnormal, small);
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
  return _mm256_or_si256(_mm256_blendv_epi8(finite, _mm256_set1_epi32(0x7F), nan), sign);
}

// Bytes of 32 int32 from 0 to 255, in order.
__m256i narrow_codes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

void quantize_fp8_codes(uint32_t dtype, const char* row, int64_t k_count, float row_scale, uint8_t* codes) {
  const __m256 scale = _mm256_set1_ps(row_scale);
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  const auto eight = [&](const char* at) { return e4m3_codes(_mm256_div_ps(load8(dtype, at), scale)); };
  int64_t k = 0;
  for (; k + 32 <= k_count; k += 32) {
    const char* at = row + k * bytes;
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(codes + k),
        narrow_codes(eight(at), eight(at + 8 * bytes), eight(at + 16 * bytes), eight(at + 24 * bytes)));
  }
  for (; k < k_count; k += kLanes) {
    const int64_t some = k_count - k < kLanes ? k_count - k : kLanes;
    const __m256i wide = e4m3_codes(_mm256_div_ps(load_some(dtype, row + k * bytes, some), scale));
    uint8_t narrow[32];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(narrow), narrow_codes(wide, wide, wide, wide));
    std::memcpy(codes + k, narrow, static_cast<size_t>(some));
  }
}

void quantize_fp8_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto* scales = static_cast<char*>(qcts::out_plane(p, "scale"));
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float absmax = float_of_bits(p.w_dtype, largest_magnitude_bits(p.w_dtype, row, p.k));
    const float scale = round_once(p.w_dtype, absmax / 448.0f);
    quantize_fp8_codes(p.w_dtype, row, p.k, scale, qdata + n * p.k);
    std::memcpy(scales + 4 * n, &scale, 4);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_fp8_row_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_fp8_row_avx2, quantize_fp8_rows>(
        QCTS_OP_QUANTIZE, "fp8_row", "avx2",
        "two passes a row, the second in cache; bound by one division for eight codes, or by memory");
