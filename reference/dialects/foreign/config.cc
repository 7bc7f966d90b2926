// SPDX-License-Identifier: BSD-3-Clause
// Finds the method of quantization that the JSON files of a directory name.
#include <algorithm>
#include <array>

#include "reference/dialects/config.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/foreign/foreign.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? lower(found->get<std::string>()) : "";
}

bool is_flag(const Json& object, const char* key, bool value) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>() == value;
}

bool lacks_entries(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() || found->empty();
}

// Returns true if the method stores weights as floats: it quantizes only a cache, or quantizes on loading.
bool stores_floats(const Json& config, const std::string& method) {
  if (config.contains("quant_algo") && text_at(config, "quant_algo").empty()) return true;
  if (method == "bitnet") return text_at(config, "quantization_mode") == "online";
  if (method == "fp_quant") return is_flag(config, "pseudoquantization", true);
  if (method == "bitsandbytes")
    return is_flag(config, "load_in_4bit", false) && is_flag(config, "load_in_8bit", false);
  if (method != "compressed-tensors" && method != "compressed_tensors") return false;
  const std::string format = text_at(config, "format"), status = text_at(config, "quantization_status");
  const bool compressed = format.empty() ? status == "compressed" : format != "dense";
  const bool sparse = config.contains("sparsity_config") && config["sparsity_config"].is_object() &&
                      text_at(config["sparsity_config"], "format") != "dense";
  const bool of_a_cache = !lacks_entries(config, "kv_cache_scheme") && lacks_entries(config, "config_groups");
  return !sparse && (of_a_cache || (!compressed && !(format.empty() && status.empty())));
}

// Returns an empty string for torchao too, whose weights are recognized by their classes.
std::string method_of(const Json& quantization) {
  if (!quantization.is_object()) return "";
  std::string method = text_at(quantization, "quant_method");
  constexpr std::string_view kEnum = "quantizationmethod.";
  if (method.starts_with(kEnum)) method.erase(0, kEnum.size());
  if (method == "torchao" || stores_floats(quantization, method)) return "";
  return method.empty() ? text_at(quantization, "quant_algo") : method;
}

// The dtype of the model, or of the first part of it that names one.
std::optional<DType> dtype_in(const Json& config, int depth) {
  if (!config.is_object()) return std::nullopt;
  if (const std::optional<DType> found = config_dtype(config)) return found;
  for (const auto& [key, part] : config.items())
    if (depth > 0 && names_part_of_model(key))
      if (const std::optional<DType> found = dtype_in(part, depth - 1)) return found;
  return std::nullopt;
}

QuantConfig config_in(const Json& config, int depth) {
  if (!config.is_object()) return {};
  for (const char* key : {"quantization_config", "compression_config"})
    if (config.contains(key))
      if (const std::string method = method_of(config[key]); !method.empty())
        return {method, config[key], std::nullopt};
  const auto mlx = config.find("quantization");
  if (mlx != config.end() && mlx->is_object() && mlx->contains("bits") && mlx->contains("group_size")) {
    const auto copy = config.find("quantization_config");  // which MLX writes for others
    const bool differs =
        copy != config.end() && copy->is_object() && nlohmann::json(*copy) != nlohmann::json(*mlx);
    return {"mlx", *mlx, std::nullopt,
            differs ? "config.json says one thing in quantization and another in quantization_config" : ""};
  }
  // The parts of a model of several: text_config, llm_config, thinker_config.
  for (const auto& [key, part] : config.items())
    if (depth > 0 && names_part_of_model(key))
      if (QuantConfig found = config_in(part, depth - 1); !found.method.empty()) return found;
  return {};
}

// The words by which a library reads its weights, in config.json and in its own file.
constexpr std::array<std::pair<const char*, const char*>, 6> kWords = {{{"bits", "w_bit"},
                                                                        {"group_size", "q_group_size"},
                                                                        {"sym", "sym"},
                                                                        {"zero_point", "zero_point"},
                                                                        {"checkpoint_format", "format"},
                                                                        {"quant_algo", "quant_algo"}}};

