// SPDX-License-Identifier: BSD-3-Clause
// Baseline of the latency cases: the same layer, not quantized. Scheme "dense" has one plane "w", row-major
// [n, k] of w_dtype.
#include <ATen/ops/linear.h>

#include "kernels/plugins/aten/aten.h"

namespace qcts_aten {
namespace dense {
namespace {

qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  std::string text = general_refusal(*p);
  if (text.empty()) text = plane_refusal(*p, "w", p->w_dtype, {p->n, p->k});
  return answer(text, why, why_size);
}

void linear(const qcts_problem& p) {
  const at::Tensor b = bias(p);
  y_rows(p).copy_(
      at::linear(x_rows(p), plane(p, "w"), b.defined() ? std::optional<at::Tensor>(b) : std::nullopt));
}

qcts_status run(const qcts_problem* p) { return guarded(p, linear); }

}  // namespace
}  // namespace dense

const qcts_kernel linear_dense = entry(QCTS_OP_LINEAR, "dense", "aten", "aten::linear on the float weight",
                                       QCTS_CLAIM_DETERMINISTIC, {dense::supports, dense::run},
                                       {.struct_size = sizeof(qcts_numerics),
                                        .x_cast = QCTS_NONE,
                                        .scale_cast = QCTS_NONE,
                                        .weight_cast = QCTS_NONE,
                                        .product_cast = QCTS_F32,
                                        .accumulator = QCTS_F32,
                                        .partial_cast = QCTS_NONE,
                                        .output_cast = QCTS_LIKE_X,
                                        // oneDNN multiplies bfloat16 with VDPBF16PS if the processor has it.
                                        .flags = QCTS_NUM_FLUSH_SUBNORMALS,
                                        .reserved = 0});

}  // namespace qcts_aten
