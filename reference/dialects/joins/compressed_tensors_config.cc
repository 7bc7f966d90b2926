// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/joins/compressed_tensors_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "reference/dialects/joins/join.h"
#include "reference/dialects/names/name_pattern.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

struct FormatWord {
  std::string_view word;
  CompressedFormat format;
};
constexpr std::array kFormatWords = {
    FormatWord{"pack-quantized", CompressedFormat::packed_integers},
    FormatWord{"int-quantized", CompressedFormat::bytes},
    FormatWord{"float-quantized", CompressedFormat::bytes},
    FormatWord{"naive-quantized", CompressedFormat::bytes},
    FormatWord{"nvfp4-pack-quantized", CompressedFormat::nvfp4},
    FormatWord{"mxfp4-pack-quantized", CompressedFormat::mxfp4},
    FormatWord{"mxfp6-pack-quantized", CompressedFormat::mxfp6},
    FormatWord{"mxfp8-quantized", CompressedFormat::mxfp8},
};

CompressedFormat format_of(const Json& group, const Json& config) {
  std::string word = json_text(group, "format");
  if (word.empty()) word = json_text(config, "format");
  for (const FormatWord& known : kFormatWords)
    if (known.word == word) return known.format;
  leave_apart(word.empty() ? "config.json has no format" : "the format " + word + " is not supported");
}

CompressedStrategy strategy_of(const Json& weights) {
  const std::string word = json_text(weights, "strategy");
  if (word == "tensor") return CompressedStrategy::tensor;
  if (word == "channel") return CompressedStrategy::channel;
  if (word == "group" || word == "tensor_group") return CompressedStrategy::group;
  if (word == "block") return CompressedStrategy::block;
  leave_apart(word.empty() ? "config.json has no strategy" : "the strategy " + word + " is not supported");
}

void require_combination(const CompressedRecipe& recipe) {
  const auto require = [](bool fits) {
    if (!fits) leave_apart("config.json combines a format with codes that it does not have");
  };
  switch (recipe.format) {
    case CompressedFormat::packed_integers:
      return require(!recipe.is_float && recipe.bits >= 1 && recipe.bits <= 8 &&
                     recipe.strategy != CompressedStrategy::block);
    case CompressedFormat::bytes:
      return require(recipe.is_float ? recipe.bits == 8 && recipe.symmetric
                                     : recipe.bits >= 1 && recipe.bits <= 8);
    case CompressedFormat::nvfp4:
      return require(recipe.is_float && recipe.bits == 4 && recipe.symmetric && recipe.group_size == 16);
    case CompressedFormat::mxfp4:
      return require(recipe.is_float && recipe.bits == 4 && recipe.symmetric && recipe.group_size == 32);
    case CompressedFormat::mxfp6:
      return require(recipe.is_float && recipe.bits == 6 && recipe.symmetric && recipe.group_size == 32);
    case CompressedFormat::mxfp8:
      return require(recipe.is_float && recipe.bits == 8 && recipe.symmetric && recipe.group_size == 32);
  }
}

// Up to 0.17 ("0.9.4", "0.17.1") pack_to_int32 left bits of a word idle.
std::optional<CodePacking> packing_of_version(const std::string& version) {
  const size_t dot = version.find('.');
  if (dot == 0 || dot == version.npos) return std::nullopt;
  const std::string minor =
      version.substr(dot + 1, version.find_first_not_of("0123456789", dot + 1) - dot - 1);
  const bool known = minor.size() == 1 || minor.size() == 2;
  if (!known || version.find_first_not_of("0123456789") != dot) return std::nullopt;
  if (version.substr(0, dot) != "0") return CodePacking::dense;
  return std::stoi(minor) <= 17 ? CodePacking::padded : CodePacking::dense;
}

// "local" stands for one static scale of the tensor above scales that are not.
std::string_view part_of_x(const Json& group) {
  const auto said = group.find("input_activations");
  if (said == group.end()) return {};
  if (json_text(*said, "dynamic") == "local") return "input_global_scale";
  return json_flag(*said, "dynamic") == false ? "input_scale" : std::string_view();
}

CompressedRecipe recipe_of(const Json& group, const Json& config) {
  if (!group.is_object() || !group.contains("weights") || !group["weights"].is_object())
    leave_apart("config.json has no recipe for weights");
  const Json& weights = group["weights"];
  CompressedRecipe recipe;
  recipe.format = format_of(group, config);
  recipe.strategy = strategy_of(weights);
  recipe.bits = static_cast<int>(json_integer(weights, "num_bits").value_or(0));
  const std::string type = json_text(weights, "type");
  if (type != "int" && type != "float") leave_apart("config.json does not give the type of the codes");
  recipe.is_float = type == "float";
  const std::optional<bool> symmetric = json_flag(weights, "symmetric");
  if (!symmetric) leave_apart("config.json does not say whether weights are symmetric");
  recipe.symmetric = *symmetric;
  if (recipe.strategy == CompressedStrategy::group) {
    recipe.group_size = json_integer(weights, "group_size").value_or(0);
    if (recipe.group_size < 1) leave_apart("config.json has no group_size");
  }
  if (recipe.strategy == CompressedStrategy::block) {
    const auto block = json_pair(weights, "block_structure");
    if (!block) leave_apart("config.json has no block_structure");
    std::tie(recipe.block_rows, recipe.block_columns) = *block;
  }
  const std::string order = json_text(weights, "actorder");
  recipe.group_order = order == "group" || order == "dynamic";
  recipe.part_of_x = part_of_x(group);
  recipe.packing = packing_of_version(json_text(config, "version"));
  require_combination(recipe);
  return recipe;
}

