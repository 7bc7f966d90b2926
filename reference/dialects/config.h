// SPDX-License-Identifier: BSD-3-Clause
// Reads config.json of a directory written by transformers, and checks the tensors against it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// A quantization_config whose quant_method is "torchao" (torchao 0.18.0, core/config.py, config_to_dict).
// The configuration has one of two forms. In one, quant_type is a string with quant_type_kwargs.
// In the other, quant_type is an object {"default": {"_type", "_version", "_data"}}.
struct TorchAoQuantization {
  std::string name;                // "int8_weight_only", "Int8WeightOnlyConfig"
  std::optional<int64_t> version;  // _version, 1 where an object has none; nullopt for a string
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::vector<std::string> not_converted;  // the value of modules_to_not_convert
  std::string part;                        // "text_config": the part of config.json that holds it
  // False for a part that transformers 5.24 ignores: it says nothing about the classes of tensors.
  bool is_used = true;
};

// Reads the configuration at the top of config.json or in a part for one of several models. Transformers 5.24
// looks in decoder, generator and text_config (quantizers/auto.py, get_hf_quantizer; configuration_utils.py,
// get_text_config). Returns nullopt if no configuration names torchao.
// Throws Refused (SubclassSchema) if the configuration has neither form.
std::optional<TorchAoQuantization> torchao_quantization(const nlohmann::ordered_json& config);
// Returns "dtype" (transformers 5) or "torch_dtype" (transformers 4); nullopt if it is absent or unknown.
std::optional<DType> config_dtype(const nlohmann::ordered_json& config);

// Does a name that config.json lists, as in modules_to_not_convert, match a tensor, its module or a parent?
bool names_module(const std::string& word, const std::string& name);
// Returns true for a key of config.json that holds the configuration of one of several models: "text_config",
// "decoder".
bool names_part_of_model(std::string_view key);

// Checks the tensors against config.json.
// A class, block, dtype or module that contradicts it is a finding, or a warning if the options are lenient.
// A different dtype is always a warning.
void check_config(Checkpoint& checkpoint, const OpenOptions& options);

}  // namespace qcts
