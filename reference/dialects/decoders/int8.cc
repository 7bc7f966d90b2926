// SPDX-License-Identifier: BSD-3-Clause
// Decodes Int8Tensor (torchao 0.15 to 0.18).
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

// Returns Int8Tensor.reduce_range, which 0.15 does not have.
bool is_reduced(const NamedTensor& tensor) {
  return tensor.attributes.value("reduce_range", Json(false)) == Json(true);
}

std::string int8_name(const NamedTensor& tensor) {
  const std::vector<int64_t> blocks = block_size_of(tensor);
  const std::string reduced = is_reduced(tensor) ? "_reduced" : "";
  if (blocks.size() != 2) return "";
  if (blocks == tensor.shape && blocks[0] != 1) return "int8_tensor" + reduced;
  if (one_scale_a_row(tensor)) return "int8_row" + reduced;
  return blocks[0] == 1 && reduced.empty() ? "int8_g" + std::to_string(blocks[1]) : "";
}

// Returns the policy of act_quant_kwargs, QuantizeTensorToInt8Kwargs(granularity, mapping_type,
// reduce_range); "" when the scheme does not have it.
std::string quantization_of(const NamedTensor& tensor) {
  if (is_null(tensor, "act_quant_kwargs")) return std::string(kWeightOnly.name());
  const Json& kwargs = tensor.attributes["act_quant_kwargs"];
  if (!kwargs.contains("_data") || !kwargs["_data"].is_object()) return "";
  const Json& data = kwargs["_data"];
  const Json granularity = data.value("granularity", Json());
  const std::string kind = granularity.is_object() ? granularity.value("_type", "") : "";
  const std::string mapping = data_name(data.value("mapping_type", Json()));
  if ((data.value("reduce_range", Json(false)) == Json(true)) != is_reduced(tensor)) return "";
  if (mapping != "SYMMETRIC" && mapping != "ASYMMETRIC") return "";
  const std::string ending = mapping == "SYMMETRIC" ? "_sym" : "_asym";
  if (any_payload(tensor, {"act_quant_scale"})) {
    const bool stored = any_payload(tensor, {"act_quant_zero_point"}) && ending == "_sym";
    return "static_tensor" + ending + (stored ? "_zp" : "");
  }
  if (kind == "PerRow") return "dyn_row" + ending;
  return kind == "PerTensor" ? "dyn_tensor" + ending : "";
}

Recognized recognize_int8(const NamedTensor& tensor) {
  if (tensor.type != "Int8Tensor") return {};
  const std::string policy = quantization_of(tensor);
  if (policy.empty()) return {};
  return {int8_name(tensor), "plain", (any_payload(tensor, {"act_pre_scale"}) ? "pre_" : "") + policy};
}

// Converts 0.15's scales, stored in the logical dtype, and adds its missing zero point.
std::optional<Plane> convert_int8(const NamedTensor&, const Tensor* part, const PlaneSpec& spec) {
  if (!part) return spec.name == "zero_point" ? std::optional(zeros(spec)) : std::nullopt;
  const bool narrow = part->dtype == DType::float16 || part->dtype == DType::bfloat16;
  if (spec.name == "scale" && narrow && part->shape == spec.shape) return widened(*part, spec);
  return std::nullopt;
}

}  // namespace

extern const Decoder kDecoder_int8 = {recognize_int8, nullptr, convert_int8};

}  // namespace qcts
