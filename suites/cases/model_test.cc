// SPDX-License-Identifier: BSD-3-Clause
// Tests that the layers of a model are read from its config, and that each becomes a case or is named as left
// out.
#include "suites/cases/model.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/inputs/layer_input.h"

namespace qcts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelTest : public testing::Test {
 protected:
  Model read(const std::string& json) {
    const std::filesystem::path file = scratch_.path() / "config.json";
    std::ofstream(file) << json;
    return read_model(file);
  }
  std::string refusal(const std::string& json) {
    try {
      read(json);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

 private:
  ScratchFolder scratch_;
};

std::vector<std::string> layers_of(const Model& model) {
  std::vector<std::string> texts;
  for (const Model::Layer& layer : model.layers)
    texts.push_back(layer.names + " " + std::to_string(layer.n) + " " + std::to_string(layer.k));
  return texts;
}

OfferTable offers(const std::string& scheme) {
  OfferTable table;
  table.add({{.provider = "acme", .op = Op::linear, .scheme = scheme, .variant = "python"}});
  return table;
}

constexpr const char* kLlama = R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 704,
  "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "torch_dtype": "float16"})";

TEST_F(ModelTest, LayersOfOneSizeAreOne) {
  const Model model = read(kLlama);
  EXPECT_THAT(layers_of(model),
              ElementsAre("q_proj, o_proj 256 256", "k_proj, v_proj 64 256", "gate_proj, up_proj 704 256",
                          "down_proj 256 704", "lm_head 1000 256"));
  EXPECT_EQ(model.dtype, DType::float16);
  EXPECT_THAT(model.groups, IsEmpty());
}

TEST_F(ModelTest, HeadsMayBeWiderThanTheirShare) {
  const Model model =
      read(R"({"model_type": "qwen3", "hidden_size": 256, "intermediate_size": 640, "head_dim": 64,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000})");
  EXPECT_THAT(layers_of(model)[0], "q_proj 512 256");
  EXPECT_THAT(layers_of(model)[2], "o_proj 256 512");
}

TEST_F(ModelTest, ExpertsAreLayers) {
  const Model model =
      read(R"({"model_type": "qwen3_moe", "hidden_size": 256, "num_experts": 60, "mlp_only_layers": [],
    "moe_intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 1000})");
  EXPECT_THAT(layers_of(model), ElementsAre("q_proj, k_proj, v_proj, o_proj 256 256", "gate 60 256",
                                            "experts.gate_proj, experts.up_proj 96 256",
                                            "experts.down_proj 256 96", "lm_head 1000 256"));
}

TEST_F(ModelTest, TheLanguageModelOfOneThatSees) {
  const Model model = read(
      std::string(R"({"model_type": "mistral3", "torch_dtype": "bfloat16", "text_config": )") + kLlama + "}");
  EXPECT_EQ(model.type, "llama");
  EXPECT_EQ(model.layers.size(), 5u);
}

TEST_F(ModelTest, EveryKnownTypeIsReadOrNamesWhatIsMissing) {
  const std::string numbers =
      R"("hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "vocab_size": 1000, "n_embd": 128,
         "ffn_dim": 256, "num_local_experts": 4, "num_experts": 4, "moe_intermediate_size": 64, "qk_rope_head_dim": 8,
         "qk_nope_head_dim": 16, "v_head_dim": 16, "kv_lora_rank": 32})";
  for (const std::string& type : known_model_types()) {
    EXPECT_GE(read(R"({"model_type": ")" + type + R"(", )" + numbers).layers.size(), 3u) << type;
    EXPECT_THAT(refusal(R"({"model_type": ")" + type + R"("})"), HasSubstr(" has no ")) << type;
  }
}

TEST_F(ModelTest, GroupsAndBitsOfTheWeights) {
  const auto with = [&](const std::string& config) {
    std::string json = kLlama;
    return read(json.insert(1, R"("quantization_config": )" + config + ", "));
  };
  const Model gptq = with(R"({"quant_method": "gptq", "bits": 4, "group_size": 64})");
  EXPECT_THAT(gptq.groups, ElementsAre(64));
  EXPECT_THAT(gptq.bits, ElementsAre(4));
  const Model compressed =
      with(R"({"config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128},
    "input_activations": {"num_bits": 8, "group_size": 16}}}})");
  EXPECT_THAT(compressed.groups, ElementsAre(128));
  EXPECT_THAT(compressed.bits, ElementsAre(4));
  const Model torchao = with(R"({"quant_type": {"default": {"_data": {"group_size": 32}}}})");
  EXPECT_THAT(torchao.groups, ElementsAre(32));
  EXPECT_THAT(with(R"({"bits": 8, "group_size": -1})").groups, IsEmpty());
}

