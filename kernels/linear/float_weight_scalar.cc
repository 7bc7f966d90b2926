// SPDX-License-Identifier: BSD-3-Clause
// A float weight under float8 rows of x (pytorch/ao#2338): y = scale of x * sum(code of x * weight), plus
// bias. Products are exact in double, so only the additions round.
#include "kernels/scalar/blocks.h"
#include "kernels/scalar/weights.h"

namespace {

using namespace qcts;
using namespace qcts::scalar;

constexpr const qcts_kernel& kFloatWeight = qcts_kernel_linear_float_weight_scalar;

// The workspace: [m] scales, then [m, k] codes.
struct QuantizedX {
  float* scales;
  uint8_t* codes;
  explicit QuantizedX(const qcts_problem& p)
      : scales(static_cast<float*>(p.workspace)), codes(reinterpret_cast<uint8_t*>(scales + p.m)) {}
};

uint64_t workspace_bytes(const qcts_problem* p) { return static_cast<uint64_t>(p->m * (4 + p->k)); }

void quantize_x(const qcts_problem& p, const QuantizedX& x) {
  Float8Task task = float8_task(p);
  task.scales = reinterpret_cast<char*>(x.scales);
  task.codes = x.codes;
  for (int64_t m = 0; m < p.m; ++m) {
    x.scales[m] = float8_scale(task, largest_of(task.from.dtype, task.from.row(m), p.k));
    quantize_float8_codes(task, m, 0, x.scales[m]);
  }
}

void float_weight_columns(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  const void* weight = in_plane(p, "original_weight");
  const QuantizedX x(p);
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = first; n < last; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum +=
            static_cast<double>(e4m3fn_to_f32(x.codes[m * p.k + k])) * load(p.w_dtype, weight, n * p.k + k);
      sum *= x.scales[m];
      if (p.bias != nullptr) sum += load(p.bias_dtype, p.bias, n);
      store_double(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n, sum);
    }
}

qcts_status run_float_weight(const qcts_problem* problem) {
  qcts_problem copy = as_weight_only(*problem);
  if (supports_policy<kFloatWeight>(problem, nullptr, 0) != QCTS_OK ||
      check_run(kFloatWeight, &copy) != QCTS_OK || !gives_scale(kFloatWeight, *problem))
    return QCTS_INVALID;
  if (copy.m == 0) return QCTS_OK;
  quantize_x(*problem, QuantizedX(*problem));
  parallel_for(copy.threads, copy.n, 1, float_weight_columns, &copy);
  return QCTS_OK;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_float_weight_scalar = linear_entry(
    "float_weight:dyn_row_fbgemm", "scalar",
    "a sum in double per output of codes of x and the weight; bound by one dependent addition per element",
    QCTS_F64, {supports_policy<kFloatWeight>, run_float_weight, workspace_bytes});
