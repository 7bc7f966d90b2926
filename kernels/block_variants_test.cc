// SPDX-License-Identifier: BSD-3-Clause
// Compares fast variants of quantize with the scalar one, for blocks that are scaled by their largest
// magnitude. mx's scales round a logarithm up and are looked up: tested at every exponent, with largest
// magnitudes on both sides of the point where the logarithm no longer rounds to its integer. Codes computed
// by counting steps, by lowering ties or by bounds times a scale: tested with 16-bit elements, in blocks
// whose largest magnitude takes every exponent.
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

constexpr int kMinExponent = -149, kMaxExponent = 127, kFewer = 3, kMore = 60;
constexpr int64_t kMxBlock = 32, kRows = kMaxExponent - kMinExponent + 1, kBlocks = kFewer + 1 + kMore;

// One row for each exponent, one block for each step: the largest element is `largest` times that power of
// two, moved by `step` floats; the others are quarters of it.
std::vector<float> weight_around(float largest) {
  std::vector<float> weight;
  for (int exponent = kMinExponent; exponent <= kMaxExponent; ++exponent)
    for (int step = -kFewer; step <= kMore; ++step) {
      float max = std::ldexp(largest, exponent);
      for (int i = 0; i < std::abs(step); ++i) max = std::nextafterf(max, step < 0 ? 0.0f : INFINITY);
      weight.push_back(max);
      for (int64_t i = 1; i < kMxBlock; ++i) weight.push_back(max * static_cast<float>(i % 9 - 4) / 4);
    }
  return weight;
}

// Expects the same bytes of every fast variant of quantize as of the scalar one.
void expect_alike(const std::string& family, const std::string& member, uint32_t dtype, const Shape& shape,
                  const void* weight) {
  std::vector<uint8_t> want;
  int compared = 0, refused = 0;
  for (const bool scalar : {true, false})
    for (const Implementation& each : registry().implementations()) {
      const qcts_kernel& kernel = *each.kernel;
      if (kernel.op != QCTS_OP_QUANTIZE || kernel.scheme != family ||
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
  expect_alike("mx", member, QCTS_F32, {0, kRows, kBlocks * kMxBlock, 0}, weight.data());
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

struct Blocks {
  int64_t block;  // elements
  int64_t row;    // elements of a row: some of its blocks go together and some alone
  int fractions;  // of each exponent
};

// Blocks of 16-bit elements. The first element of a block is its largest magnitude, and takes each exponent
// from first_exponent to last_exponent with several fractions. The others lie within ten binades below (for
// bfloat16, all of them), with both signs.
std::vector<uint16_t> blocks_at_exponents(const Blocks& of, int fraction_bits, int first_exponent,
                                          int last_exponent) {
  std::vector<uint16_t> weight;
  const int step = 1 << fraction_bits;
  const int apart = fraction_bits > 7 ? 37 : 1;  // all of float16 would take eight times as long
  for (int exponent = first_exponent; exponent <= last_exponent; ++exponent)
    for (int part = 0; part < of.fractions; ++part) {
      const int largest = exponent * step + (part * step / of.fractions | (part % 2 != 0 ? 1 : 0));
      int next = std::max(0, largest - 10 * step);
      do {
        weight.push_back(static_cast<uint16_t>(largest));
        for (int64_t i = 1; i < of.block; ++i) {
          weight.push_back(static_cast<uint16_t>(std::min(next, largest) | (i % 2 != 0 ? 0x8000 : 0)));
          if (i % 2 == 0) next += apart;
        }
      } while (next <= largest);
    }
  return weight;
}

void expect_alike_at_exponents(const std::string& family, const std::string& member, uint32_t dtype,
                               const Blocks& blocks, int first_exponent, int last_exponent) {
  std::vector<uint16_t> weight =
      blocks_at_exponents(blocks, dtype == QCTS_BF16 ? 7 : 10, first_exponent, last_exponent);
  const auto row = static_cast<size_t>(blocks.block * blocks.row);
  weight.resize((weight.size() + row - 1) / row * row, 0);
  expect_alike(family, member, dtype,
               {0, static_cast<int64_t>(weight.size() / row), static_cast<int64_t>(row), 0}, weight.data());
}

int last_exponent_of(uint32_t dtype) { return dtype == QCTS_BF16 ? 255 : 31; }
std::string dtype_of(uint32_t dtype) { return dtype == QCTS_BF16 ? "bf16" : "f16"; }

class MxCodes : public testing::TestWithParam<std::tuple<std::string, std::string, uint32_t>> {};

TEST_P(MxCodes, AgreeWithScalarAtEveryExponent) {
  const auto [element, mode, dtype] = GetParam();
  expect_alike_at_exponents("mx", element + "_" + mode, dtype, {kMxBlock, 9, 8}, 0, last_exponent_of(dtype));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, MxCodes,
    testing::Combine(testing::Values("mxfp4", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2"),
                     testing::Values("floor", "ceil", "even", "rceil"),
                     testing::Values(uint32_t{QCTS_BF16}, uint32_t{QCTS_F16})),
    [](const testing::TestParamInfo<std::tuple<std::string, std::string, uint32_t>>& info) {
      return std::get<0>(info.param) + "_" + std::get<1>(info.param) + "_" +
             dtype_of(std::get<2>(info.param));
    });

class DtypeOfBlocks : public testing::TestWithParam<uint32_t> {};

// A tensor has 256 scalers or a multiple. A row has 512, more than any variant takes at once.
TEST_P(DtypeOfBlocks, Nf4AgreesWithScalarAtEveryExponent) {
  expect_alike_at_exponents("nf4", "nf4", GetParam(), {64, 512, 8}, 0, last_exponent_of(GetParam()));
}
TEST_P(DtypeOfBlocks, Nf4AgreesWithScalarAtEveryFraction) {
  const int one = last_exponent_of(GetParam()) / 2;
  expect_alike_at_exponents("nf4", "nf4", GetParam(), {64, 512, 128}, one, one + 1);
}
// At two levels, the scale of the tensor follows the largest magnitude, so a tensor covers only a few
// exponents.
TEST_P(DtypeOfBlocks, Nvfp4AgreesWithScalarAtEveryExponent) {
  for (int first = 0; first <= last_exponent_of(GetParam()); first += 16)
    for (const char* member : {"nvfp4_one_level", "nvfp4_two_level"})
      expect_alike_at_exponents("nvfp4", member, GetParam(), {16, 19, 4}, first,
                                std::min(first + 15, last_exponent_of(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Kernels, DtypeOfBlocks, testing::Values(uint32_t{QCTS_BF16}, uint32_t{QCTS_F16}),
                         [](const testing::TestParamInfo<uint32_t>& info) { return dtype_of(info.param); });

}  // namespace
}  // namespace qcts
