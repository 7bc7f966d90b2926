// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/foreign.h"

#include <algorithm>
#include <map>
#include <set>

#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

bool is_scaled_dtype(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2fnuz:
    case DType::float4_e2m1fn_x2:
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
      return true;
    default:
      return false;
  }
}

bool holds_bytes(DType dtype) { return dtype == DType::int8 || dtype == DType::uint8; }
bool holds_words(DType dtype) { return dtype == DType::int32 || dtype == DType::uint32; }

std::string_view dtype_word(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return "i8";
    case DType::uint8:
      return "u8";
    case DType::int16:
      return "i16";
    case DType::int32:
      return "i32";
    case DType::uint32:
      return "u32";
    case DType::float16:
      return "f16";
    case DType::bfloat16:
      return "bf16";
    case DType::float32:
      return "f32";
    case DType::float4_e2m1fn_x2:
      return "f4";
    default:
      return is_scaled_dtype(dtype) ? "f8" : "";
  }
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t first = 0; first <= text.size();) {
    const size_t end = std::min(text.find(at, first), text.size());
    if (end > first) parts.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return parts;
}

struct PartPattern {
  std::string_view ending;
  std::vector<std::string_view> dtypes;  // empty: any
  char mark = ' ';                       // '!', '?'

  explicit PartPattern(std::string_view text) {
    if (text.front() == '!' || text.front() == '?') {
      mark = text.front();
      text.remove_prefix(1);
    }
    const size_t colon = text.find(':');
    ending = text.substr(0, colon);
    if (colon != text.npos) dtypes = split(text.substr(colon + 1), ',');
  }
};

struct WeightPattern {
  const ForeignFormat* format;
  std::vector<PartPattern> parts;
};

std::vector<WeightPattern> weight_patterns() {
  std::vector<WeightPattern> patterns;
  for (const ForeignFormat& format : foreign_formats())
    for (std::string_view alternative : split(format.parts, '|')) {
      WeightPattern& pattern = patterns.emplace_back(WeightPattern{&format, {}});
      for (std::string_view part : split(alternative, ' ')) pattern.parts.emplace_back(part);
    }
  return patterns;
}

bool may_hold_codes(const NamedTensor& tensor) {
  switch (tensor.dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::boolean:
      return false;
    default:
      return !tensor.shape.empty();
  }
}

bool has_plain_data(const NamedTensor& tensor) {
  return (tensor.type == "Tensor" || tensor.type == "Parameter") && tensor.payload.size() == 1 &&
         tensor.payload[0].name == "data";
}

std::string_view module_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Does the last word of a parameter's name say that it is a scale of others, or the table of their values?
bool names_scale(std::string_view word) {
  constexpr std::string_view kWords[] = {"scale", "scaling", "absmax", "codebook", "palette", "lookup_table"};
  return std::ranges::any_of(kWords, [&](std::string_view part) { return word.find(part) != word.npos; }) ||
         word == "SCB" || word == "lut" || word.ends_with("_lut");
}

class ForeignNamer {
 public:
  ForeignNamer(Checkpoint& checkpoint, const std::string& method, ReadBudget& budget)
      : checkpoint_(checkpoint), method_(method), by_method_(foreign_by_method(method)) {
    budget.take_bytes(kPlaceBytes * checkpoint.tensors.size());
    budget.give_back_bytes(kPlaceBytes * checkpoint.tensors.size());
    places_.reserve(checkpoint.tensors.size());
    for (NamedTensor& tensor : checkpoint.tensors)
      if (has_plain_data(tensor)) places_.emplace_back(tensor.name, &tensor);
    std::ranges::sort(places_);
  }

  void name() {
    for (NamedTensor& tensor : checkpoint_.tensors)
      if (has_plain_data(tensor)) match(tensor);
    find_scaled_codes();
    for (NamedTensor& tensor : checkpoint_.tensors) report_unscaled(tensor);
    report_format();
  }

 private:
  static constexpr uint64_t kPlaceBytes = 24 + 64;  // in places_, and in the modules with scales

  NamedTensor* find(std::string_view name) const {
    const auto found =
        std::ranges::lower_bound(places_, name, {}, &std::pair<std::string_view, NamedTensor*>::first);
    return found != places_.end() && found->first == name ? found->second : nullptr;
  }

  // A stem begins with a dot, so that the endings fit tensors of no module too.
  NamedTensor* find_part(const std::string& stem, std::string_view ending) const {
    return find(std::string_view(stem + std::string(ending)).substr(1));
  }

