// SPDX-License-Identifier: BSD-3-Clause
// Tests that golden test vectors come from the producer's files, and that a modified file is reported in the
// scheme's terms.
#include "suites/judge/expected/test_vector.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "suites/base/paths.h"
#include "suites/judge/judge.h"

namespace qcts {
namespace {

class GoldenTestVector : public testing::Test {
 protected:
  GoldenTestVector() : fixtures_(load_fixtures(fixtures_folder())) {}

  // Returns the first golden tensor of a scheme in a layout with all recorded values.
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
        c.question = TensorQuestion{&golden, tensor.name};
        return c;
      }
    }
    throw std::logic_error("no golden of " + std::string(scheme) + " in " + std::string(layout));
  }

  Fixtures fixtures_;
};

TEST_F(GoldenTestVector, TheRecordedAnswersLieInsideTheBoundAndMovedOnesDoNot) {
  for (const auto& [scheme, layout] : {std::pair{"int8_row", "plain"},
                                       {"fp8_row", "plain"},
                                       {"int4_tinygemm_g32", "cpu_avx2"},
                                       {"int4_plain_sym_g32", "plain"},
                                       {"int4_e4m3_g128", "preshuffled_fp8"}}) {
    const TestVector test_vector = make_test_vector(find_case(Op::linear, scheme, layout), 0);
    const LinearReference reference(test_vector.input);
    const std::vector<Bounded> bounds = reference.bounds(recorded_stages(test_vector));
    EXPECT_TRUE(compare_bounded(bounds, test_vector.input.y_dtype, test_vector.recorded_y).equal()) << scheme;
    std::vector<std::byte> shifted = test_vector.recorded_y;
    std::rotate(shifted.begin(), shifted.begin() + dtype_bytes(test_vector.input.y_dtype), shifted.end());
    EXPECT_FALSE(compare_bounded(bounds, test_vector.input.y_dtype, shifted).equal()) << scheme;
  }
}

TEST(RecordedStages, NameTheSchemeAndThePolicyOfWhichNothingIsKnown) {
  TestVector test_vector;
  test_vector.input.scheme = find_scheme("fp8_e5m2_row");
  test_vector.input.activation = test_vector.input.scheme->policy_named("dyn_row");
  test_vector.input.y_dtype = DType::bfloat16;
  try {
    recorded_stages(test_vector);
    FAIL() << "nothing is known about it";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("fp8_e5m2_row under dyn_row"), std::string::npos)
        << error.what();
  }
  test_vector.recorded_dense = true;
  EXPECT_EQ(recorded_stages(test_vector).weight_cast, DType::bfloat16);
}

TEST_F(GoldenTestVector, PackedGoldensAreJudgedByTheProducersCodes) {
  const TestVector pack = make_test_vector(find_case(Op::pack, "int4_tinygemm_g32", "cpu_avx2"), 0);
  EXPECT_EQ(pack.input.layout, "cpu_avx2");
  EXPECT_FALSE(pack.expected.planes.empty());
  const TestVector unpack = make_test_vector(find_case(Op::unpack, "int4_tinygemm_g32", "cpu_avx2"), 0);
  EXPECT_EQ(unpack.expected.planes[0].bytes, pack.input.planes[0].bytes);
  EXPECT_EQ(unpack.input.planes[0].bytes, pack.expected.planes[0].bytes);
}

TEST_F(GoldenTestVector, IsMadeAnewForAnotherCaseOrSeed) {
  const Case linear = find_case(Op::linear, "int8_row", "plain"),
             quantize = find_case(Op::quantize, "int8_row", "plain");
  TestVectorCache cache;
  const std::byte* x = cache.get(linear, 1).input.x.data();
  const LinearReference* reference = &cache.reference();
  EXPECT_EQ(cache.get(linear, 1).input.x.data(), x);
  EXPECT_EQ(&cache.reference(), reference);
  EXPECT_EQ(cache.get(quantize, 1).input.op, Op::quantize);
  EXPECT_EQ(cache.get(linear, 1).input.x, make_test_vector(linear, 1).input.x);
  Case synthetic = linear;
  synthetic.id = {Kind::numerics, Op::linear, "int8_row", "noise"};
  synthetic.question = SyntheticQuestion{{Generator::noise, {DType::bfloat16, 4, 64}, 2, 7}};
  const std::vector<std::byte> first = cache.get(synthetic, 1).input.x;
  EXPECT_NE(cache.get(synthetic, 2).input.x, first);
  EXPECT_EQ(cache.reference().x(1).size(), 64u);
}

TEST_F(GoldenTestVector, WhatTheManifestPromisesHasToBeThere) {
  Case c = find_case(Op::dequantize, "int8_row", "plain");
  std::get<TensorQuestion>(c.question).tensor = "no.such.weight";
  EXPECT_THROW(make_test_vector(c, 0), std::runtime_error);
  c = find_case(Op::linear, "int8_row", "plain");
  Golden bare = *c.golden();
  bare.expected.clear();
  std::get<TensorQuestion>(c.question).golden = &bare;
  EXPECT_THROW(make_test_vector(c, 0), std::runtime_error);
  c = find_case(Op::dequantize, "int8_row", "plain");
  Golden mislabelled = *c.golden();
  for (Golden::TensorInfo& tensor : mislabelled.tensors)
    if (tensor.scheme == "int8_row") tensor.scheme = "fp8_row";
  std::get<TensorQuestion>(c.question).golden = &mislabelled;
  EXPECT_THROW(make_test_vector(c, 0), std::runtime_error)
      << "the manifest and the file name different schemes";
}

TEST_F(GoldenTestVector, SumsAreTheOraclesAndTellOneChangedCode) {
  for (const auto& [scheme, layout] : std::vector<std::pair<const char*, const char*>>{
           {"int8_row", "plain"}, {"int4_plain_sym_g32", "plain"}}) {
    TestVector test_vector = make_test_vector(find_case(Op::linear, scheme, layout), 0);
    const std::vector<double> sums = LinearReference(test_vector.input, false).sums();
    std::vector<double> oracle;
    for (const Bounded& each : LinearReference(test_vector.input).bounds(recorded_stages(test_vector)))
      oracle.push_back(each.value);
    EXPECT_EQ(sums, oracle) << scheme;
    test_vector.input.planes[0].bytes[1] ^= std::byte{1};
    EXPECT_NE(LinearReference(test_vector.input, false).sums(), sums) << scheme;
  }
}

TEST(LinearReference, NumericsThatNothingRoundsToAreRefused) {
  KernelInput input;
  const Scheme& scheme = *find_scheme("int8_row");
  input.op = Op::linear;
  input.scheme = &scheme;
  input.weight = {DType::bfloat16, 1, 2};
  input.m = 1;
  input.planes = make_planes(scheme.plane_specs(input.weight));
  input.x.resize(4);
  qcts_kernel kernel{};
  kernel.op = QCTS_OP_LINEAR;
  kernel.numerics.weight_cast = 99;
  EXPECT_THROW(declared_stages(kernel, input.x_dtype), ProviderFault);
  kernel.numerics.weight_cast = QCTS_NONE;
  EXPECT_NO_THROW(LinearReference(input).bounds(declared_stages(kernel, input.x_dtype)));
  kernel.fused_sums = {sizeof(qcts_fused_sums), 8, 24, 0, 0, 0};
  EXPECT_THROW(declared_stages(kernel, input.x_dtype), ProviderFault);
}

}  // namespace
}  // namespace qcts
