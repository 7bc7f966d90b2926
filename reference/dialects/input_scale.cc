// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/input_scale.h"

#include <algorithm>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr std::string_view kScaledInput = "WeightTensorWithLinearActivationScaleMetadata";
constexpr std::string_view kStaticInput = "WeightTensorWithLinearActivationQuantizationMetadata";
constexpr std::string_view kWeightInside = "original_weight_tensor";

// Int4OpaqueTensor's path for int8 activations does not read act_pre_scale.
bool reads_pre_scale(const NamedTensor& tensor) {
  return tensor.type != "Int4OpaqueTensor" || tensor.attributes.value("act_mapping_type", Json()).is_null();
}

const Tensor* scale_of_input(const NamedTensor& tensor) {
  if (tensor.type == kScaledInput) return find_payload(tensor, "scale");
  return reads_pre_scale(tensor) ? find_payload(tensor, "act_pre_scale") : nullptr;
}

}  // namespace

std::optional<InputScale> input_scale(const NamedTensor& tensor) {
  const Tensor* scale = scale_of_input(tensor);
  if (scale == nullptr) return std::nullopt;
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool one_a_column =
      scale->numel() == columns && !scale->shape.empty() && scale->shape.back() == columns;
  InputScale found;
  if (!is_float(scale->dtype) || (scale->numel() != 1 && !one_a_column)) {
    found.misfit = "the scale of its x is " + std::string(dtype_name(scale->dtype)) + " " +
                   shape_text(scale->shape) + ", and the weight has " + std::to_string(columns) + " columns";
    return found;
  }
  found.factors = load_doubles(scale->dtype, row_major_bytes(*scale));
  if (tensor.type == kScaledInput)
    for (double& factor : found.factors) factor = 1 / factor;
  return found;
}

void scale_columns(std::vector<double>& values, const std::vector<double>& factors) {
  for (size_t i = 0; i < values.size(); ++i) values[i] *= factors[i % factors.size()];
}

std::vector<std::string> parts_for_input(const NamedTensor& tensor) {
  const bool wraps = tensor.type == kScaledInput || tensor.type == kStaticInput;
  std::vector<std::string> names;
  for (const InnerTensor& part : tensor.payload) {
    const std::string own = part.name.substr(part.name.rfind('.') + 1);
    const bool of_coded = tensor.coded != nullptr && (own.starts_with("input_") || own == "activation_scale");
    const bool of_wrapper = wraps && (part.name == "scale" || part.name == "zero_point");
    if (of_wrapper || of_coded || own.starts_with("act_") || own.starts_with("_act_") ||
        own.starts_with("output_act_"))
      names.push_back(part.name);
  }
  return names;
}

std::optional<NamedTensor> weight_behind_input_scale(const NamedTensor& tensor) {
  if (tensor.type != kScaledInput) return std::nullopt;
  const std::string name(kWeightInside), prefix = name + ".";
  NamedTensor inside;
  inside.name = tensor.name;
  inside.shape = tensor.shape;
  inside.dtype = tensor.dtype;
  const Json type = tensor.attributes.value(name, Json());
  inside.type = type.is_object() ? type.value("_type", "") : "Tensor";
  for (const auto& [key, value] : tensor.attributes.items())
    if (key.starts_with(prefix)) inside.attributes[key.substr(prefix.size())] = value;
  for (const InnerTensor& part : tensor.payload) {
    if (part.name == name) inside.payload.push_back({"data", part.tensor});
    if (part.name.starts_with(prefix))
      inside.payload.push_back({part.name.substr(prefix.size()), part.tensor});
  }
  recognize_scheme(inside);
  return inside;
}

}  // namespace qcts
