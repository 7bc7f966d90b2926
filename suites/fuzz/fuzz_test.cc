// SPDX-License-Identifier: BSD-3-Clause
// Runs the fuzz targets on their seeds and on cheap mutations of them in every build: a short form of the
// search that libFuzzer does, and a check that the targets get past the first validation.
#include "suites/fuzz/targets.h"

#include <gtest/gtest.h>

namespace qcts::fuzz {
namespace {

class FuzzTarget : public ::testing::TestWithParam<Target> {
 protected:
  const std::filesystem::path root_ = source_path("");
  const std::vector<Seed> seeds_ = seeds_of(
      GetParam(),
      {root_ / "fixtures/golden", root_ / "fixtures/malformed", root_ / "reference/formats/testdata"});
};

TEST_P(FuzzTarget, TakesEverySeedWithoutAFinding) {
  size_t accepted = 0;
  for (const Seed& seed : seeds_) {
    SCOPED_TRACE(seed.name);
    EXPECT_NO_THROW(accepted += GetParam().use(seed.bytes));
  }
  EXPECT_GT(accepted, 0u) << "nothing gets past the first checks";
  EXPECT_LT(accepted, seeds_.size()) << "every seed is accepted";
}

TEST_P(FuzzTarget, TakesMutantsOfItsSeedsWithoutAFinding) {
  uint64_t state = 7;
  const auto below =
      [&state](uint64_t count) {  // 64-bit linear congruential generator of Numerical Recipes, upper half
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % count;
      };
  size_t refused = 0, tried = 0;
  for (int round = 0; round < 10; ++round) {
    for (const Seed& seed : seeds_) {
      auto bytes = seed.bytes;
      for (uint64_t edits = 1 + below(3); edits > 0; --edits)
        bytes[below(bytes.size())] = static_cast<std::byte>(below(2) == 0 ? below(256) : 255 * below(2));
      SCOPED_TRACE(seed.name);
      EXPECT_NO_THROW(refused += !GetParam().use(bytes));
      ++tried;
    }
  }
  EXPECT_GT(refused, tried / 4);
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, ::testing::ValuesIn(targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace qcts::fuzz
