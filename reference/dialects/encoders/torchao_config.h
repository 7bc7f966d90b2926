// SPDX-License-Identifier: BSD-3-Clause
// The configuration that makes a quantized weight, as transformers 5.24.0 writes it into config.json: its
// TorchAoConfig around a configuration of torchao 0.18.0 (torchao/core/config.py, config_to_dict). Objects
// are sorted by key, as json.dumps(sort_keys=True) writes them.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "reference/schemes/scheme.h"

namespace qcts {

// {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {...}}; for the first recipes, as transformers
// 4.57.1 writes them, {"quant_type": "int8_weight_only", "quant_type_kwargs": {}}. nullopt where torchao has
// none for the scheme in the layout under the policy, or transformers does not take it.
std::optional<nlohmann::json> torchao_config(const Scheme& scheme, Layout layout, Policy activation);

// config.json's quantization_config around a configuration. not_converted: null (transformers chooses) or the
// modules that stay float.
nlohmann::json quantization_config(const nlohmann::json& config, const nlohmann::json& not_converted);

}  // namespace qcts
