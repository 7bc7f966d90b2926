// SPDX-License-Identifier: BSD-3-Clause
// Tests what the program puts into report.html and summary.md; scripts/test_page.py opens the page in a
// browser.
#include "reports/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/page/page_files.h"
#include "reports/report.h"

namespace qcts {
namespace {

using testing::HasSubstr;
using testing::Not;

nlohmann::ordered_json report_with(int exit_code, bool conformant, const std::string& reason) {
  RunReport report;
  report.started_utc = "2026-01-01T00:00:00Z";
  report.environment = {{"cpu_model", "</script><b>@STYLE@"}};
  nlohmann::ordered_json json = report_json(report);
  json["conformance"]["exit_code"] = exit_code;
  json["conformance"]["conformant"] = conformant;
  json["conformance"]["reason"] = reason;
  return json;
}

struct Verdicts {
  int exit_code;
  bool conformant;
  const char *tone, *text;
};
class HeadlineOf : public testing::TestWithParam<Verdicts> {};

TEST_P(HeadlineOf, SaysWhatTheExitCodeSays) {
  const auto& [exit_code, conformant, tone, text] = GetParam();
  const auto report = report_with(exit_code, conformant, "the very reason");
  EXPECT_EQ(headline_of(report).text, text);
  EXPECT_EQ(headline_of(report).tone, tone);
  for (const std::string& written :
       {page_html(report, {}, nlohmann::ordered_json::object(), kNoStatement), summary_markdown(report)})
    EXPECT_THAT(written, testing::AllOf(HasSubstr(text), HasSubstr("The very reason.")));
}

INSTANTIATE_TEST_SUITE_P(Page, HeadlineOf,
                         testing::Values(Verdicts{0, true, "pass", "Conformant"},
                                         Verdicts{0, false, "warn", "Passed what was asked"},
                                         Verdicts{1, false, "fail", "Not conformant"},
                                         Verdicts{3, false, "warn", "Nothing proved"},
                                         Verdicts{4, false, "warn", "Inconclusive"},
                                         Verdicts{5, false, "fail", "Could not judge"}));

TEST(Page, HasAllItsFilesAndEscapesWhatItIsGiven) {
  const std::string page =
      page_html(report_with(1, false, "<i>"), {}, nlohmann::ordered_json::object(), kNoStatement);
  EXPECT_THAT(page, HasSubstr("&lt;i&gt;"));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;b&gt;@STYLE@"))
      << "what is put in is not searched for names again";
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  for (const char* part : {"async function unpacked", "function rowsTable", "function heatMap",
                           "function overview", "function schemesView", "async function route", ".heat td"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* name : {"TITLE", "SENTENCE", "RUN", "MODEL", "CASES", "SCRIPT"})
    EXPECT_THAT(page, Not(HasSubstr("@" + std::string(name) + "@")));
}

TEST(Page, LoadsNothingFromElsewhere) {
  for (const char* name : {"page.html", "page.css", "main.js", "views.js"}) {
    const std::string text(page_file(name));
    EXPECT_FALSE(text.empty()) << name;
    for (const char* foreign :
         {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML", "https://"})
      EXPECT_THAT(text, Not(HasSubstr(foreign))) << name;
  }
}

TEST(Summary, KeepsTextFromElsewhereInItsPlace) {
  RunReport report;
  report.started_utc = "2026-01-01T00:00:00Z";
  Verdict failed;
  failed.case_id = parse_case_id("numerics.linear/s/a").value();
  failed.provider = "ac|me";
  failed.status = Status::fail;
  failed.reason = "a | b\n# head <img> [x](y) `z`";
  failed.rerun = "qcts `x`\n\n# head";
  report.verdicts = {failed};
  const std::string text = summary_markdown(report_json(report));
  EXPECT_THAT(text, HasSubstr("ac\\|me: a \\| b  head &lt;img> \\[x\\](y) \\`z\\`"));
  EXPECT_THAT(text, HasSubstr("`` qcts `x`  # head ``"));
  EXPECT_THAT(text, Not(HasSubstr("\n# head")));
}

TEST(Summary, NamesAFailureByItsTitleAndDiagnosis) {
  RunReport report;
  report.started_utc = "2026-01-01T00:00:00Z";
  Verdict failed;
  failed.case_id = parse_case_id("numerics.linear/s/a").value();
  failed.provider = "acme";
  failed.status = Status::fail;
  failed.mismatch = Mismatch{"y: row 3, column 40", "1", "2", 7, 9};
  failed.reason = "y: row 3, column 40: want 1, got 2; all 9 weights are right, so look at the bias";
  report.verdicts = {failed};
  const std::string text = summary_markdown(report_json(report));
  EXPECT_THAT(text, HasSubstr("acme: wrong y, 78 % of the elements\n  all 9 weights are right"));
  EXPECT_THAT(text, Not(HasSubstr("row #")));
}

}  // namespace
}  // namespace qcts
