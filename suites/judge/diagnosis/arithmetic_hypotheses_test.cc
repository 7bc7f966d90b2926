// SPDX-License-Identifier: BSD-3-Clause
// Protects the names of mistakes between codes and y: roundings in another order, sums that saturate, and a
// bias that follows the rows.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"
#include "suites/judge/diagnosis/answer_hypotheses.h"

namespace qcts {
namespace {

using WeightOf = std::function<double(const ExactWeight&, double of_tensor)>;

double float32_of(double value) { return static_cast<double>(static_cast<float>(value)); }

// Returns the name that y [n, k] of a dequantize gets, each element being `of` its weight, rounded to y's
// type.
std::string name_of_weights(const char* scheme_name, DType dtype, const WeightOf& of) {
  const Scheme& scheme = *find_scheme(scheme_name);
  const Synthetic synthetic{Generator::noise, {dtype, 48, 256}, 1, 1};
  const TestVector test_vector =
      test_vector_for(generate(scheme, Op::dequantize, kPlain, synthetic, 1).input);
  const KernelInput& input = test_vector.input;
  const auto whole = std::ranges::find(input.planes, "per_tensor_scale", &Plane::name);
  const double of_tensor = whole == input.planes.end() ? 1 : load_float(whole->dtype, whole->bytes, 0);
  std::vector<std::byte> y = test_vector.expected.y;
  std::vector<ExactWeight> row(256);
  for (size_t r = 0; r < 48; ++r) {
    scheme.exact_row(input.planes, input.weight, static_cast<int64_t>(r), row);
    for (size_t c = 0; c < 256; ++c) store_float(dtype, y, r * 256 + c, of(row[c], of_tensor));
  }
  const Comparison compared = compare_bitwise(dtype, test_vector.expected.y, y);
  const auto explanation = explain_answer(seen_dequantized(input, test_vector.expected.y, y),
                                          answer_hypotheses, compared.differing);
  return explanation ? describe(*explanation) : "none";
}

TEST(ArithmeticHypotheses, AnotherOrderOfScalesIsNamed) {
  EXPECT_THAT(name_of_weights("nvfp4_two_level", DType::float32,
                              [](const ExactWeight& w, double whole) {
                                return float32_of(float32_of(w.code * (w.scale / whole)) * whole);
                              }),
              testing::StartsWith("hypothesis: the code multiplied by its block's scale first"));
  EXPECT_EQ(
      name_of_weights("nvfp4_two_level", DType::float32,
                      [](const ExactWeight& w, double) { return float32_of(w.code * float32_of(w.scale)); }),
      "none");  // the right order
}

TEST(ArithmeticHypotheses, ARoundingTooManyIsNamed) {
  for (const char* scheme : {"int4_tinygemm_g32", "int4_plain_g32"}) {
    EXPECT_THAT(name_of_weights(
                    scheme, DType::float32,
                    [](const ExactWeight& w, double) { return float32_of(float32_of(w.product) + w.zero); }),
                testing::StartsWith("hypothesis: product rounded to float32 before the zero is added"));
    EXPECT_EQ(name_of_weights(scheme, DType::float32,
                              [](const ExactWeight& w, double) { return float32_of(w.product + w.zero); }),
              "none");  // the right arithmetic
  }
}

// A kernel of dynamic int8 whose y a test computes from the codes.
TestVector integer_linear(int64_t m) {
  const Scheme& scheme = *find_scheme("int8_row");
  Synthetic synthetic{Generator::noise, {DType::bfloat16, 37, 216}, m, 1};
  synthetic.activation = scheme.policy_named("dyn_row_sym");
  return test_vector_for(generate(scheme, Op::linear, kPlain, synthetic, 1).input);
}

std::string name_of_y(const TestVector& test_vector, const std::vector<double>& y) {
  const KernelInput& input = test_vector.input;
  const LinearReference reference(input);
  const Expectation expectation(test_vector, &reference, {});
  std::vector<std::byte> bytes(y.size() * dtype_bytes(input.y_dtype));
  for (size_t i = 0; i < y.size(); ++i) store_float(input.y_dtype, bytes, i, y[i]);
  const Finding finding = expectation.judge({bytes, {}});
  if (!finding.mismatch) return "right";
  const auto explanation =
      explain_answer(seen_linear(input, expectation, {}, bytes), answer_hypotheses, finding.mismatch->count);
  return explanation ? describe(*explanation) : "none";
}

// u8 codes of x, pairs of products held in 16 bits.
std::vector<double> saturating_y(const KernelInput& input, double low, double high) {
  const Planes x = input.scheme->quantize_activation(input.x_matrix(), input.activation, input.planes);
  const auto n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  std::vector<ExactWeight> row(k);
  std::vector<double> y(static_cast<size_t>(input.m) * n);
  for (size_t i = 0; i < y.size(); ++i) {
    input.scheme->exact_row(input.planes, input.weight, static_cast<int64_t>(i % n), row);
    double sum = 0;
    for (size_t c = 0; c < k; c += 2) {
      double pair = 0;
      for (const size_t at : {c, c + 1}) {
        const auto code = static_cast<int8_t>(x[0].bytes[i / n * k + at]);
        pair += (code + 128) * row[at].code;
        sum -= 128 * row[at].code;
      }
      sum += std::clamp(pair, low, high);
    }
    const double scale = load_float(x[1].dtype, x[1].bytes, i / n) * row[0].scale;
    const double bias = input.bias.empty() ? 0 : load_float(input.bias_dtype, input.bias, i % n);
    y[i] = sum * scale + bias;
  }
  return y;
}

TEST(ArithmeticHypotheses, SaturatedPairsAreNamed) {
  const TestVector test_vector = integer_linear(64);
  EXPECT_THAT(name_of_y(test_vector, saturating_y(test_vector.input, -32768, 32767)),
              testing::StartsWith("hypothesis: pairs of products saturated to 16 bits (predicts "));
  EXPECT_EQ(name_of_y(test_vector, saturating_y(test_vector.input, -1e9, 1e9)), "right");
  EXPECT_EQ(name_of_y(test_vector, saturating_y(test_vector.input, -16384, 16383)), "none");
}

TEST(ArithmeticHypotheses, ABiasThatFollowsTheRowsIsNamed) {
  const TestVector test_vector = integer_linear(5);
  const KernelInput& input = test_vector.input;
  ASSERT_FALSE(input.bias.empty());
  std::vector<double> y = saturating_y(input, -1e9, 1e9);
  for (size_t i = 0; i < y.size(); ++i)
    y[i] +=
        load_float(input.bias_dtype, input.bias, i / 37) - load_float(input.bias_dtype, input.bias, i % 37);
  EXPECT_THAT(name_of_y(test_vector, y), testing::StartsWith("hypothesis: bias of column r added to row r"));
}

}  // namespace
}  // namespace qcts
