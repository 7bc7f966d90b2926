// SPDX-License-Identifier: BSD-3-Clause
// 8da4w: kernels/scalar/int8_linear.h with a scale and a zero point for each group of the weight. Every step
// of quantizing x is rounded to x's dtype, or stays in float32 (first generation).
#include "kernels/scalar/int8_linear.h"

namespace {

using namespace qcts::scalar;

struct IntxDyn {
  static bool in_dtype(const char* activation) { return std::strcmp(activation, "dyn_token_asym") == 0; }
  static constexpr bool kOneScale = false;
  static int64_t group(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }

  static qcts::RowScale quantize_row(const qcts_problem& p, const char* row, int8_t* codes) {
    if (in_dtype(p.activation)) return quantize_token(p.x_dtype, row, p.k, codes);
    const qcts::RowScale chosen = int8_row_scale<qcts::FullRange>(p.x_dtype, row, p.k, true);
    return quantize_row_by<qcts::FullRange>(chosen, p.x_dtype, row, p.k, codes);
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_intx_dyn_scalar =
    int8_linear_of<qcts_kernel_linear_intx_dyn_scalar, IntxDyn>("intx:dyn_token_asym,dyn_token_asym_s32");
