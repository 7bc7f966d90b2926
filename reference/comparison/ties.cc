// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/ties.h"

#include <algorithm>
#include <array>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

// The modules of _tied_weights_keys in transformers 5.24.0's models: output layers, then input embeddings.
constexpr std::array<std::string_view, 26> kTiedModules = {"lm_head",
                                                           "proj_out",
                                                           "output_projection",
                                                           "generator_lm_head",
                                                           "out_proj",
                                                           "vocab_projector",
                                                           "output",
                                                           "embed_out",
                                                           "head",
                                                           "lm_loss",
                                                           "unembedding_projection",
                                                           "codec_head",
                                                           "decoder",
                                                           "embed_tokens",
                                                           "shared",
                                                           "word_embeddings",
                                                           "word_embedding",
                                                           "wte",
                                                           "embeddings",
                                                           "tok_embeddings",
                                                           "embed_in",
                                                           "tokens_embed",
                                                           "entity_embeddings",
                                                           "embedding_projection",
                                                           "codec_embedding",
                                                           "additional_embedding"};

bool is_tied_module(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return false;
  name.remove_suffix(kWeight.size());
  return std::ranges::find(kTiedModules, name.substr(name.rfind('.') + 1)) != kTiedModules.end();
}

// A config without the key has its class's default, which is true for most models that leave it out.
bool may_tie(const Json& config) {
  if (!config.is_object()) return false;
  const Json text = config.value("text_config", Json());
  return config.value("tie_word_embeddings", Json()) != Json(false) &&
         (!text.is_object() || text.value("tie_word_embeddings", Json()) != Json(false));
}

}  // namespace

TensorsByName::TensorsByName(const Checkpoint& checkpoint) {
  const bool ties = may_tie(checkpoint.config);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    by_name_.emplace(tensor.name, &tensor);
    if (ties && is_tied_module(tensor.name)) tied_.push_back(&tensor);
  }
}

const NamedTensor* TensorsByName::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const NamedTensor* TensorsByName::find(const NamedTensor& tensor) const {
  if (const NamedTensor* same = find(std::string_view(tensor.name))) return same;
  if (tied_.empty() || !is_tied_module(tensor.name)) return nullptr;
  const auto found = std::ranges::find(tied_, tensor.shape, &NamedTensor::shape);
  return found == tied_.end() ? nullptr : *found;
}

}  // namespace qcts