  void match(NamedTensor& codes) {
    const std::string name = "." + codes.name;
    for (const WeightPattern& pattern : patterns_) {
      const PartPattern& first = pattern.parts.front();
      if (!name.ends_with(first.ending)) continue;
      if (!first.dtypes.empty() &&
          std::ranges::find(first.dtypes, dtype_word(codes.dtype)) == first.dtypes.end())
        continue;
      if (codes.shape.empty()) continue;
      const std::string stem = name.substr(0, name.size() - first.ending.size());
      const auto lacks = [&](const PartPattern& part) {
        return part.mark == ' ' && find_part(stem, part.ending) == nullptr;
      };
      if (std::any_of(pattern.parts.begin() + 1, pattern.parts.end(), lacks)) continue;
      return take(codes, pattern, stem);
    }
  }

  void take(NamedTensor& codes, const WeightPattern& pattern, const std::string& stem) {
    const ForeignFormat& format = by_method_ ? *by_method_ : told_by_shape(codes, *pattern.format, stem);
    mark(codes, format);
    for (auto part = pattern.parts.begin() + 1; part != pattern.parts.end(); ++part) {
      if (NamedTensor* found = find_part(stem, part->ending))
        mark(*found, format);
      else if (part->mark == '!')
        contradict(codes.name, "no " + (stem + std::string(part->ending)).substr(1) + " beside it, which " +
                                   std::string(format.name) + " needs");
    }
    ++weights_;
  }

  // GPTQ packs along k and AWQ along n, where both have scales [groups, n].
  const ForeignFormat& told_by_shape(const NamedTensor& codes, const ForeignFormat& format,
                                     const std::string& stem) const {
    const NamedTensor* scales = find_part(stem, ".scales");
    if (format.name != "gptq_or_awq" || scales == nullptr || scales->shape.size() != 2 ||
        codes.shape.size() != 2)
      return format;
    if (codes.shape[1] == scales->shape[1]) return *foreign_by_method("gptq");
    return codes.shape[1] == scales->shape[1] / 8 ? *foreign_by_method("awq") : format;
  }

  void mark(NamedTensor& tensor, const ForeignFormat& format) {
    if (first_ == nullptr) first_ = &format, first_name_ = tensor.name;
    tensor.foreign = format.name;
  }

  void contradict(const std::string& tensor, std::string text) {
    checkpoint_.findings.push_back({CheckpointFinding::Kind::contradiction, tensor, std::move(text)});
  }

  // Finds matrices of codes that no pattern matched, in modules that have a scale.
  void find_scaled_codes() {
    std::set<std::string_view> scaled;
    for (const auto& [name, tensor] : places_)
      if (tensor->foreign.empty() && names_scale(last_part(name))) scaled.insert(module_name(name));
    if (scaled.empty()) return;
    const ForeignFormat& format = by_method_ ? *by_method_ : foreign_formats().back();
    std::set<std::string_view> modules;
    for (NamedTensor& tensor : checkpoint_.tensors) {
      const std::string_view word = last_part(tensor.name);
      const bool codes = holds_bytes(tensor.dtype) || is_scaled_dtype(tensor.dtype) ||
                         (holds_words(tensor.dtype) && word.ends_with("weight"));
      const bool other = word.ends_with("bias") || word.ends_with("mask") || word.ends_with("index") ||
                         word.ends_with("ids") || names_scale(word);
      if (!has_plain_data(tensor) || !tensor.foreign.empty() || !codes || other || tensor.shape.size() < 2 ||
          !scaled.contains(module_name(tensor.name)))
        continue;
      mark(tensor, format);
      modules.insert(module_name(tensor.name));
      ++weights_;
    }
    for (const auto& [name, tensor] : places_)
      if (names_scale(last_part(name)) && modules.contains(module_name(name))) mark(*tensor, format);
  }

  void report_unscaled(const NamedTensor& tensor) {
    if (!has_plain_data(tensor) || !tensor.foreign.empty() || tensor.shape.size() < 2) return;
    const bool promised = by_method_ != nullptr && last_part(tensor.name).ends_with("weight") &&
                          (holds_bytes(tensor.dtype) || holds_words(tensor.dtype));
    if (!is_scaled_dtype(tensor.dtype) && !promised) return;
    if (!method_.empty())
      return contradict(tensor.name, "config.json says " + method_ + ", but it is " +
                                         std::string(dtype_name(tensor.dtype)) +
                                         " without a scale beside it");
    if (++unscaled_ == 1) first_unscaled_ = tensor.name;
  }

