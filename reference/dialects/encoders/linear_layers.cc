// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/linear_layers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include <fnmatch.h>

namespace qcts {
namespace {

struct Architectures {
  std::string_view names;         // model_type of config.json, separated by spaces
  std::string_view modules;       // globs on a module's path, separated by spaces
  std::string_view module_class;  // what they are
};
constexpr Architectures kArchitectures[] = {
#define QCTS_ARCHITECTURES(names, modules, module_class) {names, modules, module_class},
#include "reference/dialects/encoders/linear_layers.inc"
#undef QCTS_ARCHITECTURES
};

std::vector<std::string> split(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> words_of(const std::string& path) {
  std::vector<std::string> words;
  std::istringstream stream(path);
  for (std::string word; std::getline(stream, word, '.');) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    words.push_back(std::move(word));
  }
  return words;
}

bool is_number(const std::string& word) {
  return std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); });
}

// Returns the last word that is not an index: "norms" of "layers.0.norms.1".
std::string own_word(const std::vector<std::string>& words) {
  for (auto word = words.rbegin(); word != words.rend(); ++word)
    if (!is_number(*word)) return *word;
  return "";
}

bool contains_any(const std::string& word, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return word.find(part) != word.npos; });
}

bool is_any(const std::string& word, std::initializer_list<std::string_view> known) {
  return std::ranges::find(known, word) != known.end();
}

bool names_linear(const std::string& word) {
  return contains_any(word, {"proj", "linear", "dense", "mapping", "mlp"}) || word.starts_with("lin") ||
         word.starts_with("fc") || word.ends_with("fc");
}

bool names_table(const std::string& word) {
  return is_any(word, {"wte", "wpe", "emb", "embs", "shared", "relative_attention_bias"}) ||
         contains_any(word, {"embed"}) || word.starts_with("emb_") || word.ends_with("_emb");
}

// nn.Embedding holds a 2-D "weight" too, and never a bias. A Linear may be in a module that embeds.
bool names_embedding(const std::vector<std::string>& words) {
  const std::string word = own_word(words);
  if (names_linear(word) || word == "embed_out" || word.starts_with("patch_embed")) return false;
  return std::ranges::any_of(words, names_table) || word.ends_with("_token") || word.ends_with("_tokens");
}

bool names_norm(std::string word) {
  while (!word.empty() && (std::isdigit(static_cast<unsigned char>(word.back())) || word.back() == '_'))
    word.pop_back();
  return word.ends_with("norm") || word.ends_with("norms") || is_any(word, {"ln", "ln_f", "bn"}) ||
         word.starts_with("ln_");
}

bool names_codes(const std::string& word) {
  return is_any(word, {"codebook", "codebooks", "codevectors", "lookup", "lookup_table", "table", "tables",
                       "centroids", "prototypes"}) ||
         word.ends_with("_codebook") || word.ends_with("_lookup") || word.ends_with("_table");
}

}  // namespace

std::string module_path(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

LinearLayers::LinearLayers(const Checkpoint& checkpoint) {
  for (const NamedTensor& tensor : checkpoint.tensors) shapes_.emplace(tensor.name, tensor.shape);
  read_architectures(checkpoint.config);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (tensor.shape.size() != 2 || tensor.shape[0] == tensor.shape[1]) continue;
    const std::string module = module_path(tensor.name);
    const auto bias = shapes_.find(module + ".bias");
    if (bias != shapes_.end() && bias->second == std::vector<int64_t>{tensor.shape[1]})
      transposed_.insert(module.substr(module.rfind('.') + 1));
  }
  // GPT-2's Conv1D modules; one of them is square.
  if (transposed_.contains("c_attn") || transposed_.contains("c_fc"))
    for (const char* word : {"c_attn", "c_proj", "c_fc", "q_attn"}) transposed_.insert(word);
}

void LinearLayers::read_architectures(const nlohmann::ordered_json& config) {
  std::vector<std::string> types;
  const auto add = [&](const nlohmann::ordered_json& part) {
    if (part.is_object() && part.contains("model_type") && part["model_type"].is_string())
      types.push_back(part["model_type"]);
  };
  add(config);
  if (config.is_object())
    for (const auto& [key, part] : config.items()) add(part);  // "text_config", "vision_config"
  if (types.empty()) {
    basis_ = config.is_null() ? "names and shapes (no config.json)"
                              : "names and shapes (config.json has no model_type)";
    return;
  }
  std::string known, unknown;
  for (const std::string& type : types) {
    bool found = false;
    for (const Architectures& architectures : kArchitectures) {
      const std::vector<std::string> names = split(architectures.names);
      if (std::ranges::find(names, type) == names.end()) continue;
      found = true;
      rules_.push_back({type, split(architectures.modules), std::string(architectures.module_class)});
    }
    std::string& list = found ? known : unknown;
    list += (list.empty() ? "" : ", ") + type;
  }
  basis_ = !unknown.empty() ? "names and shapes (architecture " + unknown + " is not in the table)"
                            : "architecture " + known;
}

std::string LinearLayers::transposed_class(const std::string& module,
                                           const std::vector<int64_t>& shape) const {
  const auto bias = shapes_.find(module + ".bias");
  const bool has_bias = bias != shapes_.end();
  if (has_bias && bias->second.size() > 1) return "its bias is " + std::to_string(bias->second.size()) + "-D";
  const std::string word = module.substr(module.rfind('.') + 1);
  if (!transposed_.contains(word)) return "";
  // The same word may name a Linear elsewhere: its bias then has as many elements as the weight has rows.
  const bool fits_linear = has_bias && shape[0] != shape[1] && bias->second == std::vector<int64_t>{shape[0]};
  return fits_linear ? "" : "Conv1D: its bias belongs to the columns";
}

std::string LinearLayers::why_not(const NamedTensor& tensor) const {
  const std::string module = module_path(tensor.name);
  if (module.empty() || tensor.name.substr(module.size()) != ".weight") return "not named *.weight";
  const std::vector<std::string> words = words_of(module);
  const auto bias = shapes_.find(module + ".bias");
  const bool has_bias = bias != shapes_.end() && bias->second == std::vector<int64_t>{tensor.shape.at(0)};
  if (!has_bias && names_embedding(words)) return "named like an embedding";
  for (const Rule& rule : rules_)
    for (const std::string& glob : rule.modules)
      if (fnmatch(glob.c_str(), module.c_str(), 0) == 0)
        return rule.module_class + " of " + rule.architecture;
  if (names_norm(own_word(words))) return "named like a norm";
  if (names_codes(own_word(words))) return "named like a codebook or a lookup table";
  return transposed_class(module, tensor.shape);
}

bool LinearLayers::is_attention_projection(const NamedTensor& tensor) const {
  const std::string module = module_path(tensor.name);
  if (!module.ends_with("out_proj")) return false;
  const std::string attention = module.substr(0, module.size() - std::string_view("out_proj").size());
  return shapes_.contains(attention + "in_proj_weight") || shapes_.contains(attention + "q_proj_weight");
}

}  // namespace qcts
