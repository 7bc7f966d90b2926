// SPDX-License-Identifier: BSD-3-Clause
// fp8_row as torchao 0.18 composes it from ATen operators
// (quantization/quantize_/workflows/float8/float8_tensor.py and quantization/quant_primitives.py). ATen's CPU
// has no weight-only fp8 product, so every call dequantizes the weight.
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/mm.h>

#include "kernels/plugins/aten/aten.h"

namespace qcts_aten {
namespace fp8_row {
namespace {

std::string refusal(const qcts_problem& p) {
  if (std::string text = general_refusal(p); !text.empty()) return text;
  if (p.group != 0 && p.group != p.k) return "one scale per row";
  if (std::string text = plane_refusal(p, "qdata", QCTS_F8_E4M3FN, {p.n, p.k}); !text.empty()) return text;
  return plane_refusal(p, "scale", QCTS_F32, {p.n, 1});
}

qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  return answer(refusal(*p), why, why_size);
}

at::Tensor dequantized(const qcts_problem& p) {
  return (plane(p, "qdata").to(at::kFloat) * plane(p, "scale")).to(scalar_type(p.w_dtype));
}

void quantize(const qcts_problem& p) {
  const at::Tensor w = float_weight(p);
  const at::Tensor scale = (at::amax(at::abs(w), 1, true) / 448.0).to(at::kFloat);
  out_plane(p, "scale").copy_(scale);
  out_plane(p, "qdata").copy_(at::clamp(w.to(at::kFloat) / scale, -448.0, 448.0).to(at::kFloat8_e4m3fn));
}

void dequantize(const qcts_problem& p) { y_rows(p).copy_(dequantized(p)); }

void linear(const qcts_problem& p) { finish_linear(p, at::mm(x_rows(p), dequantized(p).t())); }

qcts_status run_quantize(const qcts_problem* p) { return guarded(p, quantize); }
qcts_status run_dequantize(const qcts_problem* p) { return guarded(p, dequantize); }
qcts_status run_linear(const qcts_problem* p) { return guarded(p, linear); }

}  // namespace
}  // namespace fp8_row

const qcts_kernel quantize_fp8_row =
    entry(QCTS_OP_QUANTIZE, "fp8_row", "aten", "torchao's composition: abs, amax, divide, clamp, cast",
          QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC, {fp8_row::supports, fp8_row::run_quantize});
const qcts_kernel dequantize_fp8_row =
    entry(QCTS_OP_DEQUANTIZE, "fp8_row", "aten", "torchao's composition: cast, multiply in float32, cast",
          QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC, {fp8_row::supports, fp8_row::run_dequantize});
const qcts_kernel linear_fp8_row =
    entry(QCTS_OP_LINEAR, "fp8_row", "aten", "torchao's composition: dequantize to x's dtype, mm",
          QCTS_CLAIM_DETERMINISTIC, {fp8_row::supports, fp8_row::run_linear},
          {.struct_size = sizeof(qcts_numerics),
           .x_cast = QCTS_NONE,
           .scale_cast = QCTS_NONE,
           .weight_cast = QCTS_LIKE_X,
           .product_cast = QCTS_F32,
           .accumulator = QCTS_F32,
           .partial_cast = QCTS_NONE,
           .output_cast = QCTS_LIKE_X,
           // oneDNN multiplies bfloat16 with VDPBF16PS if the processor has it.
           .flags = QCTS_NUM_FLUSH_SUBNORMALS,
           .reserved = 0});

}  // namespace qcts_aten
