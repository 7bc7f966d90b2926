// SPDX-License-Identifier: BSD-3-Clause
// int8_row with a scale of x that the checkpoint gives ("static_tensor_sym"), as LibTorch's compiled graphs
// run it: quantize_per_tensor, then onednn::qlinear_pointwise on a weight packed by onednn::qlinear_prepack.
// A graph keeps that weight as an opaque tensor. Here `prepared` holds it as ahead-of-time compilation stores
// it (torch/csrc/inductor/aoti_torch): a Header, oneDNN's description of the layout, then the bytes.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/int_repr.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <cstring>

#include "kernels/plugins/aten/aten.h"

namespace qcts_aten {
namespace int8_static {
namespace {

struct Header {
  int64_t description_bytes, weight_bytes;
};
constexpr uint64_t kMaxDescriptionBytes = 4032;  // 772 in LibTorch 2.13.0
constexpr uint64_t kWeightOffset = 64 + kMaxDescriptionBytes;

// Boxed: the C++ signatures of these operators change between releases, while their schemas have not.
template <class... Arguments>
c10::IValue call(const char* name, Arguments&&... arguments) {
  std::vector<c10::IValue> stack = {c10::IValue(std::forward<Arguments>(arguments))...};
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack.front();
}
bool has_qlinear() {
  return c10::Dispatcher::singleton().findSchema({"onednn::qlinear_pointwise", ""}).has_value();
}

std::string refusal(const qcts_problem& p) {
  if (!has_qlinear()) return "this LibTorch has no onednn::qlinear_pointwise";
  // With ONEDNN_MAX_CPU_ISA=AVX2, 6 of 60 numerics cases were wrong, in up to half of their outputs.
  if (!at::cpu::is_avx512_vnni_supported())
    return "without AVX512-VNNI oneDNN adds two products of bytes in 16 bits, which saturate";
  qcts_problem weight_only = p;
  weight_only.activation = "weight_only";
  if (std::string text = general_refusal(weight_only); !text.empty()) return text;
  if (p.x_dtype == QCTS_F16) return "x must be float32 or bfloat16";
  if (p.group != 0 && p.group != p.k) return "one scale per row";
  if (std::string text = plane_refusal(p, "qdata", QCTS_I8, {p.n, p.k}); !text.empty()) return text;
  if (std::string text = plane_refusal(p, "scale", QCTS_F32, {p.n, 1}); !text.empty()) return text;
  if (std::string text = plane_refusal(p, "act_quant_scale", QCTS_F32, {1, 1}); !text.empty()) return text;
  if (std::string text = plane_refusal(p, "zero_point", QCTS_I8, {p.n, 1}); !text.empty()) return text;
  if (any_byte(p, "zero_point"))
    return "weights with a zero point: onednn::qlinear_prepack lays out symmetric ones";
  return "";
}

qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  return answer(refusal(*p), why, why_size);
}

// Upper limit of the weight's bytes: oneDNN pads it and adds a sum for each column.
uint64_t most_weight_bytes(const qcts_problem& p) {
  const auto padded = [](int64_t count) { return static_cast<uint64_t>((count + 63) / 64 * 64); };
  return padded(p.n) * (padded(p.k) + 4);
}
// The float32 scales of the rows follow the weight: the planes may be gone when a linear runs.
uint64_t scales_offset(const qcts_problem& p) { return kWeightOffset + most_weight_bytes(p); }
uint64_t prepared_bytes(const qcts_problem* p) {
  return scales_offset(*p) + static_cast<uint64_t>(p->n) * sizeof(float);
}

void pack(const qcts_problem& p) {
  const at::Tensor packed =
      call("onednn::qlinear_prepack", plane(p, "qdata").contiguous(), c10::IValue()).toTensor();
  const at::Tensor description = call("mkldnn::_get_mkldnn_serialized_md", packed).toTensor();
  const Header header = {description.numel(), call("mkldnn::_nbytes", packed).toInt()};
  TORCH_CHECK(static_cast<uint64_t>(header.description_bytes) <= kMaxDescriptionBytes &&
                  static_cast<uint64_t>(header.weight_bytes) <= most_weight_bytes(p),
              "the packed weight is larger than expected");
  char* to = static_cast<char*>(const_cast<void*>(p.prepared));
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to + 64, description.const_data_ptr(), static_cast<size_t>(header.description_bytes));
  const auto* bytes = reinterpret_cast<const void*>(call("mkldnn::data_ptr", packed).toInt());
  std::memcpy(to + kWeightOffset, bytes, static_cast<size_t>(header.weight_bytes));
  const at::Tensor scales = plane(p, "scale").to(at::kFloat).contiguous();
  std::memcpy(to + scales_offset(p), scales.const_data_ptr(), scales.nbytes());
}

// Views of what `pack` wrote.
at::Tensor prepared_scales(const qcts_problem& p) {
  char* from = static_cast<char*>(const_cast<void*>(p.prepared));
  return at::from_blob(from + scales_offset(p), {p.n}, at::kFloat);
}
at::Tensor packed_weight(const qcts_problem& p) {
  char* from = static_cast<char*>(const_cast<void*>(p.prepared));
  Header header;
  std::memcpy(&header, from, sizeof header);
  const int64_t sizes[] = {p.n, p.k}, strides[] = {p.k, 1};
  AtenTensorHandle handle = nullptr;
  const AOTITorchError error = aoti_torch_create_tensor_from_blob_v2(
      from + kWeightOffset, 2, sizes, strides, 0, aoti_torch_dtype_int8(), aoti_torch_device_type_cpu(), 0,
      &handle, aoti_torch_layout__mkldnn(), reinterpret_cast<const uint8_t*>(from + 64),
      header.description_bytes);
  TORCH_CHECK(error == AOTI_TORCH_SUCCESS, "LibTorch could not read the packed weight");
  const at::Tensor weight = *torch::aot_inductor::tensor_handle_to_tensor_pointer(handle);
  aoti_torch_delete_tensor_object(handle);
  return weight;
}

// quantize_per_tensor adds the zero point before it rounds, torchao after. With a zero point of 0 they agree,
// so the codes are made signed. The product gets them plus 128: with signed bytes, qlinear_pointwise ran
// oneDNN's reference loop (m = 16 of 4096 x 4096: 5.8 s instead of 1.6 ms on an EPYC Zen 4).
constexpr int64_t kUnsigned = 128;

at::Tensor unsigned_codes(const qcts_problem& p, double scale) {
  const at::Tensor codes =
      at::int_repr(at::quantize_per_tensor(x_rows(p).to(at::kFloat), scale, 0, at::kQInt8));
  return codes.view(at::kByte).bitwise_xor_(kUnsigned);
}

void linear(const qcts_problem& p) {
  const double x_scale = plane(p, "act_quant_scale").item<double>();
  const at::Tensor x = unsigned_codes(p, x_scale);
  const c10::IValue added = p.bias == nullptr ? c10::IValue() : bias(p).to(at::kFloat);
  const at::Tensor y = call("onednn::qlinear_pointwise", x, x_scale, kUnsigned, packed_weight(p),
                            prepared_scales(p), at::zeros({p.n}, at::kInt), added, 1.0, 0,
                            scalar_type(p.x_dtype), "none", c10::List<std::optional<at::Scalar>>(), "")
                           .toTensor();
  y_rows(p).copy_(y);
}

qcts_status prepare(const qcts_problem* p, void* prepared) {
  qcts_problem problem = *p;
  problem.prepared = prepared;
  return guarded(&problem, pack);
}
qcts_status run(const qcts_problem* p) {
  if (p->prepared == nullptr || p->prepared_bytes < prepared_bytes(p)) return QCTS_INVALID;
  return guarded(p, linear);
}

}  // namespace
}  // namespace int8_static

const qcts_kernel linear_int8_row_static =
    entry(QCTS_OP_LINEAR, "int8_row:static_tensor_sym", "atenqlinear",
          "aten::quantize_per_tensor of x, then onednn::qlinear_pointwise", QCTS_CLAIM_DETERMINISTIC,
          {int8_static::supports, int8_static::run, int8_static::prepared_bytes, int8_static::prepare},
          {.struct_size = sizeof(qcts_numerics),
           .x_cast = QCTS_NONE,
           .scale_cast = QCTS_NONE,
           .weight_cast = QCTS_NONE,
           .product_cast = QCTS_NONE,
           .accumulator = QCTS_I32,
           .partial_cast = QCTS_F32,
           .output_cast = QCTS_F32,
           .flags = QCTS_NUM_SCALE_AFTER_SUM,
           .reserved = 0});

}  // namespace qcts_aten
