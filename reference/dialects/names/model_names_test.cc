// SPDX-License-Identifier: BSD-3-Clause
// Protects the names of transformers: the patterns behave as Python's, and each row of the data can be used.
#include "reference/dialects/names/model_names.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::string first_match(const std::string& pattern, std::string_view name) {
  const std::optional<NameMatch> match = NamePattern({pattern}).search(name);
  return match ? std::string(match->groups[0]) : "none";
}

TEST(NamePattern, MatchesAsPythonDoes) {
  EXPECT_EQ(first_match(R"(layers\.(\d+)\.)", "model.layers.12.mlp"), "layers.12.");
  EXPECT_EQ(first_match(R"(weight(?!\w))", "a.weight_scale"), "none");
  EXPECT_EQ(first_match(R"(weight(?!\w))", "a.weight"), "weight");
  EXPECT_EQ(first_match(R"((?<!image_vit\.)transformer\.)", "image_vit.transformer.a"), "none");
  EXPECT_EQ(first_match(R"(^model(?!\.(language_model|visual)))", "model.visual.a"), "none");
  EXPECT_EQ(first_match(R"(.experts..*\.w1.weight)", "a.experts.10.w1.weight"), ".experts.10.w1.weight");
  EXPECT_EQ(first_match(R"((?:a|bc)+d?)", "xabcabd"), "abca");
  EXPECT_EQ(first_match(R"((?:a|bc)+d?)", "xabcad"), "abcad");
  EXPECT_EQ(first_match("[^.]+$", "a.bc"), "bc");
  EXPECT_EQ(first_match("a(b|c)?d*", "xa"), "a");  // text that may be absent is not a condition
  EXPECT_EQ(first_match("ab?c", "ac"), "ac");
  EXPECT_EQ(first_match("ab+c", "abbc"), "abbc");
  EXPECT_THROW(NamePattern({"(?P<a>b)"}), std::invalid_argument);
  EXPECT_THROW(NamePattern({"a{2}"}), std::invalid_argument);
}

TEST(NamePattern, EndsForAHostileName) {
  EXPECT_EQ(first_match("(a+)+b", std::string(1000, 'a')), "none");
  EXPECT_EQ(first_match("a", std::string(2000, 'a')), "none");  // too long to be a name
}

TEST(ModelNames, EveryClassOfTheDataCanBeUsed) {
  const std::vector<std::string> classes = ModelNames::renamed_classes();
  EXPECT_GT(classes.size(), 300u);
  for (const std::string& name : classes) {
    ModelNames model = ModelNames::of_class(name);
    EXPECT_FALSE(model.in_memory("model.layers.0.mlp.experts.0.w1.weight").name.empty()) << name;
    const std::vector<std::string> names = {"lm_head.weight", "model.embed_tokens.weight"};
    EXPECT_NO_THROW(model.tied(names)) << name;
  }
}

TEST(ModelNames, FollowsTheModelsWithinAModel) {
  const Json config = {{"architectures", {"LlavaForConditionalGeneration"}},
                       {"model_type", "llava"},
                       {"text_config", {{"model_type", "mixtral"}}},
                       {"vision_config", {{"model_type", "clip_vision_model"}}}};
  ModelNames model(config);
  EXPECT_EQ(model.in_memory("language_model.lm_head.weight").name, "lm_head.weight");
  EXPECT_EQ(model.in_memory("language_model.model.norm.weight").name, "model.language_model.norm.weight");
  const MemoryName expert =
      model.in_memory("language_model.model.layers.3.block_sparse_moe.experts.7.w3.weight");
  EXPECT_EQ(expert.name, "model.language_model.layers.3.mlp.experts.gate_up_proj");
  ASSERT_NE(expert.conversion, nullptr);
  EXPECT_EQ(expert.source, 1u);
}

TEST(ModelNames, TiesWhatConfigJsonTies) {
  const std::vector<std::string> names = {"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"};
  const auto ties = [&](Json config) {
    config["architectures"] = {"LlamaForCausalLM"};
    config["model_type"] = "llama";
    return ModelNames(config).tied(names).size();
  };
  EXPECT_EQ(ties(Json::object()), 0u);  // LlamaConfig's default
  EXPECT_EQ(ties({{"tie_word_embeddings", true}}), 1u);
  EXPECT_EQ(ties({{"tie_word_embeddings", false}, {"text_config", {{"tie_word_embeddings", true}}}}), 0u);
  EXPECT_EQ(ties({{"text_config", {{"tie_word_embeddings", true}}}}), 1u);
}

TEST(ModelNames, AClassThatIsNotKnownTiesWhatIsUsual) {
  const std::vector<std::string> names = {"lm_head.weight", "model.embed_tokens.weight"};
  const Json config = {
      {"architectures", {"UnknownModel"}}, {"model_type", "llama"}, {"tie_word_embeddings", true}};
  const ModelNames model(config);
  EXPECT_TRUE(model.is_known());
  EXPECT_FALSE(model.knows_class());
  ASSERT_FALSE(model.tied(names).empty());
  EXPECT_EQ(model.tied(names)[0].target, "lm_head.weight");
  EXPECT_TRUE(model.single_ties().empty());
}

