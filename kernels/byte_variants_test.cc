// SPDX-License-Identifier: BSD-3-Clause
// Compares, bit for bit, variants that add products of bytes exactly and end with the same floating-point
// steps. The suites allow rounding, which could hide a code at a neighbour's place or a group's scale on
// another group's sum.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/variant_problems.h"

namespace qcts {
namespace {

using namespace variants;

// Variants built on kernels/vnni/int8_linear.h that run on this machine; AVX2's handles codes of at most four
// bits.
std::vector<Implementation> byte_variants(const std::string& member) {
  const bool row = member == "int8_row";
  const std::string family = row ? member : "intx", policy = row ? "dyn_row_sym" : "dyn_token_asym";
  const bool narrow = member.rfind("intx_b3", 0) == 0 || member.rfind("intx_b4", 0) == 0;
  std::vector<Implementation> found;
  for (const Implementation& each : registry().implementations()) {
    const std::string variant = each.kernel->variant;
    if (each.kernel->op == QCTS_OP_LINEAR && family_of(*each.kernel) == family &&
        policy_of(*each.kernel) == policy && each.machine_refusal().empty() &&
        (variant == "avxvnni" || variant == "avx512vnni" || variant == "amx" ||
         (variant == "avx2" && narrow)))
      found.push_back(each);
  }
  return found;
}

// Values of k that leave whole and partial panels of 512, and parts of tiles, groups and blocks.
std::vector<int64_t> ks_of(const std::string& member) {
  const int64_t group = group_of("intx", member, {});
  if (group == 0) return {1, 31, 33, 64, 65, 511, 512, 577, 1100};
  return {group, 2 * group, (600 / group + 2) * group};
}

class ByteVariants : public testing::TestWithParam<std::tuple<std::string, int64_t>> {};

// Expects the same answer from all variants to problems modified by `change`.
void compare(const std::string& member, int64_t m, void (*change)(Problem&)) {
  const std::vector<Implementation> all = byte_variants(member);
  if (all.size() < 2) GTEST_SKIP() << "fewer than two of them run here";
  for (const int64_t k : ks_of(member))
    for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}}) {
      const auto answer = [&](const Implementation& each, uint32_t threads) {
        Problem problem(*each.kernel, member, {m, 83, k, 0}, dtype, threads);
        change(problem);
        return problem.run(*each.kernel);
      };
      const std::vector<uint8_t> want = answer(all[0], 1);
      for (size_t i = 1; i < all.size(); ++i)
        EXPECT_EQ(answer(all[i], 2), want)
            << all[i].name() << " against " << all[0].name() << ", k " << k << ", dtype " << dtype;
    }
}

TEST_P(ByteVariants, AnswerBitForBitAlike) {
  const auto& [member, m] = GetParam();
  compare(member, m, [](Problem&) {});
}

// Sets codes and x to their extremes, constant for 64 k at a time, which would overflow a sum of few bits.
void go_to_extremes(Problem& given) {
  const qcts_problem& p = given.problem;
  const bool bytes = given.member == "int8_row" || given.member.rfind("intx_b8", 0) == 0;
  const int min = bytes ? -128 : given.member.rfind("intx_b3", 0) == 0 ? -4 : -8;
  auto* codes = static_cast<int8_t*>(p.planes[0].data);
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k)
      codes[n * p.k + k] = static_cast<int8_t>((k / 64 + n) % 2 == 0 ? min : -1 - min);
  auto* x = static_cast<uint8_t*>(const_cast<void*>(p.x));
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t k = 0; k < p.k; ++k) {
      const bool one = (k / 64 + m) % 3 != 0;  // codes are 0 or 1, or else 0 or -1
      const uint32_t bits = !one ? 0 : m % 2 == 0 ? 0x3F800000 : 0xBF800000;
      std::memcpy(x + m * p.ldx_bytes + k * (p.x_dtype == QCTS_F32 ? 4 : 2),
                  reinterpret_cast<const char*>(&bits) + (p.x_dtype == QCTS_F32 ? 0 : 2),
                  p.x_dtype == QCTS_F32 ? 4 : 2);
    }
}

TEST_P(ByteVariants, HoldTheLargestSums) {
  const auto& [member, m] = GetParam();
  compare(member, m, go_to_extremes);
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, ByteVariants,
    testing::Combine(testing::Values("int8_row", "intx_b4_axis_asym", "intx_b8_axis_asym", "intx_b4_g8_asym",
                                     "intx_b4_g24_asym", "intx_b4_g32_asym", "intx_b8_g32_asym",
                                     "intx_b4_g64_asym", "intx_b8_g64_asym", "intx_b3_g96_asym",
                                     "intx_b4_g128_asym", "intx_b8_g128_asym", "intx_b4_g256_asym",
                                     "intx_b8_g256_asym"),
                     testing::Values(1, 2, 15, 16, 17, 33, 48, 49, 131, 530)),
    [](const testing::TestParamInfo<std::tuple<std::string, int64_t>>& info) {
      return std::get<0>(info.param) + "_m" + std::to_string(std::get<1>(info.param));
    });

}  // namespace
}  // namespace qcts
