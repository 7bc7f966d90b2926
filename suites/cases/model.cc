// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/model.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "suites/base/did_you_mean.h"
#include "suites/base/run_error.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxNumber = int64_t{1} << 28;
constexpr const char* kOtherwise =
    "put the sizes in a case id instead: --filter numerics.linear/SCHEME/layer_m8_n4096_k4096_bf16";

// The numbers of a config, and the layers that are made from them.
class Config {
 public:
  Config(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  int64_t number(const char* key) const {
    if (!has(key)) throw UsageError(where_ + " has no " + key + "; " + kOtherwise);
    const Json& value = json_[key];
    if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > kMaxNumber)
      throw UsageError(where_ + ": " + key + " is not a size: " + value.dump());
    return value.get<int64_t>();
  }
  int64_t number(const char* key, int64_t otherwise) const { return has(key) ? number(key) : otherwise; }
  // Is the number there and above 0, or the list there and not empty?
  bool any(const char* key) const {
    if (!has(key)) return false;
    const Json& value = json_[key];
    return value.is_array() ? !value.empty() : !value.is_number_integer() || value.get<int64_t>() > 0;
  }

  void layer(const std::string& name, int64_t n, int64_t k) {
    const auto same = std::ranges::find_if(
        layers_, [&](const Model::Layer& other) { return other.n == n && other.k == k; });
    if (same == layers_.end())
      layers_.push_back({name, n, k});
    else
      same->names += ", " + name;
  }
  std::vector<Model::Layer> take() { return std::move(layers_); }

  int64_t hidden() const { return number("hidden_size"); }
  int64_t heads() const { return number("num_attention_heads"); }
  int64_t kv_heads() const { return number("num_key_value_heads", heads()); }
  int64_t head() const { return number("head_dim", hidden() / heads()); }

 private:
  const Json& json_;
  const std::string where_;
  std::vector<Model::Layer> layers_;
};

void attention(Config& c, const char* out = "o_proj") {
  c.layer("q_proj", c.heads() * c.head(), c.hidden());
  c.layer("k_proj", c.kv_heads() * c.head(), c.hidden());
  c.layer("v_proj", c.kv_heads() * c.head(), c.hidden());
  c.layer(out, c.hidden(), c.heads() * c.head());
}

void gated(Config& c, const std::string& prefix, int64_t wide) {
  c.layer(prefix + "gate_proj", wide, c.hidden());
  c.layer(prefix + "up_proj", wide, c.hidden());
  c.layer(prefix + "down_proj", c.hidden(), wide);
}

void fused_gated(Config& c, const std::string& prefix, int64_t wide) {
  c.layer(prefix + "gate_up_proj", 2 * wide, c.hidden());
  c.layer(prefix + "down_proj", c.hidden(), wide);
}

void two_layers(Config& c, const char* first, const char* second, int64_t wide) {
  c.layer(first, wide, c.hidden());
  c.layer(second, c.hidden(), wide);
}

void head(Config& c, const char* name = "lm_head") { c.layer(name, c.number("vocab_size"), c.hidden()); }

void llama(Config& c) {
  attention(c);
  gated(c, "", c.number("intermediate_size"));
  head(c);
}

void glm(Config& c) {
  attention(c);
  fused_gated(c, "", c.number("intermediate_size"));
  head(c);
}

void phi3(Config& c) {
  c.layer("qkv_proj", (c.heads() + 2 * c.kv_heads()) * c.head(), c.hidden());
  c.layer("o_proj", c.hidden(), c.heads() * c.head());
  fused_gated(c, "", c.number("intermediate_size"));
  head(c);
}

void phi(Config& c) {
  attention(c, "dense");
  two_layers(c, "fc1", "fc2", c.number("intermediate_size"));
  head(c);
}

void starcoder2(Config& c) {
  attention(c);
  two_layers(c, "c_fc", "c_proj", c.number("intermediate_size"));
  head(c);
}

void gpt2(Config& c) {
  const int64_t width = c.number("n_embd"), wide = c.number("n_inner", 4 * width);
  c.layer("attn.c_attn", 3 * width, width);
  c.layer("attn.c_proj", width, width);
  c.layer("mlp.c_fc", wide, width);
  c.layer("mlp.c_proj", width, wide);
  c.layer("lm_head", c.number("vocab_size"), width);
}

