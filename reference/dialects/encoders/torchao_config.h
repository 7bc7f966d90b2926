// SPDX-License-Identifier: BSD-3-Clause
// The configuration that makes a quantized weight, as transformers 5.24.0 writes it into config.json.
// config.json has transformers' TorchAoConfig around a configuration of torchao 0.18.0.
// The source is torchao/core/config.py, config_to_dict.
// Objects are sorted by key, as json.dumps(sort_keys=True) writes them.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "reference/schemes/scheme.h"

namespace qcts {

// Returns {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {...}}.
// For the first recipes, returns {"quant_type": "int8_weight_only", "quant_type_kwargs": {}}, as transformers
// 4.57.1 writes them.
// Returns nullopt if torchao has no configuration for the scheme in the layout under the policy.
// Returns nullopt too if transformers does not accept the configuration.
std::optional<nlohmann::json> torchao_config(const Scheme& scheme, Layout layout, Policy activation);

// Returns the quantization_config of a config.json around a configuration.
// `not_converted` lists the modules that stay float; null: transformers chooses them.
nlohmann::json quantization_config(const nlohmann::json& config, const nlohmann::json& not_converted);

}  // namespace qcts
