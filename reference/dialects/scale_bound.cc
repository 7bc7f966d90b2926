// SPDX-License-Identifier: BSD-3-Clause
// Checks the arguments of to_fbgemm_fp8 (torchao 0.13.0, dtypes/fbgemm_fp8_tensor.py): activation_scale_ub, a
// number or None, and nothing else. pytorch/ao#2338 stores them as JSON of any kind.
#include <cmath>
#include <cstdlib>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

constexpr std::string_view kBound = "activation_scale_ub";
constexpr std::string_view kBoundedFunction = "torchao.dtypes.fbgemm_fp8_tensor.to_fbgemm_fp8";

// Is the whole text a number?
bool spells_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value) && value >= 0;
}

bool is_bound(const Json& value) {
  if (value.is_null()) return true;
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
}

}  // namespace

void check_scale_bounds(Checkpoint& checkpoint, const OpenOptions& options) {
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (data_name(tensor.attributes.value("input_quant_func", Json())) != kBoundedFunction) continue;
    const Json kwargs = tensor.attributes.value("quant_kwargs", Json());
    for (const auto& [key, value] : kwargs.items()) {
      if (key == kBound && is_bound(value)) continue;
      const std::string said = tensor.name + ": quant_kwargs has " + key + " " + value.dump() + ", but ";
      if (key != kBound || (value.is_string() && spells_number(value))) {
        checkpoint.warnings.push_back(said + (key == kBound
                                                  ? "it is a number or None"
                                                  : "to_fbgemm_fp8 takes only activation_scale_ub"));
        continue;
      }
      const std::string text = said + "it is a number that is not negative, or None";
      if (options.lenient)
        checkpoint.warnings.push_back(text);
      else
        checkpoint.findings.push_back({CheckpointFinding::Kind::contradiction, tensor.name, text});
    }
  }
}

}  // namespace qcts