void gpt_neox(Config& c) {
  c.layer("query_key_value", 3 * c.hidden(), c.hidden());
  c.layer("dense", c.hidden(), c.hidden());
  two_layers(c, "dense_h_to_4h", "dense_4h_to_h", c.number("intermediate_size"));
  head(c, "embed_out");
}

void opt(Config& c) {
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) c.layer(name, c.hidden(), c.hidden());
  two_layers(c, "fc1", "fc2", c.number("ffn_dim"));
  c.layer("lm_head", c.number("vocab_size"), c.number("word_embed_proj_dim", c.hidden()));
}

void bert(Config& c) {
  for (const char* name : {"query", "key", "value", "attention.output.dense"})
    c.layer(name, c.hidden(), c.hidden());
  two_layers(c, "intermediate.dense", "output.dense", c.number("intermediate_size"));
}

void mixtral(Config& c) {
  attention(c);
  c.layer("gate", c.number("num_local_experts"), c.hidden());
  c.layer("experts.w1", c.number("intermediate_size"), c.hidden());
  c.layer("experts.w3", c.number("intermediate_size"), c.hidden());
  c.layer("experts.w2", c.hidden(), c.number("intermediate_size"));
  head(c);
}

void olmoe(Config& c) {
  attention(c);
  c.layer("gate", c.number("num_experts"), c.hidden());
  gated(c, "experts.", c.number("intermediate_size"));
  head(c);
}

void qwen_moe(Config& c) {
  attention(c);
  if (c.any("mlp_only_layers") || c.number("decoder_sparse_step", 1) > 1)
    gated(c, "", c.number("intermediate_size"));
  c.layer("gate", c.number("num_experts"), c.hidden());
  gated(c, "experts.", c.number("moe_intermediate_size"));
  if (c.any("shared_expert_intermediate_size")) {
    gated(c, "shared_expert.", c.number("shared_expert_intermediate_size"));
    c.layer("shared_expert_gate", 1, c.hidden());
  }
  head(c);
}

void gpt_oss(Config& c) {
  attention(c);
  c.layer("router", c.number("num_local_experts"), c.hidden());
  fused_gated(c, "experts.", c.number("intermediate_size"));
  head(c);
}

void llama4(Config& c) {
  attention(c);
  c.layer("router", c.number("num_local_experts"), c.hidden());
  fused_gated(c, "experts.", c.number("intermediate_size"));
  gated(c, "shared_expert.", c.number("intermediate_size"));
  if (c.any("intermediate_size_mlp")) gated(c, "", c.number("intermediate_size_mlp"));
  head(c);
}

// Attention by a narrow code of the keys and values, as DeepSeek-V2 has it.
void deepseek(Config& c) {
  const int64_t rope = c.number("qk_rope_head_dim"), nope = c.number("qk_nope_head_dim"),
                value = c.number("v_head_dim"), narrow = c.number("kv_lora_rank");
  if (c.has("q_lora_rank")) {
    c.layer("q_a_proj", c.number("q_lora_rank"), c.hidden());
    c.layer("q_b_proj", c.heads() * (nope + rope), c.number("q_lora_rank"));
  } else {
    c.layer("q_proj", c.heads() * (nope + rope), c.hidden());
  }
  c.layer("kv_a_proj_with_mqa", narrow + rope, c.hidden());
  c.layer("kv_b_proj", c.heads() * (nope + value), narrow);
  c.layer("o_proj", c.hidden(), c.heads() * value);
  if (c.any("first_k_dense_replace")) gated(c, "", c.number("intermediate_size"));
  if (c.any("n_routed_experts")) {
    const int64_t wide = c.number("moe_intermediate_size");
    c.layer("gate", c.number("n_routed_experts"), c.hidden());
    gated(c, "experts.", wide);
    if (c.any("n_shared_experts")) gated(c, "shared_experts.", wide * c.number("n_shared_experts"));
  }
  head(c);
}

using AddLayers = void (*)(Config&);

