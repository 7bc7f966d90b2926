// SPDX-License-Identifier: BSD-3-Clause
// int8_row as torchao 0.18 composes it from ATen operators
// (quantization/quantize_/workflows/int8/int8_tensor.py and quantization/quant_primitives.py), and ATen's own
// weight-only operator _weight_int8pack_mm.
#include <ATen/ops/_weight_int8pack_mm.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/round.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/plugins/aten/aten.h"

namespace qcts_aten {
namespace int8_row {
namespace {

std::string refusal(const qcts_problem& p) {
  if (std::string text = general_refusal(p); !text.empty()) return text;
  if (p.group != 0 && p.group != p.k) return "one scale per row";
  if (std::string text = plane_refusal(p, "qdata", QCTS_I8, {p.n, p.k}); !text.empty()) return text;
  if (std::string text = plane_refusal(p, "scale", QCTS_F32, {p.n, 1}); !text.empty()) return text;
  return plane_refusal(p, "zero_point", QCTS_I8, {p.n, 1});
}

qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  return answer(refusal(*p), why, why_size);
}

// Both linear paths ignore the zero point, because Int8WeightOnly's is always zero.
qcts_status supports_linear(const qcts_problem* p, char* why, size_t why_size) {
  std::string text = refusal(*p);
  if (text.empty() && any_byte(*p, "zero_point"))
    text = "weights with a zero point: torchao's linear ignores it";
  return answer(text, why, why_size);
}

qcts_status supports_linear_pack(const qcts_problem* p, char* why, size_t why_size) {
  if (p->k % 32 != 0)
    return answer("_weight_int8pack_mm needs rows that begin at a vector: k must be a multiple of 32", why,
                  why_size);
  return supports_linear(p, why, why_size);
}

void quantize(const qcts_problem& p) {
  const at::Tensor w = float_weight(p);
  const at::Tensor low = at::amin(w, 1, true), high = at::amax(w, 1, true);
  const at::Tensor zeros = at::zeros_like(low);
  const at::Tensor extent = at::maximum(at::minimum(low, zeros).neg(), at::maximum(high, zeros));
  const at::Tensor scale = at::clamp(extent / 127.5, 0x1p-23).to(at::kFloat);
  const at::Tensor codes =
      at::clamp(at::round(w * (scale.reciprocal() * 1.0)) + out_plane(p, "zero_point").zero_(), -128, 127);
  out_plane(p, "scale").copy_(scale);
  out_plane(p, "qdata").copy_(codes.to(at::kChar));
}

void dequantize(const qcts_problem& p) {
  const at::ScalarType dtype = scalar_type(p.w_dtype);
  const at::Tensor codes = plane(p, "qdata").to(dtype) - plane(p, "zero_point").to(dtype);
  y_rows(p).copy_((codes * plane(p, "scale")).to(dtype));
}

void linear(const qcts_problem& p) {
  const at::Tensor x = x_rows(p);
  const at::Tensor sums = at::mm(x, plane(p, "qdata").t().to(x.scalar_type()));
  finish_linear(p, sums * plane(p, "scale").to(sums.scalar_type()).flatten());
}

// _weight_int8pack_mm assumes that every row is aligned to a vector: in torch 2.13.0 on AVX2 it crashes on
// other bfloat16 rows. ATen's own memory is always aligned.
at::Tensor aligned(const at::Tensor& tensor) {
  const bool fits = tensor.is_contiguous() && reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 64 == 0;
  return fits ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

void linear_pack(const qcts_problem& p) {
  const at::Tensor x = x_rows(p);
  finish_linear(p, at::_weight_int8pack_mm(aligned(x), aligned(plane(p, "qdata")),
                                           plane(p, "scale").to(x.scalar_type()).flatten()));
}

qcts_status run_quantize(const qcts_problem* p) { return guarded(p, quantize); }
qcts_status run_dequantize(const qcts_problem* p) { return guarded(p, dequantize); }
qcts_status run_linear(const qcts_problem* p) { return guarded(p, linear); }
qcts_status run_linear_pack(const qcts_problem* p) { return guarded(p, linear_pack); }

}  // namespace
}  // namespace int8_row

const qcts_kernel quantize_int8_row =
    entry(QCTS_OP_QUANTIZE, "int8_row", "aten",
          "torchao's composition: amin, amax, reciprocal, multiply, round, clamp",
          QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC, {int8_row::supports, int8_row::run_quantize});
const qcts_kernel dequantize_int8_row = entry(
    QCTS_OP_DEQUANTIZE, "int8_row", "aten", "torchao's composition: subtract, multiply in float32, cast",
    QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC, {int8_row::supports, int8_row::run_dequantize});
const qcts_kernel linear_int8_row = entry(
    QCTS_OP_LINEAR, "int8_row", "aten", "torchao's composition: codes cast to x's dtype, mm, times scale",
    QCTS_CLAIM_DETERMINISTIC, {int8_row::supports_linear, int8_row::run_linear},
    {.struct_size = sizeof(qcts_numerics),
     .x_cast = QCTS_NONE,
     .scale_cast = QCTS_LIKE_X,
     .weight_cast = QCTS_NONE,
     .product_cast = QCTS_F32,
     .accumulator = QCTS_F32,
     .partial_cast = QCTS_LIKE_X,
     .output_cast = QCTS_LIKE_X,
     // oneDNN multiplies bfloat16 with VDPBF16PS if the processor has it.
     .flags = QCTS_NUM_SCALE_AFTER_SUM | QCTS_NUM_FLUSH_SUBNORMALS,
     .reserved = 0});
const qcts_kernel linear_int8_row_pack =
    entry(QCTS_OP_LINEAR, "int8_row", "atenint8pack", "aten::_weight_int8pack_mm, then the bias",
          QCTS_CLAIM_DETERMINISTIC, {int8_row::supports_linear_pack, int8_row::run_linear_pack},
          {.struct_size = sizeof(qcts_numerics),
           .x_cast = QCTS_NONE,
           .scale_cast = QCTS_LIKE_X,
           .weight_cast = QCTS_NONE,
           .product_cast = QCTS_F32,
           .accumulator = QCTS_F32,
           .partial_cast = QCTS_NONE,
           .output_cast = QCTS_LIKE_X,
           .flags = QCTS_NUM_SCALE_AFTER_SUM,
           .reserved = 0});

}  // namespace qcts_aten
