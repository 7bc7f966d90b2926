// SPDX-License-Identifier: BSD-3-Clause
// Which tensors of a float checkpoint are to be quantized. A state dict does not say which 2-D tensors belong
// to Linear layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct QuantizeRules {
  std::vector<std::string> include,
      exclude;  // globs; on the whole name, "weight", the module's path, or the module's last word
  std::vector<std::string> like;  // names that another checkpoint holds quantized; empty and has_like: none
  bool has_like = false;
};

struct QuantizeDecision {
  const NamedTensor* tensor = nullptr;
  bool asked = false;  // meant to be quantized
  std::string reason;  // why it stays as it is; empty when it can be quantized
};

// One entry a tensor, in order. Without include and like: 2-D float tensors named *.weight that are no
// embeddings by name. Exclude wins over everything; with include or like only what they name is asked for.
std::vector<QuantizeDecision> quantize_decisions(const Checkpoint& checkpoint, const Scheme& scheme,
                                                 Layout layout, const QuantizeRules& rules);

// The dtype in which a scheme takes a float weight: TinyQ's W8A32 casts to float32 first, all others keep it.
DType recipe_dtype(const Scheme& scheme, DType weight);

// Globs that match no tensor, and names of `like` that are not there.
std::vector<std::string> unmatched(const Checkpoint& checkpoint, const QuantizeRules& rules);

// Names in quantization_config.modules_to_not_convert of a config.json, as globs.
std::vector<std::string> excluded_by_config(const nlohmann::ordered_json& config);

}  // namespace qcts