TEST(ModelNames, SingleTiesHaveNoPatterns) {
  const Json config = {
      {"architectures", {"IBertForMaskedLM"}}, {"model_type", "ibert"}, {"tie_word_embeddings", true}};
  const std::vector<TiedName> ties = ModelNames(config).single_ties();
  ASSERT_EQ(ties.size(), 2u);
  EXPECT_EQ(ties[0].source, "ibert.embeddings.word_embeddings.weight");
  const Json detection = {{"architectures", {"DFineForObjectDetection"}}, {"model_type", "d_fine"}};
  for (const TiedName& tie : ModelNames(detection).single_ties())
    EXPECT_EQ(tie.target.find_first_of("\\(?[^$"), tie.target.npos) << tie.target;
}

// Model, its ties, names in memory -> what is tied; of models within it whose class config.json does not say.
TEST(ModelNames, TiesWhatTheModelsWithinAModelTie) {
  const auto tied = [](const std::string& name, const std::string& type, const Json& more,
                       const std::vector<std::string>& names) {
    Json config = {{"architectures", {name}}, {"model_type", type}};
    config.update(more);
    std::map<std::string, std::string> found;
    for (const TiedName& tie : ModelNames(config).tied(names)) found[tie.target] = tie.source;
    return found;
  };
  using Ties = std::map<std::string, std::string>;
  const std::string encoder = "model.encoder.embed_tokens.weight",
                    decoder = "model.decoder.embed_tokens.weight", shared = "model.shared.weight",
                    head = "lm_head.weight";
  const std::vector<std::string> seq2seq = {head, encoder, decoder, shared};
  for (const auto& [name, type] : {std::pair{"BartForConditionalGeneration", "bart"},
                                   {"M2M100ForConditionalGeneration", "m2m_100"},
                                   {"PegasusXForConditionalGeneration", "pegasus_x"}}) {
    EXPECT_EQ(tied(name, type, Json::object(), seq2seq),
              (Ties{{encoder, shared}, {decoder, shared}, {head, shared}}))
        << name;
    EXPECT_EQ(tied(name, type, {{"tie_word_embeddings", false}}, seq2seq), Ties()) << name;
  }
  // Whether the text model's weights are tied is said in its own part of config.json.
  const std::vector<std::string> seen = {"text_model.lm_head.weight", "text_model.model.embed_tokens.weight"};
  for (const bool ties : {false, true}) {
    const Json text = {
        {"text_config", {{"model_type", "kosmos_2_5_text_model"}, {"tie_word_embeddings", ties}}},
        {"tie_word_embeddings", true}};
    EXPECT_EQ(tied("Kosmos2_5ForConditionalGeneration", "kosmos-2.5", text, seen),
              ties ? Ties({{seen[0], seen[1]}}) : Ties());
  }
}

TEST(ModelNames, AFileAloneMayLackWhatModelsWithinAModelTie) {
  for (const auto& [target, source] :
       {std::pair{"model.encoder.embed_tokens.weight", "model.shared.weight"},
        {"text_encoder.encoder.embed_tokens.weight", "text_encoder.shared.weight"},
        {"prophetnet.encoder.word_embeddings.weight", "prophetnet.word_embeddings.weight"}}) {
    const std::vector<std::string> targets = {target}, sources = {source};
    EXPECT_EQ(usual_ties(targets, sources).size(), 1u) << target;
    EXPECT_EQ(usual_ties(sources, targets).size(), 0u) << target;
  }
}

TEST(ModelNames, ClassesWithTheSameRenamesAreTriedOnce) {
  const auto& different = ModelNames::different_renames();
  EXPECT_LT(different.size(), ModelNames::renamed_classes().size());
  const auto mixtral = std::ranges::count_if(different, [](const auto& row) {
    ModelNames model = row.model;
    return row.name.starts_with("Mixtral") &&
           model.in_memory("model.layers.0.block_sparse_moe.experts.1.w2.weight").conversion != nullptr;
  });
  EXPECT_GE(mixtral, 1);
  EXPECT_LT(mixtral, 4);  // of the four heads with one base
}

TEST(ModelNames, AHeadHasTheNamesOfTheModelWithinIt) {
  ModelNames model(
      {{"architectures", {"ASTForAudioClassification"}}, {"model_type", "audio-spectrogram-transformer"}});
  EXPECT_EQ(
      model.in_memory("audio_spectrogram_transformer.encoder.layer.0.attention.attention.query.weight").name,
      "audio_spectrogram_transformer.layers.0.attention.q_proj.weight");
}

}  // namespace
}  // namespace qcts
