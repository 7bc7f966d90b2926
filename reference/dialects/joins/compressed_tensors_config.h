// SPDX-License-Identifier: BSD-3-Clause
// The configuration that compressed-tensors writes into config.json (compressed-tensors 0.20.0,
// quantization/quant_config.py and quant_args.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/joins/named_modules.h"
#include "reference/formats/tensor.h"

namespace qcts {

enum class CompressedFormat : uint8_t {
  packed_integers,  // pack-quantized
  bytes,            // int-quantized, float-quantized, naive-quantized
  nvfp4,
  mxfp4,
  mxfp6,
  mxfp8,
};
enum class CompressedStrategy : uint8_t { tensor, channel, group, block };

// How the weights of one config group are stored.
struct CompressedRecipe {
  CompressedFormat format = CompressedFormat::packed_integers;
  CompressedStrategy strategy = CompressedStrategy::channel;
  int bits = 0;
  bool is_float = false;
  bool symmetric = true;
  int64_t group_size = 0;                     // of strategy `group`
  int64_t block_rows = 0, block_columns = 0;  // of strategy `block`
  bool group_order = false;                   // columns are not in order, and weight_g_idx names their groups
  std::string_view part_of_x = {};            // input_scale, if config.json calls the scales of x static
  std::optional<CodePacking> packing = {};    // of the version that config.json names
  bool operator==(const CompressedRecipe&) const = default;
};

// Returns why no weight of the configuration is read, or an empty string: Hadamard transforms, sparsity.
std::string refuse_compressed(const nlohmann::ordered_json& config);
// Returns the recipe of the one config group whose targets name the module.
// A target is the name of a module, "re:" and a regular expression, or a class, in this order.
// Throws NotJoined for a module that no group or several unlike groups target, or that `ignore` lists.
// `words`: the targets that name the module after a prefix, or by its own name (named_modules.h).
CompressedRecipe compressed_recipe(const std::string& module, const std::vector<std::string>& words,
                                   const nlohmann::ordered_json& config);
// Returns the names and patterns among the targets.
std::vector<ModuleWord> compressed_words(const nlohmann::ordered_json& config);
// Returns a name such as "ct_int4_g128_sym".
std::string compressed_scheme(const CompressedRecipe& recipe);

bool is_wide_float(DType dtype);

}  // namespace qcts
