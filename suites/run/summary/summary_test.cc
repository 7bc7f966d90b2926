// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/summary/summary.h"

#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

Verdict a_verdict(const std::string& case_id, Status status, const std::string& reason = "") {
  Verdict made;
  made.case_id = parse_case_id(case_id).value();
  made.provider = "acme";
  made.variant = "scalar";
  made.status = status;
  made.reason = reason;
  made.evidence = {"reference"};
  made.rerun = "qcts run --filter " + made.full_id() + " --provider ./acme.so";
  return made;
}

Verdict wrong(const std::string& case_id, const std::string& hypothesis) {
  Verdict failed =
      a_verdict(case_id, Status::fail,
                "y: row 1, column 0: want 1, got 2; 3 of 4 elements; in one call; 3 of 4 weights differ" +
                    (hypothesis.empty() ? "; no single hypothesis explains them"
                                        : "; hypothesis: " + hypothesis + " (predicts 3 of 3)"));
  failed.mismatch = Mismatch{"y: row 1, column 0", "1", "2", 3, 4};
  return failed;
}

RunReport a_report(std::vector<Verdict> verdicts) {
  RunReport report;
  report.suite_version = "0.1.0";
  report.plan = "default";
  report.selection = {"--provider ./acme.so"};
  report.verdicts = std::move(verdicts);
  return report;
}

std::vector<std::string> summary_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(FailureGroups, NumericsComeBeforeDeterminismAndTheSmallestShapeFirst) {
  const RunReport report =
      a_report({a_verdict("determinism.linear/int8_row/m1_n1_k1", Status::fail, "wrong during another call"),
                a_verdict("determinism.linear/int8_row/m2_n1_k1", Status::fail, "wrong during another call"),
                wrong("numerics.linear/int8_row/noise_m17_n40_k96_bf16", "scale of the previous row"),
                wrong("numerics.linear/int8_row/noise_m1_n5_k9_bf16", "scale of the previous row"),
                wrong("numerics.linear/int8_row/m2_n5_k9_bf16", "scale of the previous row"),
                wrong("numerics.dequantize/int8_row/noise_n37_k216_f32", ""),
                a_verdict("numerics.dequantize/nf4/noise_n3_k64_f32", Status::crash, "SIGSEGV"),
                a_verdict("numerics.dequantize/nf4/noise_n4_k64_f32", Status::not_supported, "no kernel"),
                a_verdict("numerics.dequantize/nf4/noise_n5_k64_f32", Status::pass)});
  std::vector<std::string> names, smallest;
  std::vector<size_t> sizes;
  for (const Group& group : failure_groups(report)) {
    names.push_back(group.name());
    smallest.push_back(group.verdicts.front()->case_id.input);
    sizes.push_back(group.verdicts.size());
  }
  EXPECT_THAT(names,
              ElementsAre("acme fail: scale of the previous row", "acme fail: y: row #, column # differs",
                          "acme fail: wrong during another call", "acme crash: SIGSEGV"));
  EXPECT_THAT(smallest,
              ElementsAre("noise_m1_n5_k9_bf16", "noise_n37_k216_f32", "m1_n1_k1", "noise_n3_k64_f32"));
  EXPECT_THAT(sizes, ElementsAre(3, 1, 2, 1));
}

TEST(FailureGroups, ACauseOfBothKindsIsShownByItsNumerics) {
  const RunReport report =
      a_report({wrong("determinism.linear/int8_row/noise_m1_n1_k1_bf16", "scale of the next group"),
                wrong("numerics.linear/int8_row/noise_m9_n9_k9_bf16", "scale of the next group")});
  const std::vector<Group> groups = failure_groups(report);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].verdicts[0]->case_id.kind, Kind::numerics);
}

TEST(FailureGroups, AGoldenIsAsLargeAsWhatWasCompared) {
  Verdict golden = wrong("numerics.dequantize/int8_row/torchao_0_18_0_f32_0", "scale of the previous row");
  golden.mismatch->total = 1024;
  const RunReport report =
      a_report({golden, wrong("numerics.dequantize/int8_row/noise_n37_k216_f32", "scale of the previous row"),
                wrong("numerics.dequantize/int8_row/noise_n7_k13_f32", "scale of the previous row")});
  const std::vector<Group> groups = failure_groups(report);
  ASSERT_EQ(groups.size(), 1u);
  std::vector<std::string> inputs;
  for (const Verdict* one : groups[0].verdicts) inputs.push_back(one->case_id.input);
  EXPECT_THAT(inputs, ElementsAre("noise_n7_k13_f32", "torchao_0_18_0_f32_0", "noise_n37_k216_f32"));
}

TEST(Summary, EndsWithVerdictCountsAndReport) {
  const RunReport report =
      a_report({wrong("numerics.linear/int8_row/noise_m1_n5_k9_bf16", "nibbles swapped"),
                a_verdict("numerics.linear/nf4/noise_m1_n5_k64_bf16", Status::pass),
                a_verdict("numerics.linear/nf4/noise_m2_n5_k64_bf16", Status::not_supported, "x")});
  const std::vector<std::string> lines =
      summary_lines(summary_text(report, {"out/report.html", "out/report.json"}, {.columns = 80}));
  EXPECT_THAT(std::vector<std::string>(lines.end() - 3, lines.end()),
              ElementsAre("NOT CONFORMANT: 1 of 2 judged cases failed", "1 pass, 1 fail, 1 not supported",
                          "out/report.html, report.json"));
}

