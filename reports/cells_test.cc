// SPDX-License-Identifier: BSD-3-Clause
// Tests the model of a run: cells, groups with one cause, changes against the previous run, and their size.
#include "reports/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/gzip.h"
#include "reports/report.h"

namespace qcts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Verdict verdict_of(const std::string& id, Status status, const std::string& reason = "",
                   const std::string& variant = "scalar") {
  Verdict v;
  v.case_id = parse_case_id(id).value();
  v.provider = "acme";
  v.variant = variant;
  v.status = status;
  v.reason = reason;
  v.rerun = "qcts run --filter " + v.full_id();
  return v;
}

TEST(Cells, CountVerdictsOfOneImplementation) {
  std::vector<Verdict> verdicts = {verdict_of("numerics.linear/s/a_m2", Status::pass),
                                   verdict_of("numerics.linear/s/a_m1", Status::fail, "no"),
                                   verdict_of("numerics.linear/s/a_m1", Status::pass, "", "avx2"),
                                   verdict_of("numerics.pack/s/a", Status::pass)};
  verdicts[0].evidence = {"golden", "emulated"};
  const std::vector<Cell> cells = cells_of(verdicts);
  ASSERT_EQ(cells.size(), 3u);
  const Cell& scalar = cells.back();
  EXPECT_EQ(scalar.implementation(), "acme_scalar");
  EXPECT_EQ(scalar.verdicts.front()->case_id.input, "a_m1") << "in the order of their ids";
  EXPECT_EQ(scalar.statuses[static_cast<size_t>(Status::fail)], 1u);
  EXPECT_EQ(scalar.emulated, 1u) << "an emulated operation never confirms";
}

struct Reasons {
  const char *one, *other;
  bool same;
};
class OneCause : public testing::TestWithParam<Reasons> {};

TEST_P(OneCause, MakesOneGroup) {
  const std::vector<Verdict> verdicts = {verdict_of("numerics.linear/s/a", Status::fail, GetParam().one),
                                         verdict_of("numerics.linear/s/b", Status::fail, GetParam().other)};
  EXPECT_EQ(groups_of(verdicts, false).size(), GetParam().same ? 1u : 2u) << GetParam().one;
}

INSTANTIATE_TEST_SUITE_P(
    Groups, OneCause,
    testing::Values(
        Reasons{"7 of 8 weights differ; hypothesis: scale of the previous row (predicts 7 of 7)",
                "row 3, column 4: want 1, got 2; hypothesis: scale of the previous row (predicts 9 of 9)",
                true},
        Reasons{"hypothesis: scale of the previous row (predicts 7 of 7)",
                "hypothesis: nibbles swapped (predicts 7 of 7)", false},
        Reasons{"row 3, column 4: want 0x1f, got -2.5e-3", "row 1, column 99: want 1, got 7", true},
        Reasons{"qdata differs", "scale differs", false},
        Reasons{"int8_row has no kernel", "int4_row has no kernel", false}));

TEST(Groups, BeginWithWrongAnswersAndTheirSimplestCase) {
  const std::vector<Verdict> verdicts = {
      verdict_of("determinism.linear/s/noise_m1_n1_k1", Status::fail, "wrong"),
      verdict_of("numerics.linear/s/noise_m17_n40_k96", Status::fail, "wrong"),
      verdict_of("numerics.linear/s/noise_m1_n40_k96", Status::fail, "wrong"),
      verdict_of("numerics.linear/s/x", Status::crash, "SIGSEGV"),
      verdict_of("numerics.linear/s/y", Status::not_supported, "K is odd"),
      verdict_of("numerics.linear/s/z", Status::not_supported, "K is odd"),
      verdict_of("numerics.linear/s/p", Status::pass)};
  std::vector<std::string> names;
  for (const Group& group : groups_of(verdicts, false)) names.push_back(group.name());
  EXPECT_THAT(names, ElementsAre("acme fail: wrong", "acme crash: SIGSEGV", "acme not_supported: K is odd"));
  EXPECT_EQ(groups_of(verdicts, false)[0].verdicts[0]->case_id.input, "noise_m1_n40_k96");
}

// 50,000 failures with as many reasons, one of them long.
TEST(Report, StaysSmallIfEverythingFails) {
  RunReport report;
  report.started_utc = "2026-01-01T00:00:00Z";
  for (int i = 0; i < 50'000; ++i) {
    const std::string letters = {static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26 % 26)};
    report.verdicts.push_back(verdict_of("numerics.linear/s_" + letters + "/m" + std::to_string(i),
                                         Status::fail,
                                         "kernel " + letters + std::string(i == 7 ? 10'000'000 : 300, 'x')));
  }
  const auto json = report_json(report);
  const std::string text = report_text(json);
  EXPECT_LT(text.size(), 6'000'000u);
  EXPECT_LT(junit_xml(report).size(), 5'000'000u);
  EXPECT_EQ(nlohmann::ordered_json::parse(text), json);
  EXPECT_GT(json["groups_total"], json["groups"].size()) << "what was left out is counted";
  EXPECT_EQ(json["counts"]["by_status"]["fail"], 50'000);
}

TEST(ClippedText, EndsBetweenCharacters) {
  std::string text(1999, 'x');
  text += "\u00e4 and more";
  EXPECT_EQ(clipped_text(text), std::string(1999, 'x') + "...");
}

TEST(Gzip, GivesTheTextBackAndRefusesTheRest) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::to_string(i * 2654435761u);
  for (const std::string& whole : {std::string(), std::string("x"), text}) {
    const std::string bytes = gzipped(whole);
    EXPECT_TRUE(is_gzip(bytes));
    EXPECT_TRUE(gunzipped(bytes) == whole);
    EXPECT_TRUE(gunzipped(bytes + bytes) == whole + whole) << "two members";
    EXPECT_THROW(gunzipped(bytes.substr(0, bytes.size() - 3)), std::runtime_error);
    std::string damaged = bytes;
    damaged[bytes.size() - 6] ^= 1;  // the check sum
    EXPECT_THROW(gunzipped(damaged), std::runtime_error);
  }
}

}  // namespace
}  // namespace qcts
