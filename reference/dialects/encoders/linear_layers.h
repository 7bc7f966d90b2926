// SPDX-License-Identifier: BSD-3-Clause
// Tells the weights of nn.Linear from other 2-D tensors of a float checkpoint.
// A state dict does not record the classes of modules.
// If linear_layers.inc lists the architecture in config.json, the list decides.
// Otherwise names and shapes decide.
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

  // Returns "" for the weight of a Linear. Otherwise returns the reason why the tensor is not such a weight:
  // "Conv1D of gpt2", "named like a norm".
  std::string why_not(const NamedTensor& tensor) const;
  // Returns true for the projection inside nn.MultiheadAttention.
  // The projection is a subclass of Linear that torchao's quantize_ skips.
  bool is_attention_projection(const NamedTensor& tensor) const;
  // Names the source of the decision: "architecture gpt2" or "names and shapes (no config.json)".
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
  // Last words of the names of modules whose weight is [in, out].
  std::set<std::string, std::less<>> transposed_;
};

}  // namespace qcts
