// Scales of mx by rounding a logarithm up, from a table in the fast variants: against the scalar one at every
// exponent, for largest magnitudes on both sides of where the logarithm stops being rounded to its integer.
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

// All planes, one behind the other.
std::vector<uint8_t> quantized(const qcts_kernel& kernel, const std::string& member,
                               const std::vector<float>& weight) {
  qcts_problem p = {};
  p.struct_size = sizeof p;
  p.op = QCTS_OP_QUANTIZE;
  p.threads = 1;
  p.scheme = kernel.scheme;
  p.scheme_name = member.c_str();
  p.layout = "plain";
  p.activation = "weight_only";
  p.n = kRows;
  p.k = kBlocks * kBlock;
  p.group = kBlock;
  p.w_dtype = p.x_dtype = QCTS_F32;
  p.x = weight.data();
  p.ldx_bytes = p.k * 4;
  PlaneLaw laws[kMostPlanes];
  qcts_plane planes[kMostPlanes] = {};
  p.n_out_planes = plane_laws(p, kernel.scheme, "plain", laws);
  p.out_planes = planes;
  std::vector<size_t> ends;
  for (uint32_t i = 0; i < p.n_out_planes; ++i) {
    planes[i].struct_size = sizeof planes[i];
    planes[i].name = laws[i].name;
    planes[i].dtype = laws[i].dtype;
    planes[i].ndim = laws[i].ndim;
    int64_t stride = dtype_bytes(laws[i].dtype);
    for (uint32_t d = laws[i].ndim; d-- > 0; stride *= laws[i].shape[d])
      planes[i].shape[d] = laws[i].shape[d], planes[i].stride_bytes[d] = stride;
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<size_t>(stride));
  }
  std::vector<uint8_t> bytes(ends.back(), 0xEE);
  for (uint32_t i = 0; i < p.n_out_planes; ++i) planes[i].data = bytes.data() + (i == 0 ? 0 : ends[i - 1]);
  char why[256];
  EXPECT_EQ(kernel.supports(&p, why, sizeof why), QCTS_OK) << why;
  EXPECT_EQ(kernel.run(&p), QCTS_OK);
  return bytes;
}

class MxRceil : public testing::TestWithParam<std::tuple<const char*, float>> {};

TEST_P(MxRceil, AgreesWithScalarAtEveryExponent) {
  const auto [member, largest] = GetParam();
  const std::vector<float> weight = weight_around(largest);
  std::vector<uint8_t> want;
  int compared = 0;
  for (const bool scalar : {true, false})
    for (const Implementation& each : registry().implementations()) {
      const qcts_kernel& kernel = *each.kernel;
      if (kernel.op != QCTS_OP_QUANTIZE || std::strcmp(kernel.scheme, "mx") != 0 ||
          (std::strcmp(kernel.variant, "scalar") == 0) != scalar || !each.machine_refusal().empty())
        continue;
      const std::vector<uint8_t> got = quantized(kernel, member, weight);
      if (scalar) {
        want = got;
        continue;
      }
      ASSERT_EQ(got.size(), want.size());
      const auto differ = std::mismatch(want.begin(), want.end(), got.begin());
      EXPECT_EQ(differ.first, want.end()) << each.name() << ", byte " << differ.first - want.begin();
      ++compared;
    }
  if (compared == 0) GTEST_SKIP() << "no faster variant runs here";
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

}  // namespace
}  // namespace qcts
