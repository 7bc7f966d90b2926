// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a written weight, as transformers puts it into config.json: its TorchAoConfig around
// a configuration of torchao, or around the name of one of torchao's first recipes.
// The source is torchao/core/config.py, config_to_dict.
// Objects are sorted by key, as json.dumps(sort_keys=True) writes them.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "reference/dialects/encoders/encode.h"

namespace qcts {

// Returns {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {...}} for a class of torchao 0.18.0, as
// transformers 5.24.0 writes it.
// For a class of the first generation, returns what transformers 4.57.1 loads with torchao 0.10.0 and later:
// {"quant_type": "int8_weight_only", "quant_type_kwargs": {}} for the recipes that it knows by name, and else
// a configuration of _version 1 with those of its fields that all these versions have. Returns nullopt if
// torchao has no configuration that makes this class in the layout under the policy. Returns nullopt too if
// transformers does not accept the configuration.
std::optional<nlohmann::json> torchao_config(const TorchaoClass& cls, const Scheme& scheme, Layout layout,
                                             Policy activation);

// Returns the quantization_config of a config.json around a configuration.
// `not_converted` lists the modules that stay float; null: transformers chooses them.
nlohmann::json quantization_config(const nlohmann::json& config, const nlohmann::json& not_converted);

}  // namespace qcts
