// SPDX-License-Identifier: BSD-3-Clause
// Tells the weights of nn.Linear from other 2-D tensors of a float checkpoint. A state dict has no classes of
// modules: config.json's architecture decides where linear_layers.inc lists it; otherwise names and shapes
// do.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Returns the path of the module that holds a tensor: "model.fc" for "model.fc.weight", "" for "weight".
std::string module_path(const std::string& name);

class LinearLayers {
 public:
  explicit LinearLayers(const Checkpoint& checkpoint);

  // Returns "" for the weight of a Linear, and otherwise why it is none: "Conv1D of gpt2", "named like a
  // norm".
  std::string why_not(const NamedTensor& tensor) const;
  // Is it the projection inside nn.MultiheadAttention, a subclass of Linear that torchao's quantize_ leaves?
  bool is_attention_projection(const NamedTensor& tensor) const;
  // Says what decides: "architecture gpt2", "names and shapes (no config.json)".
  const std::string& basis() const { return basis_; }

 private:
  struct Rule {
    std::string architecture;
    std::vector<std::string> modules;  // globs
    std::string module_class;
  };
  void read_architectures(const nlohmann::ordered_json& config);
  std::string transposed_class(const std::string& module, const std::vector<int64_t>& shape) const;

  std::vector<Rule> rules_;
  std::string basis_;
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes_;
  std::set<std::string, std::less<>> transposed_;  // last words of modules whose weight is [in, out]
};

}  // namespace qcts
