// SPDX-License-Identifier: BSD-3-Clause
// Writes a model's folder again: the same safetensors shards as IN, their index, config.json, and the other
// files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/encoders/encode.h"

namespace qcts::cli {

// The indices of the tensors in each weight file of IN. A weight whose parts are in several files belongs to
// the file of its first part. Files without a tensor are left out; if IN is a file, it is the only weight
// file.
std::vector<std::vector<size_t>> tensors_by_file(const Checkpoint& checkpoint);

// Returns config.json, or one of its parts, without what says how weights are quantized.
nlohmann::ordered_json without_quantization(const nlohmann::ordered_json& config);

// Returns the entries of a weight file that holds the tensors of these indices.
using EncodeTensors = std::function<EncodedSafetensors(const std::vector<size_t>& tensors)>;
// Makes the folder and fills it. `config` replaces config.json; null: there is none.
// Files that say how IN is quantized are left out: quantize_config.json and the like.
// Throws Failure if two tensors would be written to one entry.
void write_model_folder(const Checkpoint& checkpoint, const nlohmann::ordered_json& config,
                        const EncodeTensors& encode, const std::filesystem::path& folder);

}  // namespace qcts::cli