TEST(Summary, TheCausesAreTheLastThingBeforeTheVerdict) {
  const RunReport report = a_report(
      {wrong("numerics.linear/int8_row/noise_m1_n5_k9_bf16", "nibbles swapped"),
       wrong("numerics.linear/nf4/noise_m1_n5_k64_bf16", ""),
       wrong("numerics.linear/nf4/noise_m2_n5_k64_bf16", ""),
       a_verdict("numerics.linear/nf4/noise_m3_n5_k64_bf16", Status::crash, "its worker died: SIGSEGV")});
  const std::vector<std::string> lines = summary_lines(summary_text(report, {"out/r"}, {.columns = 80}));
  EXPECT_THAT(std::vector<std::string>(lines.end() - 8, lines.end() - 4),
              ElementsAre("4 failures with 3 causes", "  1 of 4: crash of acme: its worker died: SIGSEGV",
                          HasSubstr("  2 of 4: fail of acme: "), "  1 of 4: fail of acme: nibbles swapped"));
}

TEST(Summary, TheHypothesisStartsALineAndIsNotCut) {
  const std::string hypothesis(300, 'h');
  const RunReport report = a_report({wrong("numerics.linear/int8_row/noise_m1_n5_k9_bf16", hypothesis)});
  const std::string text = summary_text(report, {}, {.columns = 400});
  EXPECT_THAT(text, HasSubstr("\n    hypothesis: " + hypothesis + " (predicts 3 of 3)\n"));
}

TEST(Summary, NotSupportedIsNotJudged) {
  const RunReport report = a_report({a_verdict("numerics.linear/nf4/m2_n5_k64", Status::not_supported, "no"),
                                     a_verdict("numerics.linear/nf4/m1_n5_k64", Status::pass)});
  const std::string text = summary_text(report, {}, {.columns = 80});
  EXPECT_THAT(text, HasSubstr("  scheme  pass  fail  not supported\n  nf4        1     -              1\n"));
  EXPECT_THAT(text, Not(HasSubstr("FAIL")));
}

Verdict latency_of(const std::string& case_id, double us, bool bound_by_arithmetic,
                   const std::string& reason) {
  Verdict timed = a_verdict(case_id, Status::pass, reason);
  const auto add = [&](const char* name, double value) {
    timed.measures.push_back({name, "x", value, value * 0.9, value * 1.1, 50});
  };
  add("median_us", us);
  add("bandwidth", 12.34);
  add("rate", 1500);
  add("share_of_probe", 0.5);
  add("share_of_peak", bound_by_arithmetic ? 0.9 : 0.1);
  add("share_of_roof", 0.876);
  add("ratio_to_dense", 2.5);
  add("ratio_to_itself", 1);
  return timed;
}

TEST(Summary, LatencyIsATable) {
  const RunReport report = a_report({latency_of("latency.linear/int8_row/m1_n4096_k4096", 1234.56, false, ""),
                                     latency_of("latency.linear/int8_row/m256_n4096_k4096", 9, true,
                                                "the measurement is not to be trusted: x")});
  const std::string text = summary_text(report, {}, {.columns = 80});
  EXPECT_THAT(text, HasSubstr("    linear/int8_row/m1_n4096_k4096\n"));
  EXPECT_THAT(text, HasSubstr("acme_scalar  "));
  EXPECT_THAT(text, HasSubstr("1234.6      12.3 GB/s      88%     2.50x  trusted\n"));
  EXPECT_THAT(text, HasSubstr("9.0  1.500 TFLOP/s      88%     2.50x  doubtful\n"));
}

std::string random_reason(std::mt19937& random, size_t longest) {
  const std::string alphabet = "abc _/.,0123456789\x1b\n'\"\\";
  std::string text;
  for (size_t n = random() % longest + 1; n > 0; --n) text += alphabet[random() % alphabet.size()];
  return text;
}

TEST(Summary, NoLineIsWiderThanTheScreen) {
  std::mt19937 random(7);
  const std::vector<std::string> kinds = {"numerics.linear", "determinism.quantize_activation",
                                          "latency.linear", "size.file", "round_trip.file"};
  for (int round = 0; round < 200; ++round) {
    std::vector<Verdict> verdicts;
    for (unsigned i = random() % 40; i > 0; --i) {
      const std::string scheme = random() % 2 ? "int4_tinygemm_g128" : "fp8_sparse24_e4m3_row";
      const std::string id = kinds[random() % kinds.size()] + "/" + scheme + "/noise_" +
                             std::string(random() % 60, 'x') + "_m" + std::to_string(random() % 99) + "_k7";
      Verdict one = a_verdict(id, static_cast<Status>(random() % kStatusCount), random_reason(random, 600));
      if (random() % 2) one.reason += "hypothesis: " + random_reason(random, 200) + " (predicts 1 of 1)";
      if (random() % 2)
        one.mismatch = Mismatch{random_reason(random, 90), random_reason(random, 40), "2", 3, 4};
      if (one.case_id.kind == Kind::latency) one.measures = latency_of(id, 1e6, random() % 2, "").measures;
      one.rerun =
          "/opt/a/long/folder/bin/qcts run --filter " + one.full_id() + " --provider './it is here/acme.so'";
      verdicts.push_back(std::move(one));
    }
    RunReport report = a_report(std::move(verdicts));
    report.environment["cpu_model"] = random_reason(random, 90);
    report.infrastructure = {random_reason(random, 300)};
    const Screen screen{.columns = random() % 2 ? 80u : 120u};
    for (const std::string& line : summary_lines(summary_text(report, {"out/report.json"}, screen)))
      ASSERT_THAT(columns_of(line), Le(screen.columns)) << line;
  }
}

}  // namespace
}  // namespace qcts
