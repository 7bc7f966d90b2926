// Groups of intx, or rows of x, for the AVX2 variants and for nothing else: every function has internal
// linkage. Two passes over a group that stays in cache. In float32 eight codes cost some ten operations; in a
// narrower dtype the two roundings to it are twenty more.
#pragma once

#include "kernels/affine_groups.h"
#include "kernels/avx2_int8.h"
#include "kernels/avx2_quantize.h"
#include "kernels/entry.h"

namespace qcts::avx2 {
namespace {

template <uint32_t kCommon>
[[gnu::always_inline]] inline __m256i affine_codes(const AffineRecipe& recipe, const AffineGroup& group,
                                                   __m256 w) {
  const __m256 steps = _mm256_round_ps(round8(kCommon, _mm256_mul_ps(w, _mm256_set1_ps(group.reciprocal))),
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 code = round8(kCommon, _mm256_add_ps(steps, _mm256_set1_ps(group.zero_point)));
  const __m256 number = _mm256_cmp_ps(code, code, _CMP_ORD_Q);
  const __m256 kept =
      _mm256_min_ps(_mm256_max_ps(code, _mm256_set1_ps(recipe.code_min)), _mm256_set1_ps(recipe.code_max));
  return _mm256_cvtps_epi32(_mm256_and_ps(kept, number));
}

// Elements [first, first + count) of a row.
template <uint32_t kCommon>
void quantize_affine_group(const AffineRecipe& recipe, const AffineGroup& group, const char* elements_at,
                           int64_t count, int8_t* codes) {
  const auto eight = [&](int64_t k) {
    return affine_codes<kCommon>(recipe, group, elements(recipe.dtype, elements_at, k, count));
  };
  int64_t k = 0;
  for (; k + 32 <= count; k += 32)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k),
                        narrow_to_bytes(eight(k), eight(k + 8), eight(k + 16), eight(k + 24)));
  for (; k < count; k += kLanes) {
    const __m256i some = eight(k);
    int8_t narrow[32];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(narrow), narrow_to_bytes(some, some, some, some));
    std::memcpy(codes + k, narrow, static_cast<size_t>(count - k < kLanes ? count - k : kLanes));
  }
}

[[maybe_unused]] void quantize_affine_groups(const qcts_problem& p, int64_t first, int64_t last) {
  const AffineTask task = affine_task(p);
  const AffineRecipe& recipe = task.recipe;
  const int64_t bytes = recipe.dtype == QCTS_F32 ? 4 : 2;
  const auto quantize = recipe.common == QCTS_F32   ? quantize_affine_group<QCTS_F32>
                        : recipe.common == QCTS_F16 ? quantize_affine_group<QCTS_F16>
                                                    : quantize_affine_group<QCTS_BF16>;
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < task.k; k += task.group) {
      const char* at = task.data + n * task.ld_bytes + k * bytes;
      const Range range = range_of(recipe.dtype, at, task.group);
      const AffineGroup group = affine_group(recipe, range.low, range.high);
      write_parameters(task, (n * task.k + k) / task.group, group);
      quantize(recipe, group, at, task.group, task.codes + n * task.k + k);
    }
}

}  // namespace
}  // namespace qcts::avx2
