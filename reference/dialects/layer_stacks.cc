// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/layer_stacks.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/directory/directory_files.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLayers = 10000;

struct LayerStack {
  std::map<size_t, size_t> tensors;            // by the number of the layer
  std::map<std::string_view, size_t> endings;  // "mlp.up_proj.weight" -> layers that have it

  size_t end() const { return tensors.rbegin()->first + 1; }
  // Transformers' layers have more; sequences of convolutions and activations have few and are full of gaps.
  bool holds_layers() const {
    constexpr size_t kFewest = 4;
    size_t sum = 0;
    for (const auto& [layer, count] : tensors) sum += count;
    return tensors.size() > 1 && sum >= kFewest * tensors.size();
  }
};
using LayerStacks = std::map<std::string_view, LayerStack>;

struct NumberedPart {
  std::string_view prefix, ending;
  size_t layer = 0;
};

bool is_number(std::string_view word) {
  constexpr size_t kMostDigits = 5;
  return !word.empty() && word.size() <= kMostDigits && word.find_first_not_of("0123456789") == word.npos;
}

// Splits a name at the number of an expert: {"model.layers.0.mlp.experts", "up_proj.weight", 3}.
std::optional<NumberedPart> expert_part(std::string_view name) {
  constexpr std::string_view kExperts = "experts.";
  const size_t at = name.rfind(kExperts);
  if (at == name.npos || (at > 0 && name[at - 1] != '.')) return std::nullopt;
  const size_t first = at + kExperts.size(), next = name.find('.', first);
  if (next == name.npos || !is_number(name.substr(first, next - first))) return std::nullopt;
  return NumberedPart{name.substr(0, first - 1), name.substr(next + 1),
                      std::stoul(std::string(name.substr(first, next - first)))};
}

// Splits a name at its first number that is neither first nor last: {"model.layers", "mlp.up_proj.weight",
// 3}.
std::optional<NumberedPart> numbered_part(std::string_view name) {
  for (size_t dot = name.find('.'); dot != name.npos;) {
    const size_t first = dot + 1, next = name.find('.', first);
    if (next == name.npos) return std::nullopt;
    const std::string_view word = name.substr(first, next - first);
    if (is_number(word))
      return NumberedPart{name.substr(0, dot), name.substr(next + 1), std::stoul(std::string(word))};
    dot = next;
  }
  return std::nullopt;
}

bool is_of_adapter(std::string_view name) {
  return name.starts_with("base_model.") || name.find(".lora_") != name.npos;
}

LayerStacks stacks_of(const Checkpoint& checkpoint) {
  LayerStacks stacks;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (is_of_adapter(tensor.name)) return {};
    const std::optional<NumberedPart> part = numbered_part(tensor.name);
    if (!part || part->layer >= kMostLayers) continue;
    LayerStack& stack = stacks[part->prefix];
    ++stack.tensors[part->layer];
    ++stack.endings[part->ending];
  }
  std::erase_if(stacks, [](const auto& stack) { return !stack.second.holds_layers(); });
  return stacks;
}

struct SaidLayers {
  std::string words;  // "config.json says num_hidden_layers 4"
  size_t count = 0;
  size_t more = 0;  // layers after these, which predict further tokens
};

// The parts of config.json that may describe the language model.
std::vector<const Json*> described_parts(const Json& config) {
  std::vector<const Json*> parts;
  if (!config.is_object() || config.contains("block_configs")) return parts;
  parts.push_back(&config);
  for (const char* key : {"text_config", "llm_config"})
    if (config.contains(key) && config[key].is_object()) parts.push_back(&config[key]);
  return parts;
}

// The first of the keys that says a number of layers or experts.
std::optional<SaidLayers> said_by(const Json& part, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = part.find(key);
    if (found == part.end() || !found->is_number_unsigned()) continue;
    const auto count = found->get<uint64_t>();
    if (count < 2 || count > kMostLayers) return std::nullopt;
    return SaidLayers{"config.json says " + std::string(key) + " " + std::to_string(count), count, 0};
  }
  return std::nullopt;
}

