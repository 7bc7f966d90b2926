// SPDX-License-Identifier: BSD-3-Clause
// Decodes MXTensor and NVFP4Tensor. torchao 0.18.0: prototype/mx_formats/mx_tensor.py, nvfp4_tensor.py.
#include <algorithm>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/block_floats.h"
#include "reference/dialects/classes/float_schemas.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/numerics/block_scales.h"

namespace qcts {
namespace {

// Checks the parts together: as many scales as blocks, or the tiles of to_blocked. A view leaves the scales
// in their old shape, so only their number counts.
BlockFloats require_block_floats(const NamedTensor& tensor) {
  const std::optional<BlockFloats> floats = block_floats_of(tensor);
  if (!floats)
    contradict(tensor, "its blocks do not divide its elements, or qdata, scale or block_size is missing");
  const int64_t wanted = stored_scales(*floats);
  if (floats->scale->numel() != wanted)
    contradict(tensor, "scale is " + shape_text(floats->scale->shape) + ", but " + shape_text(floats->shape) +
                           " in blocks of " + std::to_string(floats->block) + " needs " +
                           std::to_string(wanted) + " scales");
  return *floats;
}

// Requires the dtypes of the parts, by whichever of their names the tensor has.
void require_part_dtype(const NamedTensor& tensor, const Tensor& part, std::string_view what,
                        std::initializer_list<DType> dtypes) {
  if (std::ranges::find(dtypes, part.dtype) != dtypes.end()) return;
  contradict(tensor, std::string(what) + " is " + std::string(dtype_name(part.dtype)) + ", not " +
                         std::string(dtype_name(*dtypes.begin())));
}

DType outer_dtype(const NamedTensor& tensor) {
  const bool today = tensor.attributes.contains("orig_dtype");
  return require_dtype(tensor, today ? "orig_dtype" : "_orig_dtype", kFloats);
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
  const Json kwargs = attribute_at(tensor, "act_quant_kwargs");
  if (!kwargs.is_object() || !kwargs.contains("_data") || !kwargs["_data"].is_object()) return nullptr;
  return kwargs["_data"].value(name, Json(nullptr));
}

bool is_swizzled(const NamedTensor& tensor) {
  return attribute_at(tensor, "is_swizzled_scales") == Json(true);
}

Recognized recognize_mx_tensor(const NamedTensor& tensor) {
  const std::optional<DType> element = mx_element(attribute_at(tensor, "elem_dtype"));
  if (!element || attribute_at(tensor, "block_size") != Json(32) || !find_payload(tensor, "scale")) return {};
  std::string name = *element == DType::float8_e4m3fn   ? "mxfp8_e4m3"
                     : *element == DType::float8_e5m2   ? "mxfp8_e5m2"
                     : *element == DType::float6_e2m3fn ? "mxfp6_e2m3"
                     : *element == DType::float6_e3m2fn ? "mxfp6_e3m2"
                                                        : "mxfp4";
  // The file records the activations' mode, which the config also uses for the weight. Without one: to_mx's
  // default. The bytes mean the same in all modes.
  std::string mode = "floor", activation{kWeightOnly.name()};
  if (!is_null(tensor, "act_quant_kwargs")) {
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
  const bool today = tensor.attributes.contains("orig_dtype") && find_payload(tensor, "scale");
  if (!today || attribute_at(tensor, "block_size") != Json(16)) return {};
  const bool two = find_payload(tensor, "per_tensor_scale"),
             fixed = find_payload(tensor, "act_per_tensor_scale");
  if (fixed && !two) return {};
  const std::string layout = is_swizzled(tensor) ? "swizzled" : "plain";
  const bool quantized = !is_null(tensor, "act_quant_kwargs");
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
  const Json name = attribute_at(t, t.attributes.contains("elem_dtype") ? "elem_dtype" : "_elem_dtype");
  const std::optional<DType> element = mx_element(name);
  if (!element) contradict(t, "elem_dtype " + name.dump() + " is not an element of MX");
  const BlockFloats floats = require_block_floats(t);
  const bool float8 = *element == DType::float8_e4m3fn || *element == DType::float8_e5m2;
  require_part_dtype(t, floats.qdata, "qdata", {float8 ? *element : DType::uint8});
  // torch had no e8m0 until torchao 0.9.
  if (find_payload(t, "_scale_e8m0"))
    require_part_dtype(t, *floats.scale, "_scale_e8m0", {DType::float8_e8m0fnu, DType::uint8});
  else
    require_part_dtype(t, *floats.scale, "scale", {DType::float8_e8m0fnu});
  if (dtype_bits(*element) == 6 && !floats.packed_six) require_codes_below(t, floats.qdata, 64);
  if (t.attributes.contains("is_swizzled_scales")) require_bool_or_null(t, "is_swizzled_scales");
  for (const auto& [attribute, cls] : {std::pair{"act_quant_kwargs", "QuantizeTensorToMXKwargs"},
                                       std::pair{"kernel_preference", "KernelPreference"}})
    if (t.attributes.contains(attribute)) require_class_or_null(t, attribute, cls);
  return {floats.logical_shape(), outer_dtype(t)};
}

Outer nvfp4_outer(const NamedTensor& t) {
  const BlockFloats floats = require_block_floats(t);
  require_part_dtype(t, floats.qdata, "qdata", {DType::uint8});
  require_part_dtype(t, *floats.scale, "scale", {DType::float8_e4m3fn});
  for (const char* name :
       {"per_tensor_scale", "act_per_tensor_scale", "_per_tensor_scale", "_act_per_tensor_scale"})
    if (find_payload(t, name)) require_payload(t, name, {DType::float32});
  for (const char* flag : {"is_swizzled_scales", "use_triton_kernel"})
    if (t.attributes.contains(flag)) require_bool_or_null(t, flag);
  if (t.attributes.contains("act_quant_kwargs"))
    require_class_or_null(t, "act_quant_kwargs", "QuantizeTensorToNVFP4Kwargs");
  return {floats.logical_shape(), outer_dtype(t)};
}

extern const Decoder kDecoder_mx = {recognize_mx};

}  // namespace qcts
