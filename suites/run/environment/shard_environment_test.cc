// SPDX-License-Identifier: BSD-3-Clause
// Tests that no case is judged twice or never on several machines: each engine's way of counting, and that
// contradictory variables are refused.
#include "suites/run/environment/shard_environment.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using Variables = std::map<std::string, std::string>;

Lookup lookup_in(const Variables& variables) {
  return [&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

struct AskedShard {
  const char* name;
  Variables variables;
  uint32_t shard, shards;
};
class EngineShard : public testing::TestWithParam<AskedShard> {};

TEST_P(EngineShard, IsReadAsTheEngineCounts) {
  const auto found = shard_from_environment(lookup_in(GetParam().variables));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->shard, GetParam().shard);
  EXPECT_EQ(found->shards, GetParam().shards);
}

INSTANTIATE_TEST_SUITE_P(
    All, EngineShard,
    testing::Values(AskedShard{"ours", {{"QCTS_SHARD_INDEX", "0"}, {"QCTS_SHARDS", "4"}}, 1, 4},
                    AskedShard{"slurm",
                               {{"SLURM_ARRAY_TASK_ID", "7"},
                                {"SLURM_ARRAY_TASK_MIN", "5"},
                                {"SLURM_ARRAY_TASK_COUNT", "4"}},
                               3,
                               4},
                    AskedShard{"slurm_in_steps",
                               {{"SLURM_ARRAY_TASK_ID", "12"},
                                {"SLURM_ARRAY_TASK_MIN", "0"},
                                {"SLURM_ARRAY_TASK_STEP", "4"},
                                {"SLURM_ARRAY_TASK_COUNT", "4"}},
                               4,
                               4},
                    AskedShard{"kubernetes", {{"JOB_COMPLETION_INDEX", "0"}, {"QCTS_SHARDS", "3"}}, 1, 3},
                    AskedShard{"gitlab", {{"CI_NODE_INDEX", "1"}, {"CI_NODE_TOTAL", "3"}}, 1, 3},
                    AskedShard{"bazel", {{"TEST_SHARD_INDEX", "2"}, {"TEST_TOTAL_SHARDS", "3"}}, 3, 3},
                    AskedShard{"googletest", {{"GTEST_SHARD_INDEX", "1"}, {"GTEST_TOTAL_SHARDS", "2"}}, 2, 2},
                    AskedShard{"two_that_agree",
                               {{"TEST_SHARD_INDEX", "1"},
                                {"TEST_TOTAL_SHARDS", "2"},
                                {"GTEST_SHARD_INDEX", "1"},
                                {"GTEST_TOTAL_SHARDS", "2"}},
                               2,
                               2}),
    [](const auto& info) { return info.param.name; });

TEST(ShardEnvironment, NobodyAsks) {
  // For jobs that are not parallel, GitLab sets the total but no index.
  const Variables variables = {{"CI_NODE_TOTAL", "1"}, {"QCTS_SHARDS", "1"}};
  EXPECT_FALSE(shard_from_environment(lookup_in(variables)).has_value());
}

TEST(ShardEnvironment, TheStatusFileIsKept) {
  const Variables variables = {
      {"TEST_SHARD_INDEX", "0"}, {"TEST_TOTAL_SHARDS", "2"}, {"TEST_SHARD_STATUS_FILE", "/somewhere"}};
  EXPECT_EQ(shard_from_environment(lookup_in(variables))->status_file, "/somewhere");
}

struct RefusedText {
  const char* name;
  Variables variables;
  const char* message;
};
class EngineRefusal : public testing::TestWithParam<RefusedText> {};

TEST_P(EngineRefusal, NamesTheVariable) {
  try {
    shard_from_environment(lookup_in(GetParam().variables));
    FAIL() << "was taken";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EngineRefusal,
    testing::Values(
        RefusedText{"no_total", {{"JOB_COMPLETION_INDEX", "0"}}, "QCTS_SHARDS"},
        RefusedText{"no_index", {{"GTEST_TOTAL_SHARDS", "3"}}, "GTEST_SHARD_INDEX is not"},
        RefusedText{
            "no_index_of_ours", {{"QCTS_SHARDS", "3"}, {"CI_NODE_TOTAL", "1"}}, "QCTS_SHARD_INDEX is not"},
        RefusedText{
            "total_is_no_number", {{"GTEST_TOTAL_SHARDS", "x"}}, "GTEST_TOTAL_SHARDS is not a number"},
        RefusedText{
            "no_number", {{"CI_NODE_INDEX", "one"}, {"CI_NODE_TOTAL", "3"}}, "CI_NODE_INDEX is not a number"},
        RefusedText{
            "beyond", {{"GTEST_SHARD_INDEX", "2"}, {"GTEST_TOTAL_SHARDS", "2"}}, "2 is not a shard of 2"},
        RefusedText{"below", {{"CI_NODE_INDEX", "0"}, {"CI_NODE_TOTAL", "3"}}, "0 is not a shard of 3"},
        RefusedText{
            "between_steps",
            {{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_STEP", "2"}, {"SLURM_ARRAY_TASK_COUNT", "4"}},
            "3 is not a shard of 4"},
        RefusedText{"two_that_differ",
                    {{"CI_NODE_INDEX", "1"},
                     {"CI_NODE_TOTAL", "3"},
                     {"SLURM_ARRAY_TASK_ID", "1"},
                     {"SLURM_ARRAY_TASK_COUNT", "3"}},
                    "Slurm array asks for shard 2/3, GitLab for 1/3"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace qcts
