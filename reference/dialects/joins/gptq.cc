// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights of GPTQ (GPTQModel 7.7.0, nn_modules/qlinear/__init__.py; AutoGPTQ 0.7.1 alike):
//   qweight  int32 [k b / 32, n]       b = 2, 3, 4 or 8 bits, a stream along k
//   qzeros   int32 [groups, n b / 32]  a stream along n; v1 (`gptq`) stores the zero point minus 1, and
//                                      gptq_v2 stores it as it is
//   scales   [groups, n]
//   g_idx    int32 [k]                 the group of each column
// A zero point of 0 in v1 is a field whose bits are all set. GPTQModel borrows it from the next field,
// AutoGPTQ sets all fields above it, and readers disagree: such a weight is left apart.
#include <algorithm>
#include <stdexcept>

#include "reference/dialects/joins/words_by_column.h"
#include "reference/dialects/names/name_pattern.h"

namespace qcts {
namespace {

constexpr std::string_view kGptqCodes[] = {".qweight"};

// GPTQModel reads `format` too, which its own file had before.
std::string version_word(const nlohmann::ordered_json& config) {
  const std::string word = json_text(config, "checkpoint_format");
  return word.empty() ? json_text(config, "format") : word;
}

bool is_known_width(int64_t bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

std::string refuse_gptq(const nlohmann::ordered_json& config) {
  for (const char* key : {"checkpoint_format", "format"})
    if (config.contains(key) && !config[key].is_null() && !config[key].is_string())
      return std::string(key) + " of config.json is not a string";
  const std::string format = version_word(config), pack = json_text(config, "pack_dtype");
  if (json_flag(config, "is_marlin_format").value_or(false) || format == "marlin")
    return "marlin tiles are not supported";
  if (!format.empty() && format != "gptq" && format != "gptq_v2")
    return "checkpoint_format " + format + " is not supported";
  if (!pack.empty() && pack != "int32") return "pack_dtype " + pack + " is not supported";
  if (json_text(config, "quant_method").find("marlin") != std::string::npos)
    return "marlin tiles are not supported";
  const std::optional<int64_t> bits = json_integer(config, "bits");
  if (!bits) return lacks_integer(config, "bits");
  if (!is_known_width(*bits)) return std::to_string(*bits) + " bits are not supported";
  if (!json_integer(config, "group_size")) return lacks_integer(config, "group_size");
  const auto dynamic = config.find("dynamic");
  const bool known = dynamic == config.end() || dynamic->is_null() || dynamic->is_object();
  return known ? "" : "dynamic of config.json is not an object";
}

// A rule of `dynamic` without operators of a pattern names one module in full.
// Returns nullopt for any other rule.
std::optional<std::string> literal_of_rule(std::string_view rule) {
  std::string literal;
  for (size_t i = 0; i < rule.size(); ++i) {
    const bool escaped = rule[i] == '\\' && i + 1 < rule.size();
    if (escaped) ++i;
    const char c = rule[i];
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_operator = std::string_view(".^$*+?{}[]()|").find(c) != std::string_view::npos;
    if (escaped ? alphanumeric : is_operator) return std::nullopt;
    literal += c;
  }
  return literal;
}

bool fits_rule(const std::string& rule, const std::string& module) {
  if (const std::optional<std::string> literal = literal_of_rule(rule)) return module == *literal;
  try {
    return NamePattern({"^(" + rule + ")"}).search(module).has_value();
  } catch (const std::invalid_argument&) {
    leave_apart("the rule " + rule + " of config.json is not understood");
  }
}

// Returns what config.json says about a module: the first rule of `dynamic` that fits takes the place of the
// words of the whole model. Rules that begin with "-:" name modules that stay as they are.
nlohmann::ordered_json said_of_gptq_module(const nlohmann::ordered_json& config, const std::string& module) {
  // These tell how a weight is quantized, and change no part of the file.
  constexpr std::string_view kOfTheRecipe[] = {"damp_percent", "mse",     "static_groups", "act_group_aware",
                                               "fallback",     "hessian", "gptaq",         "foem",
                                               "smoother",     "smooth"};
  nlohmann::ordered_json said = config;
  const auto dynamic = config.find("dynamic");
  if (dynamic == config.end() || dynamic->is_null()) return said;
  for (const auto& [rule, own] : dynamic->items()) {
    const bool excludes = rule.starts_with("-:");
    if (!fits_rule(rule.substr(excludes || rule.starts_with("+:") ? 2 : 0), module)) continue;
    if (excludes) contradict_layer("config.json excludes it by " + rule + ", but it holds codes");
    if (!own.is_object()) leave_apart("the rule " + rule + " of config.json is not an object");
    for (const auto& [key, value] : own.items()) {
      const bool decides = key == "bits" || key == "group_size" || key == "sym" || key == "desc_act";
      if (!decides && !(key == "pack_dtype" && value == "int32") &&
          std::ranges::find(kOfTheRecipe, key) == std::end(kOfTheRecipe))
        leave_apart("the rule " + rule + " of config.json says " + key + ", which is not supported");
      said[key] = value;
    }
    for (const char* key : {"bits", "group_size"})
      if (!json_integer(said, key)) leave_apart(lacks_integer(said, key));
    if (!is_known_width(*json_integer(said, "bits")))
      leave_apart(said["bits"].dump() + " bits are not supported");
    return said;
  }
  return said;
}

// Only this word makes GPTQModel quantize the head; its own file had it from the start.
std::vector<ModuleWord> gptq_words(const nlohmann::ordered_json& config) {
  const std::optional<bool> head = json_flag(config, "lm_head");
  if (!head) return {};
  return {{.word = "lm_head", .said_by = "lm_head true", .required = *head}};
}

void require_head_said(const nlohmann::ordered_json& config, const LayerParts& parts) {
  const bool is_head = std::ranges::find(parts.words(), "lm_head") != parts.words().end();
  if (is_head && json_flag(config, "lm_head") == false)
    contradict_layer("config.json says lm_head false, but it holds codes");
}

// Returns true if every zero point that the file stores is this one.
bool all_stored_zeros(const std::vector<int64_t>& zeros, int64_t value) {
  return std::ranges::all_of(zeros, [&](int64_t zero) { return zero == value; });
}

// Decides between v1 and v2, and throws NotJoined if the zero points contradict what config.json says.
void set_version(CodedWeight& weight, const nlohmann::ordered_json& config) {
  const std::string first_word = json_text(config, "checkpoint_format"),
                    other_word = json_text(config, "format");
  if (!first_word.empty() && !other_word.empty() && first_word != other_word)
    contradict_layer("config.json says checkpoint_format " + first_word + " and format " + other_word);
  const bool second = version_word(config) == "gptq_v2";
  const int64_t middle = int64_t{1} << (weight.codes.bits - 1), largest = 2 * middle - 1;
  const std::vector<int64_t> stored = fields_of(*weight.zeros);
  if (json_flag(config, "sym").value_or(false) && !all_stored_zeros(stored, second ? middle : middle - 1)) {
    const bool other = all_stored_zeros(stored, second ? middle - 1 : middle);
    contradict_layer(other ? "its zero points are those of " + std::string(second ? "gptq" : "gptq_v2") +
                                 ", but config.json says " + (second ? "gptq_v2" : "gptq")
                           : "config.json says sym, but its zero points are not all alike");
  }
  if (!second && std::ranges::find(stored, largest) != stored.end())
    leave_apart("a zero point of 0 or " + std::to_string(largest + 1) +
                " in checkpoint_format gptq, which its readers interpret differently");
  weight.zero = second ? 0 : 1;
}

void set_group_order(CodedWeight& weight, const Tensor& order, const nlohmann::ordered_json& config) {
  if (order.dtype != DType::int32 || order.numel() != weight.columns)
    contradict_layer("g_idx has the wrong size");
  const std::vector<int64_t> groups = read_integers(order);
  bool in_order = true;
  std::vector<int64_t> sizes(static_cast<size_t>(weight.scales.columns)), wanted = sizes;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto own = static_cast<int64_t>(i) / weight.scales.column_block;
    in_order = in_order && groups[i] == own;
    ++wanted[static_cast<size_t>(own)];
    if (groups[i] >= 0 && groups[i] < weight.scales.columns) ++sizes[static_cast<size_t>(groups[i])];
  }
  if (!in_order && !json_flag(config, "desc_act").value_or(false))
    contradict_layer("g_idx is out of order, but config.json does not say desc_act");
  if (sizes != wanted) contradict_layer("g_idx does not fill the groups");
  weight.group_of = order;
}

std::optional<CodedWeight> read_gptq(LayerParts& parts, const QuantConfig& config) {
  const nlohmann::ordered_json said = said_of_gptq_module(config.said, parts.module());
  const Tensor& words = parts.need(".qweight", {DType::int32});
  if (words.shape.size() != 2) leave_apart("a weight that is not two-dimensional");
  const auto bits = static_cast<int>(*json_integer(said, "bits"));
  const int64_t group_size = *json_integer(said, "group_size");
  CodedWeight weight;
  weight.rows = words.shape[1];
  weight.columns = words.shape[0] * 32 / bits;
  if (words.shape[0] * 32 % bits != 0)
    contradict_layer("its words do not hold a whole number of " + std::to_string(bits) + "-bit codes");
  weight.codes = rows_of_codes(words, bits, CodeKind::unsigned_integer, weight.rows, weight.columns);
  weight.codes.line_stride = 1;
  weight.codes.word_stride = weight.rows;
  const Tensor& scales = parts.need(".scales", {DType::float16, DType::bfloat16, DType::float32});
  weight.dtype = scales.dtype;
  weight.scales.may_underflow = true;  // they are narrowed after the codes are rounded
  set_groups(weight, scales, parts.need(".qzeros", {DType::int32}), group_size);
  const Tensor* order = parts.find(".g_idx");
  if (order == nullptr && json_flag(said, "desc_act").value_or(false))
    leave_apart("config.json says desc_act, but it has no g_idx");
  if (order != nullptr) set_group_order(weight, *order, said);
  parts.require_no_others({"bias"});
  require_head_said(said, parts);
  finish_coded(weight, {});
  set_version(weight, said);
  const bool symmetric = json_flag(said, "sym").value_or(false);
  weight.scheme =
      "gptq_int" + std::to_string(bits) + "_" + group_word(group_size) + (symmetric ? "_sym" : "_asym");
  return weight;
}

}  // namespace

extern const Join kJoin_gptq = {.format = "gptq",
                                .codes = kGptqCodes,
                                .weight = ".weight",
                                .refuse = refuse_gptq,
                                .read = read_gptq,
                                .module_words = gptq_words};

}  // namespace qcts
