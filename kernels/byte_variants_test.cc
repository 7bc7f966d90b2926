// Variants that add products of bytes exactly, and end in the same floating point, against each other bit for
// bit. The suites allow rounding; a code beside its place, or a group's scale at another's sum, may hide in
// it.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/variant_problems.h"

namespace qcts {
namespace {

using namespace variants;

// Of kernels/vnni_int8_linear.h, those that run here.
std::vector<Implementation> byte_variants(const std::string& family, const std::string& policy) {
  std::vector<Implementation> found;
  for (const Implementation& each : registry().implementations()) {
    const std::string variant = each.kernel->variant;
    if (each.kernel->op == QCTS_OP_LINEAR && family_of(*each.kernel) == family &&
        policy_of(*each.kernel) == policy && each.machine_refusal().empty() &&
        (variant == "avxvnni" || variant == "avx512vnni" || variant == "amx"))
      found.push_back(each);
  }
  return found;
}

// k that leave whole and part panels of 512, and parts of tiles, groups and blocks.
std::vector<int64_t> ks_of(const std::string& member) {
  const int64_t group = group_of("intx", member, {});
  if (group == 0) return {1, 31, 33, 64, 65, 511, 512, 577, 1100};
  return {group, 2 * group, (600 / group + 2) * group};
}

class ByteVariants : public testing::TestWithParam<std::tuple<std::string, int64_t>> {};

TEST_P(ByteVariants, AnswerBitForBitAlike) {
  const auto& [member, m] = GetParam();
  const bool row = member == "int8_row";
  const std::vector<Implementation> all =
      row ? byte_variants("int8_row", "dyn_row_sym") : byte_variants("intx", "dyn_token_asym");
  if (all.size() < 2) GTEST_SKIP() << "fewer than two of them run here";
  for (const int64_t k : ks_of(member))
    for (const uint32_t dtype : {uint32_t{QCTS_F32}, uint32_t{QCTS_BF16}}) {
      const Shape shape = {m, 83, k, 0};
      const std::vector<uint8_t> want = Problem(*all[0].kernel, member, shape, dtype, 1).run(*all[0].kernel);
      for (size_t i = 1; i < all.size(); ++i)
        EXPECT_EQ(Problem(*all[i].kernel, member, shape, dtype, 2).run(*all[i].kernel), want)
            << all[i].name() << " against " << all[0].name() << ", k " << k << ", dtype " << dtype;
    }
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