// The names of the layers are those of transformers' classes.
const std::map<std::string, AddLayers>& models() {
  static const std::map<std::string, AddLayers> known = {
      {"llama", llama},
      {"mistral", llama},
      {"ministral", llama},
      {"qwen2", llama},
      {"qwen3", llama},
      {"gemma", llama},
      {"gemma2", llama},
      {"gemma3_text", llama},
      {"granite", llama},
      {"olmo", llama},
      {"olmo2", llama},
      {"olmo3", llama},
      {"stablelm", llama},
      {"cohere", llama},
      {"cohere2", llama},
      {"smollm3", llama},
      {"seed_oss", llama},
      {"glm", glm},
      {"glm4", glm},
      {"phi3", phi3},
      {"phi", phi},
      {"starcoder2", starcoder2},
      {"gpt2", gpt2},
      {"gpt_neox", gpt_neox},
      {"opt", opt},
      {"bert", bert},
      {"roberta", bert},
      {"mixtral", mixtral},
      {"olmoe", olmoe},
      {"qwen2_moe", qwen_moe},
      {"qwen3_moe", qwen_moe},
      {"gpt_oss", gpt_oss},
      {"llama4_text", llama4},
      {"deepseek_v2", deepseek},
      {"deepseek_v3", deepseek},
  };
  return known;
}

Json parse(const std::filesystem::path& config) {
  constexpr uintmax_t kMaxBytes = uintmax_t{1} << 24;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(config, error);
  std::ifstream in(config, std::ios::binary);
  if (error || !in) throw UsageError("--model: " + config.string() + " cannot be read");
  if (bytes > kMaxBytes) throw UsageError("--model: " + config.string() + " is not a config.json: too large");
  try {
    Json json = Json::parse(in);
    if (json.is_object()) return json;
  } catch (const nlohmann::json::exception& why) {
    throw UsageError("--model: " + config.string() + " is not JSON: " + why.what());
  }
  throw UsageError("--model: " + config.string() + " is not a JSON object");
}

std::string text_of(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

// Returns the dtype of the model, or bfloat16 if it names none of the three.
DType dtype_of(const Json& json, const Json& whole) {
  for (const Json* each : {&json, &whole})
    for (const char* key : {"dtype", "torch_dtype"})
      for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
        if (text_of(*each, key) == dtype_name(dtype)) return dtype;
  return DType::bfloat16;
}

// Finds the groups and bits of the weights, for every library's own place in the config.
void read_quantization(const Json& json, std::set<int64_t>& groups, std::set<int>& bits) {
  for (const auto& [key, value] : json.items()) {
    const bool is_of_x = key.find("activation") != key.npos || key.starts_with("kv_cache");
    if (is_of_x) continue;
    if (value.is_structured()) read_quantization(value, groups, bits);
    if (!value.is_number_integer()) continue;
    const auto number = value.get<int64_t>();
    if ((key == "group_size" || key == "q_group_size") && number > 0) groups.insert(number);
    if ((key == "bits" || key == "w_bit" || key == "num_bits") && number >= 1 && number <= 8)
      bits.insert(static_cast<int>(number));
  }
}

void add_quantization(const Json& config, Model& model) {
  std::set<int64_t> groups;
  std::set<int> bits;
  for (const char* key : {"quantization_config", "compression_config", "quantization"})
    if (config.contains(key) && config[key].is_object()) read_quantization(config[key], groups, bits);
  model.groups.assign(groups.begin(), groups.end());
  model.bits.assign(bits.begin(), bits.end());
}

}  // namespace

std::vector<std::string> known_model_types() {
  std::vector<std::string> names;
  for (const auto& [name, add] : models()) names.push_back(name);
  return names;
}

Model read_model(const std::filesystem::path& config) {
  const Json whole = parse(config);
  // A vision model has its language model's numbers in a separate part.
  const bool has_part = !models().contains(text_of(whole, "model_type")) && whole.contains("text_config") &&
                        whole["text_config"].is_object();
  const Json& json = has_part ? whole["text_config"] : whole;
  Model model;
  model.type = text_of(json, "model_type");
  const std::string where = "--model: " + config.string() + (has_part ? ": text_config" : "");
  const auto found = models().find(model.type);
  if (found == models().end()) {
    std::string known;
    for (const std::string& name : known_model_types()) known += (known.empty() ? "" : ", ") + name;
    throw UsageError(where +
                     (model.type.empty() ? " has no model_type"
                                         : " is a '" + model.type + "', whose layers qcts does not know") +
                     " (known: " + known + "); " + kOtherwise);
  }
  Config numbers(json, where);
  found->second(numbers);
  model.layers = numbers.take();
  model.dtype = dtype_of(json, whole);
  add_quantization(whole, model);
  return model;
}

}  // namespace qcts
