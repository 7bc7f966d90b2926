// SPDX-License-Identifier: BSD-3-Clause
// Tests filters and shards: an exact name matches only itself, shards lose and duplicate nothing, a typo
// finds the nearest id.
#include "suites/cases/selection/selection.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/did_you_mean.h"

namespace qcts {
namespace {

using testing::ElementsAre;

std::vector<Candidate> candidates() {
  std::vector<Candidate> out;
  for (const char* id : {"latency.linear/int8_row/m1_n4096", "latency.linear/int8_row/m1_n40961",
                         "numerics.pack/fp8_row/noise"})
    for (const char* variant : {"scalar", "avx2"})
      out.push_back({{parse_case_id(id).value(), std::string(id) + "/builtin_" + variant, variant}});
  out.push_back({{parse_case_id("size.file/mixed/toy").value(), "size.file/mixed/toy", ""}});
  return out;
}

std::vector<std::string> chosen(const Selection& selection) {
  std::vector<std::string> ids;
  for (const Candidate& c : select(selection, candidates())) ids.push_back(c.name.full_id);
  return ids;
}

Selection filter(const std::string& text) {
  Selection selection;
  selection.filters = {text};
  return selection;
}

TEST(Select, AnExactNameIsNoPrefix) {
  EXPECT_THAT(chosen(filter("latency.linear/int8_row/m1_n4096")),
              ElementsAre("latency.linear/int8_row/m1_n4096/builtin_avx2",
                          "latency.linear/int8_row/m1_n4096/builtin_scalar"));
  EXPECT_THAT(chosen(filter("latency.linear/int8_row/m1_n4096/builtin_avx2")),
              ElementsAre("latency.linear/int8_row/m1_n4096/builtin_avx2"));
}

TEST(Select, GlobsMatchAnywhere) {
  EXPECT_EQ(chosen(filter("m1_n4096")).size(), 4u);
  EXPECT_THAT(chosen(filter("pack*avx2")), ElementsAre("numerics.pack/fp8_row/noise/builtin_avx2"));
  EXPECT_TRUE(chosen(filter("m1_n4097")).empty());
}

TEST(Select, RulesAreJoinedByAndFiltersByOr) {
  Selection selection;
  selection.filters = {"pack", "toy"};
  EXPECT_EQ(chosen(selection).size(), 3u);
  selection.variant = "avx2";
  EXPECT_EQ(chosen(selection).size(), 1u);
  selection.kinds = {"size"};
  EXPECT_TRUE(chosen(selection).empty());
}

class Shards : public testing::TestWithParam<uint32_t> {};

TEST_P(Shards, TogetherAreTheWhole) {
  std::multiset<std::string> together;
  for (uint32_t i = 1; i <= GetParam(); ++i) {
    Selection selection;
    parse_shard(std::to_string(i) + "/" + std::to_string(GetParam()), selection);
    for (const std::string& id : chosen(selection)) together.insert(id);
  }
  const std::vector<std::string> whole = chosen(Selection());
  EXPECT_EQ(together, std::multiset<std::string>(whole.begin(), whole.end()));
}

INSTANTIATE_TEST_SUITE_P(Select, Shards, testing::Values(1, 2, 3, 7, 20));

class BadShard : public testing::TestWithParam<const char*> {};
TEST_P(BadShard, IsRefused) {
  Selection selection;
  EXPECT_THROW(parse_shard(GetParam(), selection), std::runtime_error);
}
INSTANTIATE_TEST_SUITE_P(Select, BadShard,
                         testing::Values("", "1", "0/2", "3/2", "1/0", "a/2", "1/2x", "-1/2"));

TEST(Nearest, FindsTheIdOrTheWord) {
  EXPECT_EQ(nearest_id("latency.linear/int8_row/m1_n4097", candidates()), "latency.linear/int8_row/m1_n4096");
  EXPECT_EQ(nearest_id("*pakc*", candidates()), "pack");
  EXPECT_EQ(nearest_id("latency.linear/int8_rwo/*", candidates()), "latency.linear/int8_row/m1_n4096");
  EXPECT_EQ(nearest_id("zzzzzz", candidates()), "");
}

TEST(Nearest, CountsASwapAsOneEdit) {
  EXPECT_EQ(edit_distance("buitlin", "builtin"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("*it?en*", "sitting to no end"), 1u);
  EXPECT_EQ(did_you_mean("zzzzzz", {"size", "assign"}), " (known: size, assign)");
  EXPECT_EQ(did_you_mean("zzzzzz", std::vector<std::string>(21, "size")), "") << "a guess is no help";
}

}  // namespace
}  // namespace qcts
