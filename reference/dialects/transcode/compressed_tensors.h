// SPDX-License-Identifier: BSD-3-Clause
// Writes weights as compressed-tensors 0.20.0 does (joins/compressed_tensors.cc has the formats): integers as
// pack-quantized, float8_e4m3fn as float-quantized.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/transcode/grid_weight.h"

namespace qcts {

struct CompressedWeight {
  // A config group without its targets.
  nlohmann::ordered_json recipe;
  // The parts by the ending of their names: "weight_packed". The scales have the dtype of the dequantized
  // weight if it holds them all, and float32 otherwise: then compressed-tensors dequantizes to float32.
  std::vector<std::pair<std::string, Tensor>> parts;
  // The columns are not in order (weight_g_idx). compressed-tensors up to 0.12 reads this; 0.20 has removed
  // it.
  bool has_order = false;
};

// Throws std::invalid_argument, which names the first group that the format cannot hold.
CompressedWeight compressed_weight(const GridWeight& weight);

// Returns quantization_config for modules by their recipes. Every module is a target by its own name.
// `ignored` are the Linear layers that stay floats: vLLM needs them.
nlohmann::ordered_json compressed_config(const std::map<std::string, CompressedWeight*>& modules,
                                         const std::vector<std::string>& ignored);

}  // namespace qcts
