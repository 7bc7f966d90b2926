// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/float8/float8_tensor.py, as Float8WeightOnlyConfig and
// Float8DynamicActivationFloat8WeightConfig write it; static activations use PrototypeFloat8Tensor,
// prototype/quantization/float8_static_quant/prototype_float8_tensor.py.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/encoder.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

bool is_first_generation(Policy activation) {
  return activation.name().ends_with("_recip") || activation == "dyn_row_fbgemm";
}

bool makes_float8(const Scheme& scheme, Layout layout, Policy activation) {
  const bool float8 = scheme.family() == "fp8_row" || scheme.family() == "fp8";
  return float8 && scheme.find_layout(layout.name()) && !activation.name().starts_with("static_") &&
         !is_first_generation(activation);
}

bool makes_static_float8(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family() == "fp8" && scheme.find_layout(layout.name()) &&
         activation.name().starts_with("static_tensor") && !is_first_generation(activation);
}

// Returns the block size: the weight's shape divided by its scale's.
Json blocks(const SchemeTensor& tensor) {
  const std::vector<int64_t>& scales = plane(tensor.planes, "scale").shape;
  return {tensor.n / scales[0], tensor.k / scales[1]};
}

Json kernel(Policy activation) {
  return typed_json("KernelPreference", activation == "dyn_row_mslk" ? "MSLK" : "AUTO");
}

Json bound(const SchemeTensor& tensor, std::string_view name) {
  for (const Plane& plane : tensor.policy_planes)
    if (plane.name == name) return load_float(plane.dtype, plane.bytes, 0);
  return nullptr;
}

Json kwargs_float8(const SchemeTensor& tensor) {
  const std::string_view policy = tensor.activation.name();
  Json data = Json::object();
  data["float8_dtype"] = dtype_json(plane(tensor.planes, "qdata").dtype);
  data["granularity"] =
      policy == "dyn_tensor" || policy.starts_with("static_tensor") ? typed_json("PerTensor", Json::object())
      : policy == "dyn_block128" ? typed_json("PerBlock", {{"block_size", Json::array({1, 128})}})
                                 : typed_json("PerRow", {{"dim", -1}});
  data["mm_config"] = nullptr;
  data["hp_value_lb"] = bound(tensor, "hp_value_lb");
  data["hp_value_ub"] = bound(tensor, "hp_value_ub");
  data["kernel_preference"] = kernel(tensor.activation);
  return typed_json("QuantizeTensorToFloat8Kwargs", std::move(data));
}

Json mm_config(Policy activation) {
  Json data = Json::object();
  data["emulate"] = false;
  data["use_fast_accum"] = activation != "dyn_block128";
  data["pad_inner_dim"] = false;
  return typed_json("Float8MMConfig", std::move(data));
}

Json state_float8(const SchemeTensor& tensor) {
  const bool dynamic = tensor.activation != kWeightOnly;
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale"] = plane_here();
  dict["block_size"] = blocks(tensor);
  dict["mm_config"] = dynamic ? mm_config(tensor.activation) : Json(nullptr);
  dict["act_quant_kwargs"] = dynamic ? kwargs_float8(tensor) : Json(nullptr);
  dict["kernel_preference"] = kernel(tensor.activation);
  return dict;
}

Json state_static_float8(const SchemeTensor& tensor) {
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale"] = plane_here();
  dict["act_quant_scale"] = plane_here();
  dict["block_size"] = blocks(tensor);
  dict["mm_config"] = mm_config(tensor.activation);
  dict["act_quant_kwargs"] = kwargs_float8(tensor);
  dict["kernel_preference"] = kernel(tensor.activation);
  const bool out = tensor.activation == "static_tensor_out";
  dict["output_act_quant_scale"] = out ? plane_here() : Json(nullptr);
  dict["output_act_quant_kwargs"] = out ? kwargs_float8(tensor) : Json(nullptr);
  return dict;
}

}  // namespace

extern const Encoder kEncoder_float8_static = {
    {"torchao.prototype.quantization.float8_static_quant.prototype_float8_tensor", "PrototypeFloat8Tensor",
     false},
    makes_static_float8,
    state_static_float8};

extern const Encoder kEncoder_float8 = {
    {"torchao.quantization", "Float8Tensor", true}, makes_float8, state_float8};

}  // namespace qcts
