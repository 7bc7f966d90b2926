// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.12 and 0.13, LinearActivationQuantizedTensor around a plain weight, with to_fbgemm_fp8 as its
// input_quant_func: pytorch/ao#2338. quant_kwargs has activation_scale_ub, or is {}: 1200.
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// As the readers name it, whatever the file calls it.
constexpr std::string_view kQuantizer = "torchao.dtypes.fbgemm_fp8_tensor.to_fbgemm_fp8";
constexpr double kUsualBound = 1200;  // FbgemmFp8Tensor.from_float

// The bound of x; nullopt: other arguments, which the function does not have.
std::optional<double> bound_of(const NamedTensor& tensor) {
  const auto kwargs = tensor.attributes.find("quant_kwargs");
  if (kwargs == tensor.attributes.end() || !kwargs->is_object()) return std::nullopt;
  if (kwargs->empty()) return kUsualBound;
  const auto bound = kwargs->find("activation_scale_ub");
  if (kwargs->size() != 1 || bound == kwargs->end()) return std::nullopt;
  if (bound->is_null()) return kUsualBound;
  return bound->is_number() ? std::optional(bound->get<double>()) : std::nullopt;
}

Recognized recognize_float_weight(const NamedTensor& tensor) {
  if (tensor.type != "LinearActivationQuantizedTensor" || tensor.payload.size() != 1) return {};
  const auto function = tensor.attributes.find("input_quant_func");
  if (function == tensor.attributes.end() || data_name(*function) != kQuantizer) return {};
  if (!bound_of(tensor)) return {};
  return {"float_weight", "plain", "dyn_row_fbgemm"};
}

// Safetensors call it original_weight, the class original_weight_tensor.
std::string part_float_weight(const NamedTensor& tensor, std::string_view plane) {
  return plane == "original_weight" ? tensor.payload[0].name : std::string(plane);
}

std::optional<Plane> convert_float_weight(const NamedTensor& tensor, const Tensor*, const PlaneSpec& spec) {
  if (spec.name != "activation_scale_ub") return std::nullopt;
  Plane plane{spec.name, spec.dtype, spec.shape, std::vector<std::byte>(spec.bytes())};
  store_float(spec.dtype, plane.bytes, 0, bound_of(tensor).value());
  return plane;
}

}  // namespace

extern const Decoder kDecoder_float_weight = {recognize_float_weight, part_float_weight,
                                              convert_float_weight};

}  // namespace qcts
