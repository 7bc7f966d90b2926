// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/not_stored.h"

#include <algorithm>
#include <map>
#include <set>

#include "reference/dialects/names/model_names.h"

namespace qcts {
namespace {

// For each tied name, the stored names that have its values. A weight may be tied to one that is tied itself.
class StoredTwins {
 public:
  StoredTwins(const std::vector<TiedName>& ties, const std::set<std::string>& stored) {
    std::map<std::string, std::vector<std::string>> groups;  // by source
    for (const TiedName& tie : ties) groups[tie.source].push_back(tie.target);
    for (auto& [source, targets] : groups) {
      targets.push_back(source);
      for (const std::string& name : targets)
        for (const std::string& other : targets)
          if (name != other && stored.contains(other)) twins_[name].push_back(other);
    }
  }
  // Returns nullptr if nothing stored has the values of `name`.
  const std::string* twin_of(const std::string& name) const {
    const auto found = twins_.find(name);
    return found == twins_.end() ? nullptr : &found->second.back();
  }

 private:
  std::map<std::string, std::vector<std::string>> twins_;
};

std::string finding_of(const NotStored& name, bool is_tie, bool has_config) {
  if (!name.missing.empty()) return name.name + ": listed and stored in part: " + name.missing;
  if (is_tie && has_config)
    return "config.json ties no weights, but " + name.name + " is listed and not stored";
  return name.name + ": listed in tensor_names and not stored";
}

}  // namespace

std::vector<std::string> names_in_memory(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (tensor.in_memory.empty())
      names.push_back(tensor.name);
    else
      names.insert(names.end(), tensor.in_memory.begin(), tensor.in_memory.end());
  return names;
}

bool is_about_not_stored(const Checkpoint& checkpoint, const CheckpointFinding& finding) {
  return !finding.tensor.empty() && std::ranges::find(checkpoint.left_out, finding.tensor,
                                                      &NotStored::name) != checkpoint.left_out.end();
}

void judge_not_stored(Checkpoint& checkpoint, const OpenOptions& options) {
  if (checkpoint.left_out.empty()) return;
  const std::vector<std::string> in_memory = names_in_memory(checkpoint);
  const std::set<std::string> stored(in_memory.begin(), in_memory.end());
  const bool has_config = checkpoint.config.is_object();
  std::vector<std::string> missing;
  for (const NotStored& name : checkpoint.left_out) missing.push_back(name.name);
  std::vector<std::string> all = in_memory;
  all.insert(all.end(), missing.begin(), missing.end());
  const ModelNames model(checkpoint.config);
  const std::vector<TiedName> usual = usual_ties(missing, in_memory);
  const StoredTwins twins(has_config ? model.tied(all) : usual, stored);
  for (const NotStored& name : checkpoint.left_out) {
    const std::string* twin = name.missing.empty() ? twins.twin_of(name.name) : nullptr;
    if (twin != nullptr) {
      checkpoint.warnings.push_back(
          name.name + ": listed and not stored, as transformers leaves out a weight that is tied (to " +
          *twin + ")");
      continue;
    }
    if (name.missing.empty() && model.is_never_saved(name.name)) {
      checkpoint.warnings.push_back(name.name + ": listed and not stored, as transformers never saves it");
      continue;
    }
    const bool is_tie = std::ranges::find(usual, name.name, &TiedName::target) != usual.end();
    std::string text = finding_of(name, is_tie, has_config && !model.ties_weights());
    if (options.lenient)
      checkpoint.warnings.push_back(std::move(text));
    else
      checkpoint.findings.push_back({CheckpointFinding::Kind::contradiction, name.name, std::move(text)});
  }
}

}  // namespace qcts
