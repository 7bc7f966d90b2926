// W8A8: scalar_int8_linear.h with one scale a row of the weight.
#include "kernels/scalar_int8_linear.h"

namespace {

using namespace qcts::scalar;

struct Int8RowDyn {
  static bool takes(const char* activation) {
    return std::strcmp(activation, "dyn_row_sym") == 0 || is_asymmetric(activation);
  }
  static int64_t group(const qcts_problem& p) { return p.k; }

  static RowScale quantize_row(const qcts_problem& p, const char* row, int8_t* codes) {
    const RowScale chosen = int8_row_scale(p.x_dtype, row, p.k, is_asymmetric(p.activation));
    const float reciprocal = 1.0f / chosen.scale;
    for (int64_t k = 0; k < p.k; ++k)
      codes[k] = int8_code(load(p.x_dtype, row, k), reciprocal, chosen.zero_point);
    return chosen;
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_dyn_scalar =
    int8_linear_of<qcts_kernel_linear_int8_row_dyn_scalar, Int8RowDyn>("int8_row:dyn_row_sym,dyn_row_asym");
