// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18.0 quantization/quantize_/workflows/int8/int8_tensor.py
#include "reference/dialects/encoders/encoder.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

// QuantizeTensorToInt8Kwargs cannot express the first generation's policy.
bool makes_int8_tensor(const Scheme& scheme, Layout layout, Policy activation) {
  return scheme.family().starts_with("int8_") && !is_int8_v1(scheme) && layout == kPlain &&
         activation != "dyn_row_sym_127";
}

bool is_reduced(const Scheme& scheme) { return scheme.family().ends_with("_reduced"); }

Json kwargs_int8(const SchemeTensor& tensor) {
  const std::string_view policy = tensor.activation.name();
  if (policy.ends_with(kWeightOnly.name())) return nullptr;
  Json data = Json::object();
  data["granularity"] = policy.find("_row_") != policy.npos ? typed_json("PerRow", {{"dim", -1}})
                                                            : typed_json("PerTensor", Json::object());
  data["mapping_type"] = typed_json("MappingType", policy.ends_with("_asym") ? "ASYMMETRIC" : "SYMMETRIC");
  data["reduce_range"] = is_reduced(*tensor.scheme);
  return typed_json("QuantizeTensorToInt8Kwargs", std::move(data));
}

Json state_int8(const SchemeTensor& tensor) {
  const bool is_tensor = tensor.scheme->family().starts_with("int8_tensor");
  const auto stored = [&](std::string_view name) {
    for (const Plane& plane : tensor.policy_planes)
      if (plane.name == name) return plane_here();
    return Json(nullptr);
  };
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale"] = plane_here();
  dict["block_size"] = is_tensor ? Json({tensor.n, tensor.k}) : group_block(tensor);
  dict["zero_point"] = plane_here();
  dict["act_quant_kwargs"] = kwargs_int8(tensor);
  dict["act_quant_scale"] = stored("act_quant_scale");
  dict["act_quant_zero_point"] = stored("act_quant_zero_point");
  dict["act_pre_scale"] = stored("act_pre_scale");
  dict["reduce_range"] = is_reduced(*tensor.scheme);
  return dict;
}

}  // namespace

extern const Encoder kEncoder_int8 = {
    {"torchao.quantization", "Int8Tensor", true}, makes_int8_tensor, state_int8};

}  // namespace qcts
