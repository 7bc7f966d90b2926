// SPDX-License-Identifier: BSD-3-Clause
// The quantization_config of a folder whose weights change their classes.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/config.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/linear_layers.h"
#include "reference/dialects/encoders/quantize_decision.h"
#include "reference/dialects/encoders/torchao_config.h"
#include "reference/dialects/names/model_names.h"
#include "suites/base/run_error.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/convert_today.h"
#include "suites/cli/files/model_config.h"

namespace qcts::cli {
namespace {

using Config = nlohmann::ordered_json;
using SortedJson = nlohmann::json;

// The configuration that makes a tensor of OUT, by its scheme.
SortedJson config_of_tensor(const NamedTensor& tensor, const SchemeTensor* made) {
  const Scheme* scheme = made ? made->scheme : find_scheme(tensor.scheme);
  const std::optional<Layout> layout = made ? made->layout : tensor.layout;
  const Policy activation = made ? made->activation : tensor.activation;
  const TorchaoClass* cls =
      scheme && layout ? torchao_class(*scheme, *layout, activation, write_dialects().front()) : nullptr;
  const std::optional<SortedJson> config =
      cls ? torchao_config(*cls, *scheme, *layout, activation) : std::nullopt;
  if (config) return *config;
  throw Failure(
      tensor.name + ": transformers has no configuration for " +
      (scheme ? std::string(scheme->name()) + " under the policy '" + std::string(activation.name()) + "'"
              : "this " + tensor.type) +
      ": convert the weight files one by one");
}

// As torchao's config_to_dict: every module with its own configuration.
SortedJson config_by_module(const std::map<std::string, SortedJson>& modules) {
  const SortedJson table = modules;
  return {{"_type", "FqnToConfig"},
          {"_version", 1},
          {"_data", {{"fqn_to_config", table}, {"module_fqn_to_config", table}}}};
}

std::vector<MemoryNames> all_memory_names(const Checkpoint& checkpoint) {
  std::vector<std::string> on_disk;
  for (const NamedTensor& tensor : checkpoint.tensors) on_disk.push_back(tensor.name);
  return memory_names(checkpoint.config, on_disk);
}

SortedJson config_of_classes(const Checkpoint& checkpoint, const TodaysTensors& today,
                             const std::vector<MemoryNames>& names) {
  std::map<std::string, SortedJson> modules;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i)
    if (!is_plain(checkpoint.tensors[i]))
      modules.emplace(module_path(names[i].names[0]),
                      config_of_tensor(checkpoint.tensors[i], today.by_index[i]));
  const SortedJson& first = modules.begin()->second;
  for (const auto& [module, config] : modules)
    if (config != first) return config_by_module(modules);
  return first;
}

// For a config.json that does not list them; null for none.
SortedJson left_float(const Checkpoint& checkpoint) {
  const std::vector<std::string> modules = float_layers(checkpoint);
  return modules.empty() ? SortedJson() : SortedJson(modules);
}

// The part of config.json that a path such as "text_config" names.
Config& part_at(Config& config, const std::string& path) {
  Config* part = &config;
  for (size_t first = 0; first < path.size();) {
    const size_t end = std::min(path.find('.', first), path.size());
    part = &(*part)[path.substr(first, end - first)];
    first = end + 1;
  }
  return *part;
}

}  // namespace

std::vector<std::string> float_layers(const Checkpoint& checkpoint) {
  const std::vector<MemoryNames> names = all_memory_names(checkpoint);
  const LinearLayers layers(checkpoint);
  std::vector<std::string> modules;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i)
    if (is_plain(checkpoint.tensors[i]) && is_candidate(checkpoint.tensors[i], layers))
      modules.push_back(module_path(names[i].names[0]));
  if (checkpoint.config.is_object() &&
      checkpoint.config.value("tie_word_embeddings", Config()) == Config(true))
    modules.push_back("lm_head");
  return modules;
}

Config todays_config(const Checkpoint& checkpoint, const TodaysTensors& today) {
  if (!checkpoint.config.is_object() || today.made.empty()) return nullptr;
  const std::vector<MemoryNames> names = all_memory_names(checkpoint);
  const SortedJson classes = config_of_classes(checkpoint, today, names);
  Config config = checkpoint.config;
  const std::optional<TorchAoQuantization> said = torchao_quantization(config);
  Config& part = part_at(config, said ? said->part : "");
  SortedJson whole = quantization_config(classes, said ? SortedJson() : left_float(checkpoint));
  if (said)
    for (const auto& [key, value] : part["quantization_config"].items())
      if (key != "quant_type" && key != "quant_type_kwargs") whole[key] = value;
  part = with_quantization(part, whole);
  return config;
}

}  // namespace qcts::cli
