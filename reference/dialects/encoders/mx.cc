// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 prototype/mx_formats/mx_tensor.py, as
// MXDynamicActivationMXWeightConfig(kernel_preference=EMULATED) writes it (AUTO's kernels need sm100);
// nvfp4_tensor.py, as NVFP4WeightOnlyConfig and, with a policy,
// NVFP4DynamicActivationNVFP4WeightConfig(use_triton_kernel=False) write it.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

bool makes_mx(const Scheme& scheme, Layout layout, Policy) {
  return scheme.family() == "mx" && scheme.find_layout(layout.name()).has_value();
}

// Uses torchao's names for elements that torch has no type for.
Json element(const Scheme& scheme) {
  const std::string_view meaning = scheme.meaning();
  if (meaning == "mxfp8_e4m3") return dtype_json(DType::float8_e4m3fn);
  if (meaning == "mxfp8_e5m2") return dtype_json(DType::float8_e5m2);
  if (meaning == "mxfp4") return dtype_json(DType::float4_e2m1fn_x2);
  return meaning == "mxfp6_e2m3" ? "fp6_e2m3" : "fp6_e3m2";
}

// Returns the mode of the activations, which the weight shares: "mxfp4_rceil" -> RCEIL.
Json mode(const Scheme& scheme) {
  std::string text(scheme.name().substr(scheme.name().rfind('_') + 1));
  for (char& c : text) c = static_cast<char>(c - 'a' + 'A');
  return typed_json("ScaleCalculationMode", text);
}

Json mx_state(const SchemeTensor& tensor) {
  const Json emulated = typed_json("KernelPreference", "EMULATED");
  const bool swizzled = tensor.layout == "swizzled";
  Json kwargs = Json::object();
  kwargs["elem_dtype"] = element(*tensor.scheme);
  kwargs["block_size"] = 32;
  kwargs["scaling_mode"] = mode(*tensor.scheme);
  kwargs["kernel_preference"] = emulated;
  kwargs["is_swizzled_scales"] = swizzled;
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale"] = plane_here();
  dict["elem_dtype"] = element(*tensor.scheme);
  dict["block_size"] = 32;
  dict["orig_dtype"] = dtype_json(tensor.dtype);
  dict["kernel_preference"] = emulated;
  dict["act_quant_kwargs"] =
      tensor.activation == kWeightOnly ? Json(nullptr) : typed_json("QuantizeTensorToMXKwargs", kwargs);
  dict["is_swizzled_scales"] = swizzled;
  return dict;
}

bool makes_nvfp4(const Scheme& scheme, Layout layout, Policy) {
  return scheme.family() == "nvfp4" && scheme.find_layout(layout.name()).has_value();
}

Json nvfp4_state(const SchemeTensor& tensor) {
  const bool swizzled = tensor.layout == "swizzled", two = tensor.scheme->name() == "nvfp4_two_level";
  Json kwargs = Json::object();
  kwargs["block_size"] = 16;
  kwargs["is_swizzled_scales"] = swizzled;
  kwargs["use_triton_kernel"] = false;
  kwargs["use_dynamic_per_tensor_scale"] = tensor.activation == "dyn_tensor_block16";
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale"] = plane_here();
  dict["block_size"] = 16;
  dict["orig_dtype"] = dtype_json(tensor.dtype);
  dict["per_tensor_scale"] = two ? plane_here() : Json(nullptr);
  dict["act_per_tensor_scale"] = tensor.activation == "static_tensor_block16" ? plane_here() : Json(nullptr);
  dict["is_swizzled_scales"] = swizzled;
  dict["use_triton_kernel"] = false;
  dict["act_quant_kwargs"] =
      tensor.activation == kWeightOnly ? Json(nullptr) : typed_json("QuantizeTensorToNVFP4Kwargs", kwargs);
  return dict;
}

}  // namespace

extern const Encoder kEncoder_mx = {
    {"torchao.prototype.mx_formats.mx_tensor", "MXTensor", true}, makes_mx, mx_state};
extern const Encoder kEncoder_nvfp4 = {
    {"torchao.prototype.mx_formats.nvfp4_tensor", "NVFP4Tensor", true}, makes_nvfp4, nvfp4_state};

}  // namespace qcts
