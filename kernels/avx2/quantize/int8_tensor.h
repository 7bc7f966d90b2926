// SPDX-License-Identifier: BSD-3-Clause
// Quantizes a weight to int8 with one scale for the whole weight, for the AVX2 variants.
// The first pass finds the largest magnitude of the weight. The second pass computes the codes.
#pragma once

#include "kernels/avx2/quantize/blocks.h"
#include "kernels/avx2/quantize/groups.h"

namespace qcts::avx2 {
namespace {

// Codes of int8 are computed in float32.
template <uint32_t kDtype>
void quantize_affine_rows(const AffineTask& task, const AffineGroup& group, int64_t first, int64_t last) {
  const AffineRecipe& recipe = task.recipe;
  const OrdinaryScale<QCTS_F32> scale = {_mm256_setzero_ps(), _mm256_set1_ps(group.reciprocal),
                                         _mm256_set1_epi16(static_cast<int16_t>(group.zero_point)),
                                         _mm256_set1_epi8(static_cast<int8_t>(recipe.code_min)),
                                         _mm256_set1_epi8(static_cast<int8_t>(recipe.code_max))};
  for (int64_t n = first; n < last; ++n) {
    const char* row = task.data + n * task.ld_bytes;
    int8_t* codes = task.codes + n * task.k;
    if (is_ordinary(group.scale))
      quantize_ordinary_group<kDtype>(scale, row, task.ld_bytes, task.k, false, codes);
    else
      quantize_odd_group<kDtype, QCTS_F32>(recipe, group.reciprocal, group.zero_point, row, task.k, codes);
  }
}

[[maybe_unused]] void quantize_int8_tensor(const qcts_problem* p) {
  quantize_affine_tensor(*p, int8_recipe(*p), largest_of,
                         p->w_dtype == QCTS_F32   ? quantize_affine_rows<QCTS_F32>
                         : p->w_dtype == QCTS_F16 ? quantize_affine_rows<QCTS_F16>
                                                  : quantize_affine_rows<QCTS_BF16>);
}

}  // namespace
}  // namespace qcts::avx2
