// SPDX-License-Identifier: BSD-3-Clause
// Tests the read budget: grants, refusals, and budgets of several files joined.
#include "reference/formats/io/read_budget.h"

#include <gtest/gtest.h>

#include "reference/formats/refusal.h"

namespace qcts {
namespace {

constexpr uint64_t kMiB = 1u << 20;

TEST(ReadBudget, GrantsBytesBesideTheFreeOnes) {
  ReadBudget budget(kMiB);
  budget.take_bytes(62 * kMiB);
  EXPECT_FALSE(budget.is_spent());
  EXPECT_THROW(budget.take_bytes(1), Refused);
  EXPECT_TRUE(budget.is_spent());
}

TEST(ReadBudget, TakesBackWhatIsFreed) {
  ReadBudget budget;
  budget.take_bytes(60 * kMiB);
  budget.give_back_bytes(10 * kMiB);
  budget.take_bytes(11 * kMiB);
  EXPECT_EQ(budget.bytes(), 61 * kMiB);
  EXPECT_THROW(budget.take_bytes(1), Refused);
}

TEST(ReadBudget, GrantsAStepForFourBytesOfTheFile) {
  ReadBudget budget(0, 400);
  budget.take_steps(10'000'100);
  EXPECT_THROW(budget.take_steps(1), Refused);
}

TEST(ReadBudget, OfSeveralFilesIsTheirSum) {
  ReadBudget budget = ReadBudget::none();
  ReadBudget first, second(kMiB);
  first.take_bytes(61 * kMiB);
  budget.join(first);
  budget.join(second);
  budget.take_bytes(62 * kMiB);
  EXPECT_THROW(budget.take_bytes(1), Refused);
}

TEST(ReadBudget, CountsBlocksAsMallocDoes) {
  for (const auto& [asked, taken] : {std::pair(0, 0), {1, 24}, {24, 24}, {25, 40}, {40, 40}, {112, 120}})
    EXPECT_EQ(block_bytes(static_cast<uint64_t>(asked)), static_cast<uint64_t>(taken)) << asked;
  EXPECT_EQ(text_block_bytes(15), 0u);
  EXPECT_EQ(text_block_bytes(16), 24u);
}

}  // namespace
}  // namespace qcts
