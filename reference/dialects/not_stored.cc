// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/not_stored.h"

#include <algorithm>
#include <set>

#include "reference/dialects/names/model_names.h"

namespace qcts {
namespace {

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
  const TiedTwins twins(has_config ? model.tied(all) : usual, stored);
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
