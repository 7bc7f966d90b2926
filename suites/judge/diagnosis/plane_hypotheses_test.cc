// SPDX-License-Identifier: BSD-3-Clause
// Protects the sentence on wrong planes: a quantizer with exactly one mistake gets exactly its name.
#include "suites/judge/diagnosis/plane_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"

namespace qcts {
namespace {

using Quantize = std::function<Planes(const TestVector&)>;

Matrix matrix_of(const KernelInput& input) {
  return {input.weight.dtype, input.weight.n, input.weight.k, input.x};
}

// Returns the right planes of int8_row with its codes rounded by `round`, from the quotient in float32.
Quantize codes_by(double (*round)(double)) {
  return [round](const TestVector& test_vector) {
    const KernelInput& input = test_vector.input;
    Planes planes = test_vector.expected.planes;
    const auto k = static_cast<size_t>(input.weight.k);
    std::vector<ExactWeight> row(k);
    for (size_t r = 0; r < static_cast<size_t>(input.weight.n); ++r) {
      input.scheme->exact_row(planes, input.weight, static_cast<int64_t>(r), row);
      for (size_t c = 0; c < k; ++c) {
        const auto value = static_cast<float>(load_float(input.weight.dtype, input.x, r * k + c));
        const float code = value * (1 / static_cast<float>(row[c].scale));
        planes[0].bytes[r * k + c] =
            static_cast<std::byte>(static_cast<int8_t>(std::clamp(round(code), -128.0, 127.0)));
      }
    }
    return planes;
  };
}

// Returns the right planes of a changed weight.
Quantize of_weight(double (*change)(double)) {
  return [change](const TestVector& test_vector) {
    KernelInput input = test_vector.input;
    for (size_t i = 0; i < input.x.size() / dtype_bytes(input.weight.dtype); ++i)
      store_float(input.weight.dtype, input.x, i, change(load_float(input.weight.dtype, input.x, i)));
    return input.scheme->quantize(matrix_of(input), input.layout);
  };
}

Quantize by_scheme(const char* name) {
  return [name](const TestVector& test_vector) {
    return find_scheme(name)->quantize(matrix_of(test_vector.input), kPlain);
  };
}

struct WrongQuantizer {
  const char *test, *scheme, *name;
  DType dtype;
  Generator generator;
  Quantize quantize;
};
void PrintTo(const WrongQuantizer& wrong, std::ostream* out) { *out << wrong.test; }

TestVector weight_for(const WrongQuantizer& wrong) {
  const Synthetic synthetic{wrong.generator, {wrong.dtype, 37, 224}, 1, 1};
  return test_vector_for(generate(*find_scheme(wrong.scheme), Op::quantize, kPlain, synthetic, 1).input);
}

std::string named_planes(const TestVector& test_vector, const Planes& got) {
  const auto explanation = explain_planes(test_vector.input, test_vector.expected.planes, got);
  return explanation ? describe(*explanation) : "none";
}

class OneWrongQuantizer : public testing::TestWithParam<WrongQuantizer> {};

TEST_P(OneWrongQuantizer, GetsItsName) {
  const TestVector test_vector = weight_for(GetParam());
  const std::string text = named_planes(test_vector, GetParam().quantize(test_vector));
  EXPECT_THAT(text, testing::StartsWith("hypothesis: " + std::string(GetParam().name) + " (predicts "));
}

TEST_P(OneWrongQuantizer, WithAnotherMistakeGetsNone) {
  const TestVector test_vector = weight_for(GetParam());
  Planes planes = GetParam().quantize(test_vector);
  for (size_t i = 3; i < planes[0].bytes.size(); i += 41) planes[0].bytes[i] ^= std::byte{0x24};
  EXPECT_EQ(named_planes(test_vector, planes), "none");
}

TEST_P(OneWrongQuantizer, OnOneElementGetsNone) {
  const TestVector test_vector = weight_for(GetParam());
  Planes planes = test_vector.expected.planes;
  const Planes wrong = GetParam().quantize(test_vector);
  for (size_t i = 0; i < planes[0].bytes.size(); ++i)
    if (planes[0].bytes[i] != wrong[0].bytes[i]) {
      planes[0].bytes[i] = wrong[0].bytes[i];
      break;
    }
  EXPECT_EQ(named_planes(test_vector, planes), "none");
}

INSTANTIATE_TEST_SUITE_P(
    Quantizers, OneWrongQuantizer,
    testing::Values(
        WrongQuantizer{"half_up", "int8_row", "ties rounded up", DType::bfloat16, Generator::halfway,
                       codes_by([](double v) { return std::floor(v + 0.5); })},
        WrongQuantizer{"half_away", "int8_row", "ties rounded away from zero", DType::bfloat16,
                       Generator::halfway, codes_by([](double v) { return std::round(v); })},
        WrongQuantizer{"truncated", "int8_row", "codes rounded toward zero", DType::float32, Generator::noise,
                       codes_by([](double v) { return std::trunc(v); })},
        WrongQuantizer{"floor", "int8_row", "codes rounded down", DType::float32, Generator::noise,
                       codes_by([](double v) { return std::floor(v); })},
        WrongQuantizer{"no_nan", "int8_row", "NaN read as 0", DType::float32, Generator::non_finite,
                       of_weight([](double v) { return std::isnan(v) ? 0 : v; })},
        WrongQuantizer{"as_bf16", "int8_row", "the input rounded to bfloat16 first", DType::float32,
                       Generator::noise, of_weight([](double v) { return round_to(DType::bfloat16, v); })},
        WrongQuantizer{"sibling", "mxfp4_floor", "qdata and scale match mxfp4_ceil", DType::bfloat16,
                       Generator::noise, by_scheme("mxfp4_ceil")},
        WrongQuantizer{"sibling_even", "mxfp8_e4m3_floor", "qdata and scale match mxfp8_e4m3_even",
                       DType::bfloat16, Generator::noise, by_scheme("mxfp8_e4m3_even")}),
    [](const auto& info) { return std::string(info.param.test); });

// The largest element stands in the last of 37 rows, and the scale is that of the first 36.
TEST(PlaneHypotheses, ARangeThatLeavesOutRowsIsNamed) {
  KernelInput input = weight_for({"", "int8_tensor", "", DType::float32, Generator::noise, {}}).input;
  const size_t row = static_cast<size_t>(input.weight.k), last = 36 * row;
  store_float(DType::float32, input.x, last + 5, 40.0);
  const TestVector right = test_vector_for(input);
  std::ranges::fill(std::span(input.x).subspan(last * 4), std::byte{0});
  Planes got = input.scheme->quantize(matrix_of(input), kPlain);
  const auto scale = static_cast<float>(load_float(got[1].dtype, got[1].bytes, 0));
  for (size_t i = last; i < last + row; ++i) {
    const auto value = static_cast<float>(load_float(DType::float32, right.input.x, i));
    const double code = std::nearbyint(value * (1 / scale));
    got[0].bytes[i] = static_cast<std::byte>(static_cast<int8_t>(std::clamp(code, -128.0, 127.0)));
  }
  EXPECT_THAT(named_planes(right, got),
              testing::StartsWith("hypothesis: the range is sought without the rows after the last whole 4"));
}

TEST(PlaneHypotheses, RightPlanesGetNone) {
  for (const char* scheme : {"int8_row", "mxfp4_floor", "fp8_row", "int4_tinygemm_g32"}) {
    const TestVector test_vector = weight_for({"", scheme, "", DType::bfloat16, Generator::noise, {}});
    EXPECT_EQ(named_planes(test_vector, test_vector.expected.planes), "none") << scheme;
  }
}

// Returns x quantized under a policy, its codes rounded by `round` from the quotient in float32.
struct WrongX {
  TestVector right;
  Planes got;
};
WrongX codes_of_x(const char* scheme_name, const char* policy, DType x, Generator generator,
                  double (*round)(DType code, double quotient)) {
  const Scheme& scheme = *find_scheme(scheme_name);
  Synthetic synthetic{generator, {x, 24, 216}, 17, 1};
  synthetic.activation = scheme.policy_named(policy);
  WrongX wrong{test_vector_for(generate(scheme, Op::quantize_activation, kPlain, synthetic, 1).input), {}};
  const KernelInput& input = wrong.right.input;
  wrong.got = wrong.right.expected.planes;
  Plane &codes = wrong.got[0], &scales = wrong.got[1];
  for (size_t i = 0; i < codes.bytes.size(); ++i) {
    const auto scale = static_cast<float>(load_float(scales.dtype, scales.bytes, i / 216));
    const auto value = static_cast<float>(load_float(input.x_dtype, input.x, i));
    const double code = round(codes.dtype, value / scale);
    if (codes.dtype == DType::int8)
      codes.bytes[i] = static_cast<std::byte>(static_cast<int8_t>(std::clamp(code, -128.0, 127.0)));
    else
      store_float(codes.dtype, codes.bytes, i, std::clamp(code, -448.0, 448.0));
  }
  return wrong;
}

TEST(PlaneHypotheses, RoundingsOfXAreNamed) {
  const WrongX away = codes_of_x("int8_row", "dyn_row_sym", DType::bfloat16, Generator::halfway,
                                 [](DType, double q) { return std::round(q); });
  EXPECT_THAT(named_planes(away.right, away.got),
              testing::StartsWith("hypothesis: ties rounded away from zero (predicts "));
  const WrongX twice =
      codes_of_x("fp8_row", "dyn_row", DType::float32, Generator::noise,
                 [](DType code, double q) { return round_to(code, round_to(DType::bfloat16, q)); });
  EXPECT_THAT(named_planes(twice.right, twice.got),
              testing::StartsWith("hypothesis: quotients by the scale rounded to bfloat16 first (predicts "));
}

TEST(PlaneHypotheses, FewValuesAgreeOnly) {
  WrongX away = codes_of_x("int8_row", "dyn_row_sym", DType::bfloat16, Generator::halfway,
                           [](DType, double q) { return std::round(q); });
  KernelInput& input = away.right.input;
  Planes want = away.right.expected.planes;
  input.m = 1;
  input.x.resize(216 * 2);
  for (Planes* planes : {&want, &away.got})
    for (Plane& plane : *planes) {
      plane.bytes.resize(plane.bytes.size() / 17);
      plane.shape[0] = 1;
    }
  for (size_t i = 40; i < 216; ++i) {
    store_float(DType::bfloat16, input.x, i, 0);
    want[0].bytes[i] = away.got[0].bytes[i] = std::byte{0};
  }
  EXPECT_FALSE(explain_planes(input, want, away.got));
  const auto agreeing = explain_planes(input, want, away.got, kTooFew);
  ASSERT_TRUE(agreeing);
  EXPECT_EQ(agreeing->name, "ties rounded away from zero");
}

TEST(PlaneHypotheses, AnotherPolicyOfXIsNamed) {
  const Scheme& scheme = *find_scheme("int8_row");
  Synthetic synthetic{Generator::noise, {DType::bfloat16, 24, 216}, 17, 1};
  synthetic.activation = scheme.policy_named("dyn_row_sym");
  const TestVector test_vector =
      test_vector_for(generate(scheme, Op::quantize_activation, kPlain, synthetic, 1).input);
  const KernelInput& input = test_vector.input;
  Planes other;
  for (const Policy policy : scheme.activations())
    if (policy == "dyn_row_sym_127")
      other = scheme.quantize_activation(input.x_matrix(), policy, input.planes);
  ASSERT_FALSE(other.empty());
  EXPECT_THAT(named_planes(test_vector, other), testing::HasSubstr(" match dyn_row_sym_127 (predicts "));
}

}  // namespace
}  // namespace qcts
