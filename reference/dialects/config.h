// SPDX-License-Identifier: BSD-3-Clause
// Reads config.json of a directory written by transformers, and checks the tensors against it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// quantization_config with quant_method "torchao" in both forms: quant_type as a string with
// quant_type_kwargs, or as an object {"default": {"_type", "_version", "_data"}} (torchao 0.18.0,
// core/config.py, config_to_dict).
struct TorchAoQuantization {
  std::string name;  // "int8_weight_only", "Int8WeightOnlyConfig"
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::vector<std::string> not_converted;  // modules_to_not_convert
};

// Reads the configuration; nullopt when it does not name torchao. Throws Refused (SubclassSchema) when it has
// neither form.
std::optional<TorchAoQuantization> torchao_quantization(const nlohmann::ordered_json& config);
// Returns "dtype" (transformers 5) or "torch_dtype" (4); nullopt when absent or unknown.
std::optional<DType> config_dtype(const nlohmann::ordered_json& config);

// Checks the tensors against config.json. A contradicting class, group or module is a finding (lenient: a
// warning); a different dtype is a warning.
void check_config(Checkpoint& checkpoint, const OpenOptions& options);

}  // namespace qcts