  void report_format() {
    if (unscaled_ > 0)
      checkpoint_.warnings.push_back(
          first_unscaled_ + (unscaled_ > 1 ? " and " + std::to_string(unscaled_ - 1) + " more" : "") +
          ": float8 without a scale beside it, read as plain numbers");
    if (!method_.empty() && by_method_ != nullptr && weights_ == 0) {
      contradict("", "config.json says " + method_ + ", but no tensor is quantized so");
    }
    const ForeignFormat* format = by_method_ && weights_ > 0 ? by_method_ : first_;
    if (format == nullptr && (method_.empty() || by_method_ != nullptr)) return;
    const std::string name = format ? std::string(format->name) : method_;
    std::string text = format ? name + " (" + std::string(format->what) + ")" : name + " (config.json)";
    text += ", which is not read here";
    if (!first_name_.empty()) {
      text += ": " + first_name_;
      if (weights_ > 1) text += ", " + std::to_string(weights_) + " weights in all";
    }
    checkpoint_.findings.push_back({CheckpointFinding::Kind::foreign, first_name_, text});
    if (checkpoint_.dialect == "plain") checkpoint_.dialect = name;
  }

  Checkpoint& checkpoint_;
  const std::string& method_;
  const ForeignFormat* by_method_;
  const std::vector<WeightPattern> patterns_ = weight_patterns();
  // Sorted: a file can choose names that a hash table holds badly.
  std::vector<std::pair<std::string_view, NamedTensor*>> places_;
  const ForeignFormat* first_ = nullptr;
  std::string first_name_, first_unscaled_;
  size_t weights_ = 0, unscaled_ = 0;
};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string text_at(const nlohmann::ordered_json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? lower(found->get<std::string>()) : "";
}

std::string method_in(const nlohmann::ordered_json& config) {
  if (!config.is_object()) return "";
  for (const char* key : {"quantization_config", "compression_config"})
    if (config.contains(key)) {
      const std::string method = text_at(config[key], "quant_method"),
                        algo = text_at(config[key], "quant_algo");
      const bool of_the_cache_alone =
          config[key].is_object() && config[key].contains("quant_algo") && algo.empty();
      if (method == "torchao" || of_the_cache_alone) return "";
      if (!method.empty() || !algo.empty()) return method.empty() ? algo : method;
    }
  const auto mlx = config.find("quantization");
  if (mlx != config.end() && mlx->is_object() && mlx->contains("bits") && mlx->contains("group_size"))
    return "mlx";
  for (const char* part : {"text_config", "llm_config"})
    if (config.contains(part))
      if (const std::string method = method_in(config[part]); !method.empty()) return method;
  return "";
}

}  // namespace

const ForeignFormat* foreign_by_method(std::string_view method) {
  for (const ForeignFormat& format : foreign_formats())
    for (std::string_view word : split(format.methods, ' '))
      if (word == method) return &format;
  return nullptr;
}

std::string foreign_method(const nlohmann::ordered_json& config, const std::filesystem::path& directory) {
  if (const std::string method = method_in(config); !method.empty()) return method;
  if (config.is_object() && config.contains("quantization_config")) return "";
  const auto neighbour = [&](const char* name) {
    std::error_code error;
    const std::filesystem::path path = directory / name;
    return std::filesystem::is_regular_file(path, error) ? read_json_file(path) : nlohmann::ordered_json();
  };
  const nlohmann::ordered_json modelopt = neighbour("hf_quant_config.json");
  if (modelopt.is_object() && modelopt.contains("quantization") &&
      !text_at(modelopt["quantization"], "quant_algo").empty())
    return "modelopt";
  if (neighbour("quantize_config.json").contains("bits")) return "gptq";
  const nlohmann::ordered_json awq = neighbour("quant_config.json");
  return awq.contains("w_bit") || text_at(awq, "quant_method") == "awq" ? "awq" : "";
}

void name_foreign(Checkpoint& checkpoint, const std::string& method, ReadBudget& budget) {
  // Models of floats alone are most of all, and the largest.
  if (method.empty() && std::ranges::none_of(checkpoint.tensors, may_hold_codes)) return;
  ForeignNamer(checkpoint, method, budget).name();
}

}  // namespace qcts
