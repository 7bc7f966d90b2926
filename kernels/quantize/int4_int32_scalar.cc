// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Int4PlainInt32Tensor, _from_hp_xpu (kernels/families/affine_groups.h): two codes per byte, the
// even k in the low nibble; scales and zero points are in rows of groups.
#include "kernels/scalar/groups.h"

namespace {

using namespace qcts::scalar;

void quantize_int4_int32(const qcts_problem& p, int64_t first, int64_t last) {
  auto* pairs = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  auto* zero_points = static_cast<int8_t*>(qcts::out_plane(p, "zero_point"));
  void* scales = qcts::out_plane(p, "scale");
  const qcts::AffineRecipe recipe = qcts::int4_int32_recipe(p);
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    for (int64_t g = 0; g < p.k / p.group; ++g) {
      const int64_t begin = g * p.group, end = begin + p.group;
      const qcts::AffineGroup group = group_of_elements(recipe, row, begin, end);
      store(p.w_dtype, scales, g * p.n + n, group.scale);
      zero_points[g * p.n + n] = static_cast<int8_t>(group.zero_point);
      const auto code = [&](int64_t k) { return affine_code(recipe, group, load(p.w_dtype, row, k)); };
      for (int64_t k = begin; k < end; k += 2)
        pairs[(n * p.k + k) / 2] = static_cast<uint8_t>(code(k) | code(k + 1) << 4);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_int32_scalar =
    qcts::exact_rows<qcts_kernel_quantize_int4_int32_scalar, quantize_int4_int32>(
        QCTS_OP_QUANTIZE, "int4_int32", "scalar",
        "two passes per group: its range, then its codes; bound by the rounding, one element at a time");
