// int4_plain_scalar.cc, eight elements at a time: two passes over a group that stays in cache, bound by one
// division for eight codes. Groups are multiples of eight.
#include <math.h>

#include "kernels/avx2_blocks.h"

namespace {

using namespace qcts::avx2;

struct PlainGroup {
  float scale, zero, least;
};

// Least and greatest of eight floats.
float least_of8(__m256 value) {
  __m128 least = _mm_min_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  least = _mm_min_ps(least, _mm_movehl_ps(least, least));
  return _mm_cvtss_f32(_mm_min_ss(least, _mm_movehdup_ps(least)));
}
float greatest_of8(__m256 value) { return -least_of8(_mm256_sub_ps(_mm256_set1_ps(-0.0f), value)); }

PlainGroup plain_group(const qcts_problem& p, const char* from, bool symmetric) {
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  __m256 low = load8(p.w_dtype, from), high = low, nan = _mm256_cmp_ps(low, low, _CMP_UNORD_Q);
  for (int64_t k = kLanes; k < p.group; k += kLanes) {
    const __m256 w = load8(p.w_dtype, from + k * bytes);
    low = _mm256_min_ps(low, w);
    high = _mm256_max_ps(high, w);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(w, w, _CMP_UNORD_Q));
  }
  if (_mm256_movemask_ps(nan) != 0) return {NAN, symmetric ? 0 : NAN, symmetric ? 0 : NAN};
  const float least = least_of8(low), most = greatest_of8(high);
  const float size = symmetric ? (fabsf(least) < fabsf(most) ? fabsf(most) : fabsf(least)) : most - least;
  const float scale = (size < 1e-6f ? 1e-6f : size) / (symmetric ? 8.0f : 15.0f);
  if (symmetric) return {scale, 0, 0};
  return {scale, least + scale * 8.0f, least};
}

// Eight codes as int32, in four bits. `first`: the least step, which becomes the code -8.
[[gnu::always_inline]] inline __m256i plain_codes(__m256 w, __m256 least, __m256 scale, __m256 first) {
  const __m256 steps = _mm256_round_ps(_mm256_div_ps(_mm256_sub_ps(w, least), scale),
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 number = _mm256_cmp_ps(steps, steps, _CMP_ORD_Q);
  const __m256 kept = _mm256_min_ps(_mm256_max_ps(steps, first), _mm256_add_ps(first, _mm256_set1_ps(15)));
  const __m256 code = _mm256_sub_ps(_mm256_sub_ps(kept, first), _mm256_set1_ps(8));
  return _mm256_and_si256(_mm256_cvtps_epi32(_mm256_and_ps(code, number)), _mm256_set1_epi32(15));
}

void quantize_plain_group(const qcts_problem& p, const char* from, const PlainGroup& group, bool symmetric,
                          uint8_t* pairs) {
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  const __m256 least = _mm256_set1_ps(group.least), scale = _mm256_set1_ps(group.scale),
               first = _mm256_set1_ps(symmetric ? -8.0f : 0.0f);
  const auto eight = [&](int64_t k) {
    return plain_codes(load8(p.w_dtype, from + k * bytes), least, scale, first);
  };
  int64_t k = 0;
  for (; k + 32 <= p.group; k += 32)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs + k / 2),
                     pairs_of(narrow_to_bytes(eight(k), eight(k + 8), eight(k + 16), eight(k + 24))));
  for (; k < p.group; k += kLanes) {
    const __m256i some = eight(k);
    const __m128i bytes_of_some = pairs_of(narrow_to_bytes(some, some, some, some));
    std::memcpy(pairs + k / 2, &bytes_of_some, 4);
  }
}

void quantize_int4_plain(const qcts_problem& p, int64_t first, int64_t last) {
  auto* pairs = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto *scales = static_cast<char*>(qcts::out_plane(p, "scale")),
       *zeros = static_cast<char*>(qcts::out_plane(p, "zero_point"));
  const bool symmetric = qcts::scheme_name_has(p, "_sym");
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += p.group) {
      const char* from = static_cast<const char*>(p.x) + n * p.ldx_bytes + k * bytes;
      const PlainGroup group = plain_group(p, from, symmetric);
      const int64_t at = (k / p.group * p.n + n) * bytes;
      store_some(p.w_dtype, scales + at, _mm256_set1_ps(group.scale), 1);
      store_some(p.w_dtype, zeros + at, _mm256_set1_ps(group.zero), 1);
      quantize_plain_group(p, from, group, symmetric, pairs + (n * p.k + k) / 2);
    }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_plain_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_int4_plain_avx2, quantize_int4_plain>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx2",
        "two passes a group, the second in cache; bound by one division for eight codes");
