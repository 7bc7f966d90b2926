// SPDX-License-Identifier: BSD-3-Clause
// int4_tinygemm as torchao 0.18's Int4OpaqueTensor composes it from ATen operators
// (prototype/quantization/int4/int4_opaque_tensor.py and quantization/quant_primitives.py). The packed bytes
// depend on the instruction set that ATen dispatched to, so only that layout is offered. ATen has no operator
// that unpacks or dequantizes.
#include <ATen/ops/_convert_weight_to_int4pack_for_cpu.h>
#include <ATen/ops/_weight_int4pack_mm_for_cpu.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/round.h>
#include <ATen/ops/stack.h>

#include <cstring>

#include "kernels/plugins/aten/aten.h"

namespace qcts_aten {
namespace int4_tinygemm {
namespace {

std::string refusal(const qcts_problem& p) {
  if (std::string text = general_refusal(p); !text.empty()) return text;
  if (p.group <= 0 || p.k % p.group != 0) return "k must be a multiple of the group";
  return "";
}

std::string packed_refusal(const qcts_problem& p) {
  if (std::string text = refusal(p); !text.empty()) return text;
  if (std::string text = plane_refusal(p, "qdata", QCTS_U8, {p.n, p.k / 2}); !text.empty()) return text;
  if (std::string text = plane_refusal(p, "scale_and_zero", p.w_dtype, {p.k / p.group, p.n, 2});
      !text.empty())
    return text;
  return p.n % 16 != 0 ? "_convert_weight_to_int4pack_for_cpu needs n to be a multiple of 16" : "";
}

qcts_status supports_quantize(const qcts_problem* p, char* why, size_t why_size) {
  std::string text = refusal(*p);
  if (text.empty() && p->layout != nullptr && std::strcmp(p->layout, "tile_packed_4d") == 0)
    text = "the recipe of tile_packed_4d belongs to CUDA";
  return answer(text, why, why_size);
}

qcts_status supports_pack(const qcts_problem* p, char* why, size_t why_size) {
  std::string text = packed_refusal(*p);
  if (text.empty() && (p->layout == nullptr || std::strcmp(p->layout, int4_layout()) != 0))
    text = std::string("ATen packs ") + int4_layout() + " on this machine";
  return answer(text, why, why_size);
}

qcts_status supports_linear(const qcts_problem* p, char* why, size_t why_size) {
  std::string text = packed_refusal(*p);
  if (text.empty() && p->group != 32 && p->group != 64 && p->group != 128 && p->group != 256)
    text = "_weight_int4pack_mm_for_cpu takes groups of 32, 64, 128 and 256";
  return answer(text, why, why_size);
}

void quantize(const qcts_problem& p) {
  const at::Tensor w = float_weight(p).reshape({p.n, p.k / p.group, p.group});
  const at::Tensor low = at::amin(w, 2, true);
  const at::Tensor scale = at::clamp((at::amax(w, 2, true) - low) / 15.0, 1e-6);
  const at::Tensor zero = low + scale * 8.0;
  const at::Tensor codes =
      at::clamp(at::round((w - (zero - scale * 8.0)) / scale), 0, 15).to(at::kInt).reshape({p.n, p.k / 2, 2});
  out_plane(p, "scale_and_zero").copy_(at::stack({scale.squeeze(2), zero.squeeze(2)}, 2).transpose(0, 1));
  out_plane(p, "qdata").copy_((codes.select(2, 0) * 16 + codes.select(2, 1)).to(at::kByte));
}

at::Tensor packed(const qcts_problem& p) {
  const at::Tensor pairs = plane(p, "qdata").to(at::kInt);
  const at::Tensor codes =
      at::stack({pairs.bitwise_right_shift(4), pairs.bitwise_and(15)}, 2).reshape({p.n, p.k});
  return at::_convert_weight_to_int4pack_for_cpu(codes, 1);
}

void pack(const qcts_problem& p) {
  out_plane(p, "qdata").copy_(packed(p));
  out_plane(p, "scale_and_zero").copy_(plane(p, "scale_and_zero"));
}

// The prepared weight: the packed codes, then scale_and_zero at the next multiple of 64 bytes.
uint64_t codes_bytes(const qcts_problem& p) { return static_cast<uint64_t>(p.n * p.k / 2 + 63) / 64 * 64; }
uint64_t prepared_bytes(const qcts_problem* p) {
  return codes_bytes(*p) +
         static_cast<uint64_t>(p->k / p->group * p->n * 2) * c10::elementSize(scalar_type(p->w_dtype));
}

qcts_status prepare(const qcts_problem* problem, void* prepared) {
  try {
    const at::Tensor codes = packed(*problem), scales = plane(*problem, "scale_and_zero").contiguous();
    std::memset(prepared, 0, prepared_bytes(problem));
    std::memcpy(prepared, codes.const_data_ptr(), codes.nbytes());
    std::memcpy(static_cast<char*>(prepared) + codes_bytes(*problem), scales.const_data_ptr(),
                scales.nbytes());
    return QCTS_OK;
  } catch (...) {
    return QCTS_FAILED;
  }
}

void linear(const qcts_problem& p) {
  if (p.prepared == nullptr || p.prepared_bytes < prepared_bytes(&p))
    throw std::runtime_error("not prepared");
  auto* data = static_cast<char*>(const_cast<void*>(p.prepared));
  const at::Tensor codes = at::from_blob(data, {p.n, p.k / 2}, at::TensorOptions().dtype(at::kByte));
  const at::Tensor scales = at::from_blob(data + codes_bytes(p), {p.k / p.group, p.n, 2},
                                          at::TensorOptions().dtype(scalar_type(p.w_dtype)));
  finish_linear(p, at::_weight_int4pack_mm_for_cpu(x_rows(p).contiguous(), codes, p.group, scales));
}

qcts_status run_quantize(const qcts_problem* p) { return guarded(p, quantize); }
qcts_status run_pack(const qcts_problem* p) { return guarded(p, pack); }
qcts_status run_linear(const qcts_problem* p) { return guarded(p, linear); }

}  // namespace
}  // namespace int4_tinygemm

const qcts_kernel quantize_int4_tinygemm =
    entry(QCTS_OP_QUANTIZE, "int4_tinygemm", "aten",
          "torchao's composition: amin, amax, divide, clamp, subtract, divide, round, clamp",
          QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC,
          {int4_tinygemm::supports_quantize, int4_tinygemm::run_quantize});
const qcts_kernel pack_int4_tinygemm = entry(
    QCTS_OP_PACK, "int4_tinygemm", "aten",
    "aten::_convert_weight_to_int4pack_for_cpu, the layout of the instruction set it runs on",
    QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC, {int4_tinygemm::supports_pack, int4_tinygemm::run_pack});
const qcts_kernel linear_int4_tinygemm =
    entry(QCTS_OP_LINEAR, "int4_tinygemm", "aten",
          "aten::_weight_int4pack_mm_for_cpu on its own pack, then the bias", QCTS_CLAIM_DETERMINISTIC,
          {int4_tinygemm::supports_linear, int4_tinygemm::run_linear, int4_tinygemm::prepared_bytes,
           int4_tinygemm::prepare},
          {.struct_size = sizeof(qcts_numerics),
           .x_cast = QCTS_NONE,
           .scale_cast = QCTS_NONE,
           .weight_cast = QCTS_F32,
           .product_cast = QCTS_F32,
           .accumulator = QCTS_F32,
           .partial_cast = QCTS_NONE,
           .output_cast = QCTS_LIKE_X,
           .flags = 0,
           .reserved = 0});

}  // namespace qcts_aten
