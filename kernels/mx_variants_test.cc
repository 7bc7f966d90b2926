// Fast variants of mx's quantize against the scalar one. Scales by rounding a logarithm up, which they have
// from a table: at every exponent, for largest magnitudes on both sides of where the logarithm stops being
// rounded to its integer. Codes that they find by counting steps or by lowering ties: of 16-bit elements, in
// blocks whose largest magnitude lies at every exponent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/variant_problems.h"

namespace qcts {
namespace {

using namespace variants;

constexpr int kLeastExponent = -149, kMostExponent = 127, kFewer = 3, kMore = 60;
constexpr int64_t kBlock = 32, kRows = kMostExponent - kLeastExponent + 1, kBlocks = kFewer + 1 + kMore;
constexpr int64_t kFewBlocks = 9;  // of a row: eight together and one alone

// A row an exponent, a block a step: a float or more below and above `largest` times that power of two, then
// quarters of it.
std::vector<float> weight_around(float largest) {
  std::vector<float> weight;
  for (int exponent = kLeastExponent; exponent <= kMostExponent; ++exponent)
    for (int step = -kFewer; step <= kMore; ++step) {
      float most = std::ldexp(largest, exponent);
      for (int i = 0; i < std::abs(step); ++i) most = std::nextafterf(most, step < 0 ? 0.0f : INFINITY);
      weight.push_back(most);
      for (int64_t i = 1; i < kBlock; ++i) weight.push_back(most * static_cast<float>(i % 9 - 4) / 4);
    }
  return weight;
}

// The same bytes of every fast variant of quantize as of the scalar one.
void expect_alike(const std::string& member, uint32_t dtype, const Shape& shape, const void* weight) {
  std::vector<uint8_t> want;
  int compared = 0, refused = 0;
  for (const bool scalar : {true, false})
    for (const Implementation& each : registry().implementations()) {
      const qcts_kernel& kernel = *each.kernel;
      if (kernel.op != QCTS_OP_QUANTIZE || std::strcmp(kernel.scheme, "mx") != 0 ||
          (std::strcmp(kernel.variant, "scalar") == 0) != scalar)
        continue;
      if (!each.machine_refusal().empty()) {
        ++refused;
        continue;
      }
      const std::vector<uint8_t> got = quantized(kernel, member, dtype, shape, weight);
      if (scalar) {
        want = got;
        continue;
      }
      ASSERT_EQ(got.size(), want.size());
      const auto differ = std::mismatch(want.begin(), want.end(), got.begin());
      EXPECT_EQ(differ.first, want.end()) << each.name() << ", byte " << differ.first - want.begin();
      ++compared;
    }
  ASSERT_GT(compared + refused, 0) << "no faster variant is listed";
  if (compared == 0) GTEST_SKIP() << "no faster variant runs here";
}

class MxRceil : public testing::TestWithParam<std::tuple<const char*, float>> {};

TEST_P(MxRceil, AgreesWithScalarAtEveryExponent) {
  const auto [member, largest] = GetParam();
  const std::vector<float> weight = weight_around(largest);
  expect_alike(member, QCTS_F32, {0, kRows, kBlocks * kBlock, 0}, weight.data());
}

INSTANTIATE_TEST_SUITE_P(Kernels, MxRceil,
                         testing::Values(std::make_tuple("mxfp4_rceil", 6.0f),
                                         std::make_tuple("mxfp8_e4m3_rceil", 448.0f),
                                         std::make_tuple("mxfp8_e5m2_rceil", 57344.0f),
                                         std::make_tuple("mxfp6_e2m3_rceil", 7.5f),
                                         std::make_tuple("mxfp6_e3m2_rceil", 28.0f)),
                         [](const testing::TestParamInfo<std::tuple<const char*, float>>& info) {
                           return std::string(std::get<0>(info.param));
                         });

// Blocks of 16-bit elements. The first of a block is its largest magnitude, of each exponent and of eight
// fractions in turn; the others are those that lie within ten binades below (of
// bfloat16 all), one in two negative.
std::vector<uint16_t> blocks_at_every_exponent(int fraction_bits) {
  std::vector<uint16_t> weight;
  const int step = 1 << fraction_bits, exponents = 0x8000 >> fraction_bits;
  const int apart = fraction_bits > 7 ? 37 : 1;  // all of float16 would take eight times as long
  for (int exponent = 0; exponent < exponents; ++exponent)
    for (int eighth = 0; eighth < 8; ++eighth) {
      const int largest = exponent * step + (eighth * step / 8 | (eighth % 2 != 0 ? 1 : 0));
      int next = std::max(0, largest - 10 * step);
      do {
        weight.push_back(static_cast<uint16_t>(largest));
        for (int64_t i = 1; i < kBlock; ++i, next += apart)
          weight.push_back(static_cast<uint16_t>(std::min(next, largest) | (i % 2 != 0 ? 0x8000 : 0)));
      } while (next <= largest);
    }
  const size_t row = kBlock * kFewBlocks;
  weight.resize((weight.size() + row - 1) / row * row, 0);
  return weight;
}

class MxCodes : public testing::TestWithParam<std::tuple<std::string, std::string, uint32_t>> {};

TEST_P(MxCodes, AgreeWithScalarAtEveryExponent) {
  const auto [element, mode, dtype] = GetParam();
  const std::string member = element + "_" + mode;
  const std::vector<uint16_t> weight = blocks_at_every_exponent(dtype == QCTS_BF16 ? 7 : 10);
  const Shape shape = {0, static_cast<int64_t>(weight.size()) / (kBlock * kFewBlocks), kBlock * kFewBlocks,
                       0};
  expect_alike(member, dtype, shape, weight.data());
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, MxCodes,
    testing::Combine(testing::Values("mxfp4", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2"),
                     testing::Values("floor", "ceil", "even", "rceil"),
                     testing::Values(uint32_t{QCTS_BF16}, uint32_t{QCTS_F16})),
    [](const testing::TestParamInfo<std::tuple<std::string, std::string, uint32_t>>& info) {
      return std::get<0>(info.param) + "_" + std::get<1>(info.param) +
             (std::get<2>(info.param) == QCTS_BF16 ? "_bf16" : "_f16");
    });

}  // namespace
}  // namespace qcts