TEST_F(ModelTest, WhatIsNotKnownIsNamed) {
  EXPECT_THAT(refusal(R"({"model_type": "mamba"})"),
              testing::AllOf(HasSubstr("'mamba'"), HasSubstr("llama"), HasSubstr("--filter")));
  EXPECT_THAT(refusal("{}"), HasSubstr("no model_type"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("not JSON"));
  std::string half = kLlama;
  EXPECT_THAT(refusal(half.replace(half.find("256"), 3, "2.5")), HasSubstr("hidden_size is not a size: 2.5"));
  EXPECT_THROW(read_model("/none/config.json"), UsageError);
}

TEST_F(ModelTest, EveryLayerHasCasesForEachNumberOfRows) {
  const ModelCases made = model_cases(read(kLlama), offers("int8_row"), {});
  ASSERT_EQ(made.cases.size(), 5 * std::size(kLayerRows));
  EXPECT_THAT(made.left_out, IsEmpty());
  for (const Case& c : made.cases) {
    const std::optional<Case> again = layer_case(c.id);
    ASSERT_TRUE(again) << c.id.text();
    EXPECT_EQ(again->id, c.id);
    EXPECT_EQ(again->synthetic()->seed, c.synthetic()->seed);
    EXPECT_EQ(c.synthetic()->weight.dtype, DType::float16);
  }
}

TEST_F(ModelTest, TheGroupOfTheModelChoosesTheScheme) {
  Model model = read(kLlama);
  model.groups = {64};
  for (const Case& c : model_cases(model, offers("int4_tinygemm"), {}).cases)
    EXPECT_EQ(c.id.scheme, "int4_tinygemm_g64");
  model.bits = {4};
  Selection one;
  one.schemes = {"intx_b4_g32_sym"};
  for (const Case& c : model_cases(model, offers("intx"), one).cases) EXPECT_EQ(c.id.scheme, one.schemes[0]);
}

TEST_F(ModelTest, TooManySchemesAreNotChosenFrom) {
  try {
    model_cases(read(kLlama), offers("intx"), {});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("schemes of intx"), HasSubstr("--scheme")));
  }
}

TEST_F(ModelTest, WhatIsTooLargeIsLeftOutByName) {
  Model model = read(kLlama);
  model.layers = {{"lm_head", 128256, 4096}, {"up_proj", 28672, 8192}};
  const ModelCases made = model_cases(model, offers("int8_row"), {});
  EXPECT_EQ(made.cases.size(), 3u);
  EXPECT_THAT(made.left_out, ElementsAre("lm_head (n 128256, k 4096): more than 2^28 weights",
                                         HasSubstr("up_proj (n 28672, k 8192) with m 512")));
}

TEST_F(ModelTest, NoFittingKernelIsAnError) {
  EXPECT_THROW(model_cases(read(kLlama), OfferTable(), {}), UsageError);
}

TEST(LayerInput, OnlyItsOwnNamesAreRead) {
  const Scheme& scheme = *find_scheme("int8_row");
  EXPECT_TRUE(find_layer_input(scheme, "layer_m8_n4096_k4096_bf16"));
  EXPECT_TRUE(find_layer_input(scheme, "layer_dyn_row_sym_m8_n40_k24_f32"));
  for (const char* name : {"layer", "layer_m8_n4096_k4096", "layer_m0_n8_k8_bf16", "layer_m8_n4096_k4096_f64",
                           "noise_m8_n4096_k4096_bf16", "layer_m8_n4096_k4096_bf16_", "layer_m-8_n8_k8_bf16",
                           "layer_m1_n999999999999_k999999999999_bf16"})
    EXPECT_FALSE(find_layer_input(scheme, name)) << name;
}

}  // namespace
}  // namespace qcts
