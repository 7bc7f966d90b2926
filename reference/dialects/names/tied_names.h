// SPDX-License-Identifier: BSD-3-Clause
// Weights that a model holds under several names, and that save_pretrained of transformers stores once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace qcts {

struct TiedName {
  std::string target, source;
};

// Returns tie_word_embeddings of a configuration, or else of its text model; nullopt if neither says so.
std::optional<bool> says_tied(const nlohmann::ordered_json& config);

// Returns the pairs of an output embedding and an embedding, or of their biases, as models of transformers
// tie them, for a model whose class is not known.
std::vector<TiedName> usual_ties(std::span<const std::string> targets, std::span<const std::string> sources);

// For each tied name, the stored names that have its values. A weight may be tied to one that is tied itself.
class TiedTwins {
 public:
  TiedTwins(std::span<const TiedName> ties, const std::set<std::string>& stored);
  // Returns nullptr if nothing else that is stored has the values of `name`.
  const std::string* twin_of(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::string>> twins_;
};

// Returns true if `name` is `ending` or ends in '.' and `ending`.
bool has_ending(std::string_view name, std::string_view ending);

}  // namespace qcts
