// SPDX-License-Identifier: BSD-3-Clause
// Tests the bound under activation policies: torchao's simulated W8A8 epilogue always passes, and fails with
// one fault in it.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "reference/oracle/bound.h"

namespace qcts {
namespace {

constexpr LinearStages kTorchao = {
    .accumulator = DType::int32, .partial_cast = DType::bfloat16, .scale_after_sum = true};
constexpr LinearDTypes kTypes = {DType::float64, DType::float32, DType::bfloat16};

float bf16(float v) { return round_to(DType::bfloat16, v); }

struct Row {
  std::vector<ExactWeight> weights;
  std::vector<double> x;   // dequantized by the policy
  std::vector<int> codes;  // codes of x
  float scale = 0;         // scale of x
  int zero_point = 0;
  double bias = 0;

  LinearOracle oracle() const {
    return linear_oracle(weights, x, bias, 0, zero_point * static_cast<double>(scale));
  }
};

Row make_row(uint64_t seed, int64_t k) {
  const Scheme& scheme = *find_scheme("int8_row");
  const WeightShape shape = {DType::bfloat16, 1, k};
  const std::vector<std::byte> weight = noise_bytes(seed, static_cast<size_t>(k), DType::bfloat16, 0x1p-4);
  Row row;
  row.weights.resize(static_cast<size_t>(k));
  scheme.exact_row(scheme.quantize({DType::bfloat16, 1, k, weight}), shape, 0, row.weights);
  // All positive, so that the zero point is at the end of the range and its term is as large as the sum.
  std::vector<std::byte> values = noise_bytes(seed + 1, static_cast<size_t>(k), DType::bfloat16);
  for (int64_t i = 0; i < k; ++i)
    store_float(DType::bfloat16, values, i, std::fabs(load_float(DType::bfloat16, values, i)) + 3);
  const Matrix x = {DType::bfloat16, 1, k, values};
  const Planes planes = scheme.quantize_activation(x, scheme.policy_named("dyn_row_asym"), {});
  row.x.resize(static_cast<size_t>(k));
  scheme.exact_activation(planes, x, scheme.policy_named("dyn_row_asym"), 0, row.x);
  for (std::byte code : plane(planes, "qdata").bytes) row.codes.push_back(static_cast<int8_t>(code));
  row.scale = static_cast<float>(load_float(DType::float32, plane(planes, "scale").bytes, 0));
  row.zero_point = static_cast<int8_t>(plane(planes, "zero_point").bytes[0]);
  row.bias = round_to(DType::bfloat16, noise(seed + 2, 0));
  return row;
}

enum class Fault { none, no_zero_point, zero_point_added, last_dropped, scale_of_another };

double torchao(const Row& row, Fault fault) {
  int64_t sum = 0, weights = 0;
  for (size_t k = 0; k < row.codes.size(); ++k) {
    if (fault == Fault::last_dropped && k + 1 == row.codes.size()) break;
    sum += row.codes[k] * static_cast<int64_t>(row.weights[k].code);
    weights += static_cast<int64_t>(row.weights[k].code);
  }
  const float scaled = bf16(static_cast<float>(sum) * row.scale);
  float term = bf16(static_cast<float>(row.zero_point) * row.scale * static_cast<float>(weights));
  if (fault == Fault::no_zero_point) term = 0;
  if (fault == Fault::zero_point_added) term = -term;
  const float scale =
      static_cast<float>(row.weights[0].scale) * (fault == Fault::scale_of_another ? 1.25f : 1);
  return bf16(bf16(scaled - term) * scale + static_cast<float>(row.bias));
}

TEST(LinearBoundOfActivations, LetsTorchaosEpiloguePass) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Row row = make_row(100 * seed, 64 + static_cast<int64_t>(seed % 5) * 100);
    ASSERT_NE(row.zero_point, 0);
    const LinearOracle oracle = row.oracle();
    const LinearBound bound = linear_bound(oracle, kTorchao, kTypes);
    const double got = torchao(row, Fault::none);
    ASSERT_TRUE(accepts(oracle, bound, got)) << "row " << seed << ": y " << oracle.y << ", got " << got
                                             << ", allowed " << bound.low << " to " << bound.high;
  }
}

class ActivationFault : public testing::TestWithParam<Fault> {};

TEST_P(ActivationFault, IsRefusedInOneOf32Outputs) {
  int refused = 0;
  for (uint64_t output = 0; output < 32; ++output) {
    const Row row = make_row(50'000 + 100 * output, 256);
    const LinearOracle oracle = row.oracle();
    refused += !accepts(oracle, linear_bound(oracle, kTorchao, kTypes), torchao(row, GetParam()));
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Planted, ActivationFault,
                         testing::Values(Fault::no_zero_point, Fault::zero_point_added, Fault::last_dropped,
                                         Fault::scale_of_another));

// Without the offset, the bound would not cover the two magnitudes that a zero point separates.
TEST(LinearBoundOfActivations, KnowsTheMagnitudesBeforeTheZeroPointIsTakenOff) {
  const Row row = make_row(9, 256);
  const LinearOracle oracle = row.oracle();
  EXPECT_GT(oracle.group_coded + oracle.group_offset, oracle.group_product);
  LinearOracle plain = oracle;
  plain.scaled_x = false;
  EXPECT_GT(linear_bound(oracle, kTorchao, kTypes).error, linear_bound(plain, kTorchao, kTypes).error);
}

}  // namespace
}  // namespace qcts
