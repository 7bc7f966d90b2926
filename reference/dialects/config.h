// SPDX-License-Identifier: BSD-3-Clause
// config.json of a directory that transformers wrote: what it says of the tensors beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// quantization_config with quant_method "torchao", in both spellings: quant_type as a string with
// quant_type_kwargs, or as an object {"default": {"_type", "_version", "_data"}} (torchao 0.18.0,
// core/config.py, config_to_dict).
struct TorchAoQuantization {
  std::string name;  // "int8_weight_only", "Int8WeightOnlyConfig"
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::vector<std::string> not_converted;  // modules_to_not_convert
};

// nullopt: no torchao in it. Refuses SubclassSchema for a quantization_config that is neither spelling.
std::optional<TorchAoQuantization> torchao_quantization(const nlohmann::ordered_json& config);
// "dtype" (transformers 5), "torch_dtype" (4); nullopt when absent or no dtype.
std::optional<DType> config_dtype(const nlohmann::ordered_json& config);

// Holds the tensors against config.json: a class, a group or a module that it rules out is a contradiction
// (lenient: a warning); tensors in another dtype than it names are a warning.
void check_config(Checkpoint& checkpoint, const OpenOptions& options);

}  // namespace qcts
