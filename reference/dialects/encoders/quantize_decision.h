// SPDX-License-Identifier: BSD-3-Clause
// Decides which tensors of a float checkpoint to quantize.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/dialects/encoders/linear_layers.h"

namespace qcts {

struct QuantizeRules {
  // Globs. Each may match the whole name, "weight", the module's path, or the module's last word.
  std::vector<std::string> include, exclude;
  // Names of the tensors that are quantized in another checkpoint. If has_like is true, an empty list selects
  // none.
  std::vector<std::string> like;
  bool has_like = false;
  // Why each of these tensors stays float when neither `include` nor `like` is given, keyed by tensor name.
  std::unordered_map<std::string, std::string> kept;
};

struct QuantizeDecision {
  const NamedTensor* tensor = nullptr;
  bool asked = false;  // true if selected for quantization
  std::string reason;  // the reason why it is not quantized; empty if it can be
};

// Returns one decision per tensor, in order. `cls` is the class that will hold the quantized tensors, if any.
// By default selects the weights of Linear layers (linear_layers.h).
// With include or like, selects only the tensors that they name. Exclude always wins.
std::vector<QuantizeDecision> quantize_decisions(const Checkpoint& checkpoint, const Scheme& scheme,
                                                 Layout layout, const QuantizeRules& rules,
                                                 Policy activation = kWeightOnly,
                                                 const TorchaoClass* cls = nullptr);

// Names the source of the choice of layers:
// "architecture gpt2", "names and shapes (no config.json)", "--include".
std::string basis_of_choice(const Checkpoint& checkpoint, const QuantizeRules& rules);

// Returns the dtype in which a scheme takes a float weight.
// TinyQ's W8A32 casts to float32 first; all other schemes keep the dtype.
DType recipe_dtype(const Scheme& scheme, DType weight);

// Returns true if a tensor is quantized by default.
// These tensors are the floating-point weights of Linear layers.
bool is_candidate(const NamedTensor& tensor, const LinearLayers& layers);

// Returns the globs that match no tensor, and the names of `like` that the checkpoint lacks.
std::vector<std::string> unmatched(const Checkpoint& checkpoint, const QuantizeRules& rules);

// Returns, as globs, the names in quantization_config.modules_to_not_convert of a config.json.
std::vector<std::string> excluded_by_config(const nlohmann::ordered_json& config);

}  // namespace qcts