std::vector<SaidLayers> said_in_config(const Json& config) {
  std::vector<SaidLayers> said;
  for (const Json* part : described_parts(config)) {
    std::optional<SaidLayers> found =
        said_by(*part, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
    if (!found) continue;
    const Json further = part->value("num_nextn_predict_layers", Json());
    if (further.is_number_unsigned()) found->more = further.get<size_t>();
    said.push_back(std::move(*found));
  }
  return said;
}

// Deci's layers may be empty, and block_count counts them.
std::vector<SaidLayers> said_in_gguf(const Checkpoint& checkpoint) {
  const Gguf& file = *checkpoint.ggufs.front();
  const GgufValue* parts = find_gguf_value(file, "split.count");
  if (parts != nullptr && checkpoint.ggufs.size() == 1 && gguf_integer(*parts) != 1) return {};
  const GgufValue* architecture = find_gguf_value(file, "general.architecture");
  const std::string name = architecture ? gguf_value_text(*architecture) : "";
  const GgufValue* value = find_gguf_value(file, name + ".block_count");
  const std::optional<int64_t> count = value ? gguf_integer(*value) : std::nullopt;
  if (!count || *count < 2 || *count > static_cast<int64_t>(kMostLayers) || name == "deci") return {};
  return {{name + ".block_count is " + std::to_string(*count), static_cast<size_t>(*count), 0}};
}

std::string layer_name(std::string_view prefix, size_t layer) {
  return std::string(prefix) + "." + std::to_string(layer);
}

class LayerReport {
 public:
  LayerReport(Checkpoint& checkpoint, const OpenOptions& options)
      : checkpoint_(checkpoint), lenient_(options.lenient) {}

  void report(const LayerStacks& stacks, const std::vector<SaidLayers>& said) {
    for (const SaidLayers& one : said) {
      const std::pair<const std::string_view, LayerStack>* longest = nullptr;
      bool complete = false;
      for (const auto& stack : stacks) {
        complete = complete || stack.second.end() >= one.count;
        if (longest == nullptr || stack.second.tensors.size() > longest->second.tensors.size())
          longest = &stack;
        const bool is_said = stack.second.end() == one.count || stack.second.end() == one.count + one.more;
        if (is_said && reported_.insert(stack.first).second)
          report_stack(stack.first, stack.second, one.words);
      }
      if (longest != nullptr && !complete)
        checkpoint_.warnings.push_back(one.words + ", but " + std::string(longest->first) +
                                       " ends with layer " + std::to_string(longest->second.end() - 1));
    }
  }

 private:
  void report_stack(std::string_view prefix, const LayerStack& stack, const std::string& said) {
    std::vector<size_t> lost;
    for (size_t layer = 0; layer < stack.end(); ++layer)
      if (!stack.tensors.contains(layer)) lost.push_back(layer);
    if (lost.empty()) return note_gaps(prefix, stack);
    std::string text = said + ", but there is no tensor of " + layer_name(prefix, lost[0]) +
                       (lost.size() > 1 ? " and " + std::to_string(lost.size() - 1) + " more layers" : "");
    if (lenient_)
      checkpoint_.warnings.push_back(std::move(text));
    else
      checkpoint_.findings.push_back({CheckpointFinding::Kind::contradiction, "", std::move(text)});
  }

  // The first and last layers of many models are unlike the others.
  void note_gaps(std::string_view prefix, const LayerStack& stack) {
    constexpr size_t kFewest = 4;
    const size_t layers = stack.tensors.size();
    if (layers < kFewest) return;
    std::map<size_t, std::vector<std::string_view>> lacking;  // by layer
    std::set<std::string_view> all_but_one;
    for (const auto& [ending, count] : stack.endings)
      if (count + 1 == layers) all_but_one.insert(ending);
    if (all_but_one.empty()) return;
    std::map<std::string_view, std::vector<bool>> held;
    std::vector<bool> odd(layers);  // a layer with a tensor that no other has is of another kind
    for (const NamedTensor& tensor : checkpoint_.tensors) {
      const std::optional<NumberedPart> part = numbered_part(tensor.name);
      if (!part || part->prefix != prefix || part->layer >= layers) continue;
      if (stack.endings.at(part->ending) == 1) odd[part->layer] = true;
      if (!all_but_one.contains(part->ending)) continue;
      held.try_emplace(part->ending, layers).first->second[part->layer] = true;
    }
    for (const auto& [ending, layers_with] : held)
      lacking[static_cast<size_t>(std::ranges::find(layers_with, false) - layers_with.begin())].push_back(
          ending);
    for (const auto& [layer, endings] : lacking) {
      if (layer == 0 || layer + 1 >= layers || odd[layer]) continue;
      checkpoint_.warnings.push_back(
          layer_name(prefix, layer) + " lacks " + std::string(endings[0]) +
          (endings.size() > 1 ? " and " + std::to_string(endings.size() - 1) + " more" : "") +
          ", which all other layers have");
    }
  }

  Checkpoint& checkpoint_;
  const bool lenient_;
  std::set<std::string_view> reported_;
};

// Each module has all experts, or its own number of them, which config.json does not say.
void report_lost_experts(Checkpoint& checkpoint, bool lenient) {
  std::optional<SaidLayers> said;
  for (const Json* part : described_parts(checkpoint.config))
    if (!said)
      said = said_by(*part, {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
  if (!said) return;
  LayerStacks stacks;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const std::optional<NumberedPart> part = expert_part(tensor.name);
    if (!part || part->layer >= kMostLayers) continue;
    LayerStack& stack = stacks[part->prefix];
    ++stack.tensors[part->layer];
    ++stack.endings[part->ending];
  }
  for (const auto& [prefix, stack] : stacks) {
    if (stack.end() > said->count) continue;
    size_t lost = 0;
    while (stack.tensors.contains(lost)) ++lost;
    if (lost < said->count) {
      std::string text = said->words + ", but there is no tensor of " + layer_name(prefix, lost);
      if (lenient)
        checkpoint.warnings.push_back(std::move(text));
      else
        checkpoint.findings.push_back({CheckpointFinding::Kind::contradiction, "", std::move(text)});
      continue;
    }
    for (const auto& [ending, count] : stack.endings)  // calibration may leave an expert in floats
      if (count + 1 == said->count && ending.ends_with("weight"))
        checkpoint.warnings.push_back("an expert of " + std::string(prefix) + " lacks " +
                                      std::string(ending) + ", which all others have");
  }
}

}  // namespace

void report_lost_layers(Checkpoint& checkpoint, const OpenOptions& options) {
  const bool is_part = checkpoint.format != Format::directory && checkpoint.ggufs.size() < 2 &&
                       names_one_of_several(checkpoint.path.filename().string());
  if (is_part || !checkpoint.left_out.empty()) return;
  report_lost_experts(checkpoint, options.lenient);
  const std::vector<SaidLayers> said =
      checkpoint.ggufs.empty() ? said_in_config(checkpoint.config) : said_in_gguf(checkpoint);
  if (said.empty()) return;
  LayerReport(checkpoint, options).report(stacks_of(checkpoint), said);
}

}  // namespace qcts
