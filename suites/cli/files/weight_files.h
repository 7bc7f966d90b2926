// SPDX-License-Identifier: BSD-3-Clause
// Spreads a model over weight files and names them, as transformers 5.24.0 does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace qcts::cli {

// An item that a file cannot split: an entry of safetensors, or a tensor of a pickled state dict.
struct WeightItem {
  std::string key;    // name in the index
  std::string owner;  // name of its tensor
  uint64_t bytes = 0;
};
using Shards = std::vector<std::vector<size_t>>;  // indices of items

// Fills files up to max_bytes. A larger item gets its own file.
// huggingface_hub does this in serialization/_base.py, split_state_dict_into_shards_factory.
// transformers defines the order (core_model_loading.py, dot_natural_key).
// The order is by the words between dots, numbers before text, and numbers at the end of a word by value.
Shards cut_by_size(const std::vector<WeightItem>& items, uint64_t max_bytes);

// Parses a size: "5GB" is 5e9 bytes, "5GiB" is 5 * 2^30, and a plain number is in bytes. Throws UsageError
// for anything else and for 0.
uint64_t size_of_words(const std::string& words);

// Returns "model.safetensors", or "pytorch_model-00001-of-00002.bin" for the first of two pickled files.
std::string weight_file(size_t index, size_t count, bool safetensors);

}  // namespace qcts::cli
