// SPDX-License-Identifier: BSD-3-Clause
// What is asked of a kernel on a golden comes from the producer's files, and a file that was tampered with
// says so in the scheme's terms.
#include "suites/judge/expected/question.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "suites/base/paths.h"
#include "suites/judge/judge.h"

namespace qcts {
namespace {

class GoldenQuestion : public testing::Test {
 protected:
  GoldenQuestion() : fixtures_(load_fixtures(fixtures_folder())) {}

  // The first golden tensor of a scheme in a layout that has everything.
  Case find_case(Op op, std::string_view scheme, std::string_view layout) const {
    for (const Golden& golden : fixtures_.goldens) {
      for (const Golden::TensorInfo& tensor : golden.tensors) {
        const auto has = [&](std::string_view what) {
          return std::find(tensor.expected.begin(), tensor.expected.end(), what) != tensor.expected.end();
        };
        if (tensor.scheme != scheme || tensor.layout != layout || !has("dequant") || !has("w")) continue;
        if (layout != "plain" && !has("codes")) continue;
        if (op == Op::linear && !has("y")) continue;
        Case c;
        c.id = {Kind::numerics, op, tensor.scheme, "x"};
        c.scheme = find_scheme(scheme);
        c.golden = &golden;
        c.tensor = tensor.name;
        return c;
      }
    }
    throw std::logic_error("no golden of " + std::string(scheme) + " in " + std::string(layout));
  }

  Fixtures fixtures_;
};

TEST_F(GoldenQuestion, TheRecordedAnswersLieInsideTheBoundAndMovedOnesDoNot) {
  for (const auto& [scheme, layout] : {std::pair{"int8_row", "plain"},
                                       {"fp8_row", "plain"},
                                       {"int4_tinygemm_g32", "cpu_avx2"},
                                       {"int4_plain_sym_g32", "plain"},
                                       {"int4_e4m3_g128", "preshuffled_fp8"}}) {
    const Question question = ask(find_case(Op::linear, scheme, layout), 0);
    const LinearTruth truth(question.input);
    const std::vector<Bounded> bounds = truth.bounds(recorded_stages(question));
    EXPECT_TRUE(compare_bounded(bounds, question.input.y_dtype, question.recorded_y).equal()) << scheme;
    std::vector<std::byte> shifted = question.recorded_y;
    std::rotate(shifted.begin(), shifted.begin() + dtype_bytes(question.input.y_dtype), shifted.end());
    EXPECT_FALSE(compare_bounded(bounds, question.input.y_dtype, shifted).equal()) << scheme;
  }
}

TEST(RecordedStages, NameTheSchemeAndThePolicyOfWhichNothingIsKnown) {
  Question question;
  question.input.scheme = find_scheme("fp8_e5m2_row");
  question.input.activation = question.input.scheme->policy_named("dyn_row");
  question.input.y_dtype = DType::bfloat16;
  try {
    recorded_stages(question);
    FAIL() << "nothing is known of it";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("fp8_e5m2_row under dyn_row"), std::string::npos)
        << error.what();
  }
  question.recorded_dense = true;
  EXPECT_EQ(recorded_stages(question).weight_cast, DType::bfloat16);
}

TEST_F(GoldenQuestion, PackedGoldensAreJudgedByTheProducersCodes) {
  const Question pack = ask(find_case(Op::pack, "int4_tinygemm_g32", "cpu_avx2"), 0);
  EXPECT_EQ(pack.input.layout, "cpu_avx2");
  EXPECT_FALSE(pack.expected.planes.empty());
  const Question unpack = ask(find_case(Op::unpack, "int4_tinygemm_g32", "cpu_avx2"), 0);
  EXPECT_EQ(unpack.expected.planes[0].bytes, pack.input.planes[0].bytes);
  EXPECT_EQ(unpack.input.planes[0].bytes, pack.expected.planes[0].bytes);
}

TEST_F(GoldenQuestion, IsMadeAnewForAnotherCaseOrSeed) {
  const Case linear = find_case(Op::linear, "int8_row", "plain"),
             quantize = find_case(Op::quantize, "int8_row", "plain");
  LastQuestion asked;
  const std::byte* x = asked.ask(linear, 1).input.x.data();
  const LinearTruth* truth = &asked.truth();
  EXPECT_EQ(asked.ask(linear, 1).input.x.data(), x);
  EXPECT_EQ(&asked.truth(), truth);
  EXPECT_EQ(asked.ask(quantize, 1).input.op, Op::quantize);
  EXPECT_EQ(asked.ask(linear, 1).input.x, ask(linear, 1).input.x);
  Case synthetic = linear;
  synthetic.id = {Kind::numerics, Op::linear, "int8_row", "noise"};
  synthetic.golden = nullptr;
  synthetic.synthetic = Synthetic{Generator::noise, {DType::bfloat16, 4, 64}, 2, 7};
  const std::vector<std::byte> first = asked.ask(synthetic, 1).input.x;
  EXPECT_NE(asked.ask(synthetic, 2).input.x, first);
  EXPECT_EQ(asked.truth().x(1).size(), 64u);
}

TEST_F(GoldenQuestion, WhatTheManifestPromisesHasToBeThere) {
  Case c = find_case(Op::dequantize, "int8_row", "plain");
  c.tensor = "no.such.weight";
  EXPECT_THROW(ask(c, 0), std::runtime_error);
  c = find_case(Op::linear, "int8_row", "plain");
  Golden bare = *c.golden;
  bare.expected.clear();
  c.golden = &bare;
  EXPECT_THROW(ask(c, 0), std::runtime_error);
  c = find_case(Op::dequantize, "int8_row", "plain");
  Golden mislabelled = *c.golden;
  for (Golden::TensorInfo& tensor : mislabelled.tensors)
    if (tensor.scheme == "int8_row") tensor.scheme = "fp8_row";
  c.golden = &mislabelled;
  EXPECT_THROW(ask(c, 0), std::runtime_error) << "the manifest and the file disagree on the scheme";
}

TEST_F(GoldenQuestion, SumsAreTheOraclesAndTellOneChangedCode) {
  for (const auto& [scheme, layout] : std::vector<std::pair<const char*, const char*>>{
           {"int8_row", "plain"}, {"int4_plain_sym_g32", "plain"}}) {
    Question question = ask(find_case(Op::linear, scheme, layout), 0);
    const std::vector<double> sums = LinearTruth(question.input, false).sums();
    std::vector<double> oracle;
    for (const Bounded& each : LinearTruth(question.input).bounds(recorded_stages(question)))
      oracle.push_back(each.value);
    EXPECT_EQ(sums, oracle) << scheme;
    question.input.planes[0].bytes[1] ^= std::byte{1};
    EXPECT_NE(LinearTruth(question.input, false).sums(), sums) << scheme;
  }
}

TEST(LinearTruth, NumericsThatNothingRoundsToAreRefused) {
  KernelInput input;
  const Scheme& scheme = *find_scheme("int8_row");
  input.op = Op::linear;
  input.scheme = &scheme;
  input.weight = {DType::bfloat16, 1, 2};
  input.m = 1;
  input.planes = make_planes(scheme.plane_specs(input.weight));
  input.x.resize(4);
  qcts_numerics numerics{};
  numerics.weight_cast = 99;
  EXPECT_THROW(LinearTruth(input).bounds(numerics), ProviderFault);
}

}  // namespace
}  // namespace qcts
