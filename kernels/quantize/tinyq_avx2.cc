// SPDX-License-Identifier: BSD-3-Clause
// tinyq_scalar.cc, eight elements at a time, in two passes over a row that stays in cache. The bound is one
// division for eight codes or, in bfloat16, writing them. W8A32 clamps. For W8A16 the conversion to int32
// gives 0x80000000 for values that do not fit, like the scalar variant, and the low byte is kept.
#include "kernels/avx2/quantize/blocks.h"
#include "kernels/avx2/stores.h"

namespace {

using namespace qcts::avx2;

template <bool kClamped>
[[gnu::always_inline]] inline __m256i tinyq_codes(uint32_t dtype, __m256 w, __m256 scale) {
  __m256 steps = _mm256_div_ps(w, scale);
  if (kClamped) {
    const __m256 number = _mm256_cmp_ps(steps, steps, _CMP_ORD_Q);
    steps = _mm256_min_ps(_mm256_max_ps(steps, _mm256_set1_ps(-128)), _mm256_set1_ps(127));
    return _mm256_cvtps_epi32(_mm256_and_ps(steps, number));
  }
  if (dtype == QCTS_F16) steps = _mm256_cvtph_ps(_mm256_cvtps_ph(steps, _MM_FROUND_TO_NEAREST_INT));
  if (dtype == QCTS_BF16) steps = widen_bf16(to_bf16(steps));
  // Sign-extends the low byte, so that packing keeps it.
  return _mm256_srai_epi32(_mm256_slli_epi32(_mm256_cvtps_epi32(steps), 24), 24);
}

template <bool kClamped, uint32_t kDtype>
void quantize_tinyq_row(const char* row, int64_t k_count, float scale_of_row, int8_t* codes) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const __m256 scale = _mm256_set1_ps(scale_of_row);
  const auto thirty_two = [&](const char* from) {
    const Block w = load_block(kDtype, from);
    return narrow_to_bytes(
        tinyq_codes<kClamped>(kDtype, w.part[0], scale), tinyq_codes<kClamped>(kDtype, w.part[1], scale),
        tinyq_codes<kClamped>(kDtype, w.part[2], scale), tinyq_codes<kClamped>(kDtype, w.part[3], scale));
  };
  int64_t k = 0;
  for (; k + 32 <= k_count; k += 32)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k), thirty_two(row + k * kBytes));
  if (k == k_count) return;
  char rest[32 * kBytes] = {};
  int8_t some[32];
  std::memcpy(rest, row + k * kBytes, static_cast<size_t>((k_count - k) * kBytes));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(some), thirty_two(rest));
  std::memcpy(codes + k, some, static_cast<size_t>(k_count - k));
}

// The same for bfloat16, for a row without NaN or infinity and a scale whose reciprocal may replace the
// division: 32 codes in 28 operations. Unpacking with zeros widens and packing narrows. Prefetches the next
// row meanwhile.
void quantize_ordinary_row(const char* row, int64_t next_bytes, int64_t k_count, float scale_of_row,
                           bool past_caches, int8_t* codes) {
  const __m256 reciprocal = _mm256_set1_ps(1 / scale_of_row),
               by_65537 = _mm256_set1_ps(1 / scale_of_row * 65537);
  const __m256i zero = _mm256_setzero_si256(), low_bytes = _mm256_set1_epi16(0xFF);
  const auto steps = [&](__m256i upper) {
    return _mm256_cvtps_epi32(bf16_rounded_product(_mm256_castsi256_ps(upper), reciprocal, by_65537));
  };
  const auto sixteen = [&](const char* from) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm256_and_si256(
        _mm256_packs_epi32(steps(_mm256_unpacklo_epi16(zero, w)), steps(_mm256_unpackhi_epi16(zero, w))),
        low_bytes);
  };
  const auto thirty_two = [&](const char* from) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(sixteen(from), sixteen(from + 32)), 0xD8);
  };
  int64_t k = 0;
  for (; k + 32 <= k_count; k += 32) {
    _mm_prefetch(row + next_bytes + 2 * k, _MM_HINT_T0);
    store32(codes + k, thirty_two(row + 2 * k), past_caches);
  }
  if (k == k_count) return;
  char rest[64] = {};
  std::memcpy(rest, row + 2 * k, static_cast<size_t>(2 * (k_count - k)));
  const __m256i some = thirty_two(rest);
  std::memcpy(codes + k, &some, static_cast<size_t>(k_count - k));
}

void quantize_tinyq(const qcts_problem& p, int64_t first, int64_t last) {
  auto* codes = static_cast<int8_t*>(qcts::out_plane(p, "int8_weights"));
  auto* scales = static_cast<char*>(qcts::out_plane(p, "scales"));
  auto* zero_points = static_cast<char*>(qcts::out_plane(p, "zero_points"));
  const bool clamped = (qcts::scheme_params(p).flags & QCTS_SCHEME_CODES_WRAP) == 0;
  const auto row_of = p.w_dtype == QCTS_F16    ? quantize_tinyq_row<false, QCTS_F16>
                      : p.w_dtype == QCTS_BF16 ? quantize_tinyq_row<false, QCTS_BF16>
                      : clamped                ? quantize_tinyq_row<true, QCTS_F32>
                                               : quantize_tinyq_row<false, QCTS_F32>;
  const bool past_caches = is_past_caches(codes, p.n * p.k, p.k);
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float maximum = largest_of(p.w_dtype, row, p.k);
    const float scale = clamped ? static_cast<float>(static_cast<double>(maximum) / 127)
                                : round_once(p.w_dtype, maximum / 127.0f);
    if (p.w_dtype == QCTS_BF16 && scale >= 0x1p-100f && scale <= 0x1p100f)
      quantize_ordinary_row(row, p.ldx_bytes, p.k, scale, past_caches, codes + n * p.k);
    else
      row_of(row, p.k, scale, codes + n * p.k);
    store_some(p.w_dtype, scales + n * qcts::dtype_bytes(p.w_dtype), _mm256_set1_ps(scale), 1);
    if (clamped) std::memset(zero_points + 4 * n, 0, 4);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_tinyq_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_tinyq_avx2, fenced<quantize_tinyq>>(
        QCTS_OP_QUANTIZE, "tinyq", "avx2",
        "two passes per row, the second in cache; bound by one division per eight codes");