bool matches_pattern(const std::string& pattern, const std::string& module) {
  try {
    return NamePattern({"^(" + pattern + ")"}).search(module).has_value();
  } catch (const std::invalid_argument&) {
    leave_apart("the pattern re:" + pattern + " of config.json is not understood");
  }
}

// A word without a dot may also be a class, which the tensors do not show.
enum class TargetMatch : uint8_t { none, by_class, by_pattern, by_name };

bool is_pattern(const std::string& word) { return word.starts_with("re:"); }

bool is_class(const std::string& word) {
  return word.find('.') == word.npos && !word.empty() && word[0] >= 'A' && word[0] <= 'Z';
}

const std::string& target_word(const Json& target) {
  if (!target.is_string()) leave_apart("config.json has a target that is not a string");
  return target.get_ref<const std::string&>();
}

struct CompressedModule {
  const std::string& name;
  const std::vector<std::string>& words;
};

TargetMatch match_target(const Json& target, const CompressedModule& module) {
  const std::string& word = target_word(target);
  const bool is_named = word == module.name || std::ranges::find(module.words, word) != module.words.end();
  if (is_pattern(word))
    return is_named || matches_pattern(word.substr(3), module.name) ? TargetMatch::by_pattern
                                                                    : TargetMatch::none;
  if (is_named) return TargetMatch::by_name;
  return is_class(word) ? TargetMatch::by_class : TargetMatch::none;
}

// Returns the list, or an empty one.
const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_array() ? *found : kNone;
}

TargetMatch best_match(const Json& object, const char* key, const CompressedModule& module) {
  TargetMatch best = TargetMatch::none;
  for (const Json& target : list_of(object, key)) best = std::max(best, match_target(target, module));
  return best;
}

void require_not_ignored(const CompressedModule& module, const Json& config) {
  if (best_match(config, "ignore", module) >= TargetMatch::by_pattern)
    contradict_layer("config.json ignores it, but it holds codes");
}

// A pattern that is not understood is refused where a weight asks for it.
bool fits_pattern(const std::string& word, const std::string& name) {
  try {
    return matches_pattern(word.substr(3), name);
  } catch (const NotJoined&) {
    return true;
  }
}

}  // namespace

std::vector<ModuleWord> compressed_words(const Json& config) {
  std::vector<ModuleWord> words;
  for (const auto& [name, group] : config["config_groups"].items()) {
    const Json& targets = list_of(group, "targets");
    const bool by_class = std::ranges::any_of(
        targets, [](const Json& target) { return target.is_string() && is_class(target); });
    for (const Json& target : targets) {
      if (!target.is_string() || is_class(target)) continue;
      ModuleWord word{.word = target, .said_by = "config_groups." + name};
      if (is_pattern(target)) {
        word.required = !by_class;
        word.fits = fits_pattern;
      }
      words.push_back(std::move(word));
    }
  }
  return words;
}

bool is_wide_float(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

std::string refuse_compressed(const Json& config) {
  if (!json_lacks(config, "transform_config"))
    return "transform_config rotates the weights, so the codes do not stand for the model's";
  const auto sparsity = config.find("sparsity_config");
  if (sparsity != config.end() && !json_lacks(config, "sparsity_config") &&
      json_text(*sparsity, "format") != "dense")
    return "sparsity_config asks for sparse weights";
  if (config.contains("config_groups") && !config["config_groups"].is_object())
    return "its config_groups are not an object";
  return json_lacks(config, "config_groups") ? "config.json has no config_groups" : "";
}

CompressedRecipe compressed_recipe(const std::string& name, const std::vector<std::string>& words,
                                   const Json& config) {
  const CompressedModule module{name, words};
  require_not_ignored(module, config);
  const Json& groups = config["config_groups"];
  TargetMatch best = TargetMatch::by_class;
  for (const auto& [key, group] : groups.items()) best = std::max(best, best_match(group, "targets", module));
  std::optional<CompressedRecipe> found;
  for (const auto& [key, group] : groups.items()) {
    if (best_match(group, "targets", module) != best) continue;
    const CompressedRecipe recipe = recipe_of(group, config);
    if (found && *found != recipe) leave_apart("two groups of config.json target it");
    found = recipe;
  }
  if (!found) contradict_layer("no group of config.json targets it, but it holds codes");
  return *found;
}

std::string compressed_scheme(const CompressedRecipe& recipe) {
  if (recipe.format == CompressedFormat::nvfp4) return "ct_nvfp4";
  if (recipe.format == CompressedFormat::mxfp4) return "ct_mxfp4";
  if (recipe.format == CompressedFormat::mxfp6) return "ct_mxfp6";
  if (recipe.format == CompressedFormat::mxfp8) return "ct_mxfp8";
  std::string name = recipe.is_float ? "ct_fp8" : "ct_int" + std::to_string(recipe.bits);
  switch (recipe.strategy) {
    case CompressedStrategy::tensor:
      name += "_tensor";
      break;
    case CompressedStrategy::channel:
      name += "_channel";
      break;
    case CompressedStrategy::group:
      name += "_g" + std::to_string(recipe.group_size);
      break;
    case CompressedStrategy::block:
      name += "_block" + std::to_string(recipe.block_rows) + "x" + std::to_string(recipe.block_columns);
      break;
  }
  return name + (recipe.is_float ? "" : recipe.symmetric ? "_sym" : "_asym");
}

}  // namespace qcts
