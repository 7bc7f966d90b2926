// SPDX-License-Identifier: BSD-3-Clause
// Decodes MXTensor and NVFP4Tensor. torchao 0.18.0: prototype/mx_formats/mx_tensor.py, nvfp4_tensor.py.
#include <algorithm>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/block_floats.h"
#include "reference/dialects/classes/float_schemas.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/numerics/block_scales.h"

namespace qcts {
namespace {

int64_t require_block(const NamedTensor& tensor) {
  const Json& block = tensor.attributes["block_size"];
  if (!block.is_number_integer() || block.get<int64_t>() < 1)
    contradict(tensor, "block_size " + block.dump() + " is not a positive integer");
  return block.get<int64_t>();
}

// Returns the whole's shape from qdata's, with `per_byte` elements in a byte.
std::vector<int64_t> unpacked_shape(const NamedTensor& tensor, const Tensor& qdata, int64_t per_byte) {
  if (qdata.shape.size() < 2 || qdata.shape.size() > 3)
    contradict(tensor, "qdata " + shape_text(qdata.shape) + " is not 2-D or 3-D");
  if (qdata.shape.back() > INT64_MAX / 2)
    contradict(tensor, "qdata " + shape_text(qdata.shape) + " is too large");
  std::vector<int64_t> shape = with_last(qdata.shape, qdata.shape.back() * per_byte);
  numel_of(shape);
  return shape;
}

// Requires one scale per block along K, or the tiles of to_blocked. Rows of a 3-D tensor are tiled together.
void require_scales(const NamedTensor& tensor, const Tensor& scale, const std::vector<int64_t>& shape,
                    int64_t block, bool swizzled) {
  if (shape.back() % block)
    contradict(tensor, "blocks of " + std::to_string(block) + " do not divide " + shape_text(shape));
  const int64_t blocks = shape.back() / block;
  if (!swizzled) return require_shape(tensor, "scale", scale, with_last(shape, blocks));
  if (shape[0] > INT32_MAX || shape[1] > INT32_MAX)
    contradict(tensor, "shape " + shape_text(shape) + " is larger than its scales");
  if (shape.size() == 2) require_shape(tensor, "scale", scale, swizzled_shape(shape[0], blocks));
}

void require_codes_below(const NamedTensor& tensor, const Tensor& qdata, int limit) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> codes = row_major_view(qdata, scratch);
  for (size_t i = 0; i < codes.size(); ++i)
    if (static_cast<int>(codes[i]) >= limit)
      contradict(tensor, "qdata holds " + std::to_string(static_cast<int>(codes[i])) + " at element " +
                             std::to_string(i) + ", not a six-bit element");
}

Json kwargs_field(const NamedTensor& tensor, const char* name) {
  const Json& kwargs = tensor.attributes["act_quant_kwargs"];
  if (!kwargs.is_object() || !kwargs.contains("_data") || !kwargs["_data"].is_object()) return nullptr;
  return kwargs["_data"].value(name, Json(nullptr));
}

bool is_swizzled(const NamedTensor& tensor) { return tensor.attributes["is_swizzled_scales"] == Json(true); }

Recognized recognize_mx_tensor(const NamedTensor& tensor) {
  const std::optional<DType> element = mx_element(tensor.attributes["elem_dtype"]);
  if (!element || tensor.attributes["block_size"] != Json(32)) return {};
  std::string name = *element == DType::float8_e4m3fn   ? "mxfp8_e4m3"
                     : *element == DType::float8_e5m2   ? "mxfp8_e5m2"
                     : *element == DType::float6_e2m3fn ? "mxfp6_e2m3"
                     : *element == DType::float6_e3m2fn ? "mxfp6_e3m2"
                                                        : "mxfp4";
  // The file records the activations' mode, which the config also uses for the weight. Without one: to_mx's
  // default. The bytes mean the same in all modes.
  std::string mode = "floor", activation{kWeightOnly.name()};
  if (!tensor.attributes["act_quant_kwargs"].is_null()) {
    if (const std::string named = data_name(kwargs_field(tensor, "scaling_mode")); !named.empty())
      mode = named;
    std::ranges::transform(mode, mode.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    const bool same = mx_element(kwargs_field(tensor, "elem_dtype")) == element &&
                      kwargs_field(tensor, "block_size") == Json(32);
    activation = same ? "dyn_block32" : "";
  }
  return {name + "_" + mode, is_swizzled(tensor) ? "swizzled" : "plain", activation};
}

Recognized recognize_nvfp4_tensor(const NamedTensor& tensor) {
  if (tensor.attributes["block_size"] != Json(16)) return {};
  const bool two = find_payload(tensor, "per_tensor_scale"),
             fixed = find_payload(tensor, "act_per_tensor_scale");
  if (fixed && !two) return {};
  const std::string layout = is_swizzled(tensor) ? "swizzled" : "plain";
  const bool quantized = !tensor.attributes["act_quant_kwargs"].is_null();
  const bool dynamic = kwargs_field(tensor, "use_dynamic_per_tensor_scale") == Json(true);
  const std::string scheme = two ? "nvfp4_two_level" : "nvfp4_one_level";
  if (fixed) return {scheme, layout, quantized && !dynamic ? "static_tensor_block16" : ""};
  return {scheme, layout,
          !quantized ? std::string(kWeightOnly.name())
          : dynamic  ? "dyn_tensor_block16"
                     : "dyn_block16"};
}

Recognized recognize_mx(const NamedTensor& tensor) {
  if (tensor.type == "MXTensor") return recognize_mx_tensor(tensor);
  if (tensor.type == "NVFP4Tensor") return recognize_nvfp4_tensor(tensor);
  return {};
}

}  // namespace

Outer mx_outer(const NamedTensor& t) {
  const std::optional<DType> element = mx_element(t.attributes["elem_dtype"]);
  if (!element) contradict(t, "elem_dtype " + t.attributes["elem_dtype"].dump() + " is not an element of MX");
  const bool float8 = *element == DType::float8_e4m3fn || *element == DType::float8_e5m2;
  const Tensor& qdata = require_payload(t, "qdata", {float8 ? *element : DType::uint8});
  const std::vector<int64_t> shape = unpacked_shape(t, qdata, *element == DType::float4_e2m1fn_x2 ? 2 : 1);
  require_bool_or_null(t, "is_swizzled_scales");
  require_scales(t, require_payload(t, "scale", {DType::float8_e8m0fnu}), shape, require_block(t),
                 is_swizzled(t));
  if (dtype_bits(*element) == 6) require_codes_below(t, qdata, 64);
  require_class_or_null(t, "act_quant_kwargs", "QuantizeTensorToMXKwargs");
  require_class_or_null(t, "kernel_preference", "KernelPreference");
  return {shape, require_dtype(t, "orig_dtype", kFloats)};
}

Outer nvfp4_outer(const NamedTensor& t) {
  const std::vector<int64_t> shape = unpacked_shape(t, require_payload(t, "qdata", {DType::uint8}), 2);
  require_bool_or_null(t, "is_swizzled_scales");
  require_scales(t, require_payload(t, "scale", {DType::float8_e4m3fn}), shape, require_block(t),
                 is_swizzled(t));
  for (const char* name : {"per_tensor_scale", "act_per_tensor_scale"})
    if (find_payload(t, name)) require_payload(t, name, {DType::float32});
  require_bool_or_null(t, "use_triton_kernel");
  require_class_or_null(t, "act_quant_kwargs", "QuantizeTensorToNVFP4Kwargs");
  return {shape, require_dtype(t, "orig_dtype", kFloats)};
}

extern const Decoder kDecoder_mx = {recognize_mx};

}  // namespace qcts
