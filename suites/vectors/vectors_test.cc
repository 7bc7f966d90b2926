// SPDX-License-Identifier: BSD-3-Clause
// Protects the exported vectors: each flag is found where it holds and nowhere else, ids are unique, and the
// vectors have what others look for.
#include "suites/vectors/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "reference/numerics/soft_float.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"

namespace qcts {
namespace {

// The flags of a weight of two blocks of mxfp4_even, in which these elements of the first block are changed.
std::vector<VectorFlag> flags_with(const std::vector<double>& first) {
  const Scheme& scheme = *find_scheme("mxfp4_even");
  std::vector<std::byte> x(64 * 4);
  for (size_t i = 0; i < 64; ++i) store_float(DType::float32, x, i, i == 40 ? 4 : 1);
  for (size_t i = 0; i < first.size(); ++i) store_float(DType::float32, x, i, first[i]);
  const Matrix weight = {DType::float32, 1, 64, x};
  return flags_of(scheme, weight, scheme.quantize(weight));
}

std::vector<double> filled(double value) { return std::vector<double>(32, value); }

using Flags = std::vector<VectorFlag>;

TEST(VectorFlags, AreFoundWhereTheyHold) {
  EXPECT_EQ(flags_with({4}), Flags{});
  EXPECT_EQ(flags_with({4, 2.5}), Flags{VectorFlag::tie});
  EXPECT_EQ(flags_with({4, 2.4375}), Flags{});  // nearer to 2
  EXPECT_EQ(flags_with({-4, -5}), Flags{VectorFlag::tie});
  EXPECT_EQ(flags_with(filled(0)), Flags{VectorFlag::scale_zero});
  EXPECT_EQ(flags_with({4, -0.0}), Flags{VectorFlag::negative_zero});
  EXPECT_EQ(flags_with({0x1.fffffep1}), Flags{VectorFlag::just_below_power_of_two});
  EXPECT_EQ(flags_with({0x1.fffffcp1}), Flags{});
  EXPECT_EQ(flags_with({HUGE_VAL}), Flags{VectorFlag::infinity});
  EXPECT_EQ(flags_with({std::nan("")}), Flags{VectorFlag::nan});
  EXPECT_EQ(flags_with({4, 0x1p-127}), Flags{VectorFlag::subnormal});
}

TEST(VectorFlags, KnowHalvesOfIntegers) {
  const Scheme& scheme = *find_scheme("int4_plain_sym_g32");  // scale: the largest magnitude / 8
  for (const bool tie : {true, false}) {
    std::vector<std::byte> x(32 * 4);
    store_float(DType::float32, x, 0, -8);
    store_float(DType::float32, x, 1, tie ? 2.5 : 2.25);
    const Matrix weight = {DType::float32, 1, 32, x};
    const Flags flags = flags_of(scheme, weight, scheme.quantize(weight));
    EXPECT_EQ(std::ranges::find(flags, VectorFlag::tie) != flags.end(), tie);
  }
}

TEST(Vectors, OfASchemeHaveAllThatOthersLookFor) {
  const Fixtures fixtures = load_fixtures(fixtures_folder(), Files::known);
  for (const char* name : {"mxfp4_floor", "nvfp4_one_level", "int4_plain_g32", "int4_tinygemm_g32"}) {
    std::set<std::string> ids;
    std::set<VectorFlag> flags;
    size_t goldens = 0;
    const std::vector<VectorGroup> groups = make_vectors(*find_scheme(name), fixtures);
    ASSERT_EQ(groups.size(), 2u) << name;
    for (const VectorGroup& group : groups)
      for (const ExportedVector& vector : group.vectors) {
        EXPECT_TRUE(ids.insert(vector.id).second) << vector.id;
        EXPECT_FALSE(vector.hunts.empty()) << vector.id;
        flags.insert(vector.flags.begin(), vector.flags.end());
        goldens += !vector.golden.empty();
      }
    EXPECT_GE(ids.size(), 80u) << name;
    EXPECT_GT(goldens, 0u) << name;
    for (const VectorFlag flag : {VectorFlag::tie, VectorFlag::just_below_power_of_two,
                                  VectorFlag::negative_zero, VectorFlag::infinity, VectorFlag::nan})
      EXPECT_TRUE(flags.contains(flag)) << name << " " << flag_name(flag);
  }
}

TEST(Vectors, AreNamedByPatterns) {
  EXPECT_EQ(schemes_matching("mxfp4_*,nvfp4_one_level").size(), 5u);
  EXPECT_THROW(schemes_matching("mxfp4_*,mxfp5_*"), UsageError);
  EXPECT_THROW(schemes_matching("float_weight"), UsageError);  // it quantizes no weight
}

TEST(Vectors, HaveAHashOfAllTheirBytes) {
  VectorGroup group = make_vectors(*find_scheme("mxfp4_even"), Fixtures()).front();
  const std::string before = group.sha256();
  group.vectors.back().y.back() ^= std::byte{1};
  EXPECT_NE(group.sha256(), before);
}

}  // namespace
}  // namespace qcts
