// SPDX-License-Identifier: BSD-3-Clause
// `linear` with int8 rows of x, for the scalar variants.
// y is sx times the sum over groups of sw * sum((qx - zx) * (qw - zw)), plus bias.
// x is quantized into the workspace, with a scale and a zero point for each row.
// The sums of a group are exact integers. The rest is computed in double.
#pragma once

#include <concepts>

#include "kernels/families/entry.h"
#include "kernels/scalar/int8.h"

namespace qcts::scalar {
namespace {

struct Int8Task {
  const qcts_problem* problem;
  int64_t group;   // elements along k that share a scale of the weight
  bool one_scale;  // true if all rows of the weight share a scale
  int8_t* codes;   // [m, k]
  RowScale* rows;  // [m]
};

[[maybe_unused]] uint64_t rows_offset_bytes(const qcts_problem& p) {
  return (static_cast<uint64_t>(p.m * p.k) + 63) / 64 * 64;
}
[[maybe_unused]] uint64_t int8_workspace_bytes(const qcts_problem* p) {
  return rows_offset_bytes(*p) + static_cast<uint64_t>(p->m) * sizeof(RowScale);
}

[[maybe_unused]] void int8_columns(void* context, int64_t first, int64_t last) {
  const Int8Task& task = *static_cast<const Int8Task*>(context);
  const qcts_problem& p = *task.problem;
  const auto* weights = static_cast<const int8_t*>(in_plane(p, "qdata"));
  const auto* zero_points = static_cast<const int8_t*>(in_plane(p, "zero_point"));
  const uint32_t scale_dtype = plane_dtype(p.planes, p.n_planes, "scale");
  const int64_t groups = p.k / task.group;
  for (int64_t m = 0; m < p.m; ++m) {
    const RowScale x = task.rows[m];
    for (int64_t n = first; n < last; ++n) {
      double value = 0;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t at = task.one_scale ? 0 : n * groups + g;
        int64_t sum = 0;
        for (int64_t k = g * task.group; k < (g + 1) * task.group; ++k)
          sum += (task.codes[m * p.k + k] - x.zero_point) * (weights[n * p.k + k] - zero_points[at]);
        value += static_cast<double>(sum) * load(scale_dtype, in_plane(p, "scale"), at);
      }
      value *= x.scale;
      if (p.bias != nullptr) value += load(p.bias_dtype, p.bias, n);
      store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n, value);
    }
  }
}

// A scheme defines the scales of a weight and how a row of x is quantized.
template <class T>
concept RowQuantizer = requires(const qcts_problem& p, const char* row, int8_t* codes) {
  { T::group(p) } -> std::convertible_to<int64_t>;  // elements along k that share a scale of the weight
  { T::kOneScale } -> std::convertible_to<bool>;    // true if all rows of the weight share a scale
  { T::quantize_row(p, row, codes) } -> std::same_as<RowScale>;
};

template <const qcts_kernel& kKernel, RowQuantizer Scheme>
qcts_status supports_int8(const qcts_problem* problem, char* why, size_t why_size) {
  return supports_policy<kKernel>(problem, why, why_size);
}

template <const qcts_kernel& kKernel, RowQuantizer Scheme>
qcts_status run_int8(const qcts_problem* problem) {
  const qcts_problem copy = as_weight_only(*problem);
  if (supports_int8<kKernel, Scheme>(problem, nullptr, 0) != QCTS_OK ||
      check_run(kKernel, &copy) != QCTS_OK || !gives_scale(kKernel, *problem))
    return QCTS_INVALID;
  if (copy.m == 0) return QCTS_OK;
  char* workspace = static_cast<char*>(copy.workspace);
  Int8Task task = {&copy, Scheme::group(copy), Scheme::kOneScale, reinterpret_cast<int8_t*>(workspace),
                   reinterpret_cast<RowScale*>(workspace + rows_offset_bytes(copy))};
  for (int64_t m = 0; m < copy.m; ++m)
    task.rows[m] = Scheme::quantize_row(*problem, static_cast<const char*>(copy.x) + m * copy.ldx_bytes,
                                        task.codes + m * copy.k);
  parallel_for(copy.threads, copy.n, 1, int8_columns, &task);
  return QCTS_OK;
}

template <const qcts_kernel& kKernel, RowQuantizer Scheme>
constexpr qcts_kernel int8_linear_of(const char* scheme) {
  return linear_entry(
      scheme, "scalar",
      "integer sums of a row of x and a group of the weight; bound by one dependent addition per element",
      QCTS_I32, {supports_int8<kKernel, Scheme>, run_int8<kKernel, Scheme>, int8_workspace_bytes});
}

// For the int8 schemes. The codes of x have the range Range.
template <class Range>
struct Int8Rows {
  static constexpr bool kOneScale = false;
  static int64_t group(const qcts_problem& p) { return p.k; }
  static RowScale quantize_row(const qcts_problem& p, const char* row, int8_t* codes) {
    return quantize_int8_row<Range>(p, row, codes);
  }
};
template <class Range>
struct Int8Tensor : Int8Rows<Range> {
  static constexpr bool kOneScale = true;
};

}  // namespace
}  // namespace qcts::scalar