Json word_of(const Json& said, const std::pair<const char*, const char*>& word) {
  for (const char* key : {word.first, word.second})
    if (const auto found = said.find(key); found != said.end() && !found->is_null()) return *found;
  return {};
}

// Says in which of these words the two differ; empty if in none. GPTQ's format is `gptq` where it is not
// named.
std::string difference(const QuantConfig& config, const Json& other, const std::string& file) {
  if (!config.said.is_object() || !other.is_object()) return "";
  const std::string method = method_of(other);
  if (other.contains("quant_method") && method != config.method) return "";
  for (const auto& word : kWords) {
    Json ours = word_of(config.said, word), theirs = word_of(other, word);
    if (config.method == "gptq" && std::string_view(word.first) == "checkpoint_format")
      for (Json* value : {&ours, &theirs})
        if (value->is_null()) *value = "gptq";
    if (!ours.is_null() && !theirs.is_null() && ours != theirs)
      return "config.json says " + std::string(word.first) + " " + ours.dump() + ", but " + file + " says " +
             theirs.dump();
  }
  return "";
}

Json file_beside(const std::filesystem::path& directory, const char* name) {
  std::error_code error;
  const std::filesystem::path path = directory / name;
  return std::filesystem::is_regular_file(path, error) ? read_json_file(path) : Json();
}

Json readable_beside(const std::filesystem::path& directory, const char* name) {
  try {
    return file_beside(directory, name);
  } catch (const Refused&) {  // config.json is enough
    return {};
  }
}

// A library reads its own file, and others config.json.
std::string contradiction_beside(const QuantConfig& found, const std::filesystem::path& directory) {
  if (found.method == "modelopt") {
    const Json own = readable_beside(directory, "hf_quant_config.json");
    return own.is_object() && own.contains("quantization")
               ? difference(found, own["quantization"], "hf_quant_config.json")
               : "";
  }
  if (found.method != "gptq" && found.method != "awq") return "";
  for (const char* name : {"quantize_config.json", "quant_config.json"})
    if (std::string text = difference(found, readable_beside(directory, name), name); !text.empty())
      return text;
  return "";
}

}  // namespace

QuantConfig quant_config(const Json& config, const std::filesystem::path& directory) {
  const std::optional<DType> dtype = dtype_in(config, 2);
  if (QuantConfig found = config_in(config, 2); !found.method.empty()) {
    found.dtype = dtype;
    if (found.contradiction.empty()) found.contradiction = contradiction_beside(found, directory);
    return found;
  }
  if (config.is_object() && config.contains("quantization_config"))
    return {"", config["quantization_config"], std::nullopt};
  const Json modelopt = file_beside(directory, "hf_quant_config.json");
  if (modelopt.is_object() && modelopt.contains("quantization") &&
      !text_at(modelopt["quantization"], "quant_algo").empty())
    return {"modelopt", modelopt["quantization"], dtype};
  const Json gptq = file_beside(directory, "quantize_config.json"),
             awq = file_beside(directory, "quant_config.json");
  if (gptq.is_object() && gptq.contains("bits")) return {"gptq", gptq, dtype};
  const bool names_awq = awq.is_object() && (awq.contains("w_bit") || text_at(awq, "quant_method") == "awq");
  return names_awq ? QuantConfig{"awq", awq, dtype} : QuantConfig();
}

QuantConfig quant_config_of_file(const std::filesystem::path& file, const OpenOptions& options) {
  const std::filesystem::path folder = file.parent_path(), beside = folder / "config.json";
  if (!options.config.empty())
    return quant_config(read_json_file(options.config), options.config.parent_path());
  std::error_code error;
  if (!std::filesystem::is_regular_file(beside, error)) return {};
  try {
    return quant_config(read_json_file(beside), folder);
  } catch (const Refused&) {  // nobody named that file
    return {};
  }
}

std::vector<std::filesystem::path> configs_beside(const std::filesystem::path& file) {
  std::vector<std::filesystem::path> found;
  for (const char* name :
       {"config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    std::error_code error;
    const std::filesystem::path path = file.parent_path() / name;
    if (std::filesystem::is_regular_file(path, error)) found.push_back(path);
  }
  return found;
}

}  // namespace qcts
