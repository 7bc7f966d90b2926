// SPDX-License-Identifier: BSD-3-Clause
// Tests which status follows from a judge's status and its caveats, for a run and for the check of a file.
#include "reports/caveat.h"

#include <optional>

#include <gtest/gtest.h>

#include "reports/verdict.h"

namespace qcts {
namespace {

struct Conclusion {
  Status judged;
  std::vector<Caveat> caveats;
  Status of_run, of_check;
};

void PrintTo(const Conclusion& row, std::ostream* out) {
  *out << status_name(row.judged);
  for (const Caveat caveat : row.caveats) *out << "_" << caveat_name(caveat);
}

class Caveats : public testing::TestWithParam<Conclusion> {};

TEST_P(Caveats, GiveTheStatus) {
  const Conclusion& row = GetParam();
  for (const auto& [purpose, want] :
       {std::pair(Purpose::conformance, row.of_run), std::pair(Purpose::check, row.of_check)}) {
    Verdict verdict;
    verdict.status = row.judged;
    verdict.reason = row.judged == Status::pass ? "" : "wrong";
    for (const Caveat caveat : row.caveats) verdict.findings.push_back({caveat, "why"});
    conclude(verdict, purpose);
    EXPECT_EQ(status_name(verdict.status), status_name(want));
    EXPECT_EQ(verdict.reason.empty(), want == Status::pass) << "every status but pass has a reason";
  }
}

constexpr Status kPass = Status::pass, kFail = Status::fail, kWeak = Status::weak_evidence,
                 kRobust = Status::robustness;
INSTANTIATE_TEST_SUITE_P(
    Rows, Caveats,
    testing::Values(
        Conclusion{kPass, {}, kPass, kPass}, Conclusion{kFail, {}, kFail, kFail},
        Conclusion{kPass, {Caveat::unnoticed_change}, kWeak, kWeak},
        Conclusion{kPass, {Caveat::code_not_run}, kWeak, kPass},
        Conclusion{kPass, {Caveat::copied_bytes}, kWeak, kPass},
        Conclusion{kPass, {Caveat::copied_bytes, Caveat::unnoticed_change}, kWeak, kWeak},
        Conclusion{kFail, {Caveat::copied_bytes}, kFail, kFail},
        Conclusion{kPass, {Caveat::hostile_input}, kPass, kPass},
        Conclusion{kFail, {Caveat::hostile_input}, kRobust, kRobust},
        Conclusion{kPass, {Caveat::hostile_input, Caveat::unnoticed_change}, kRobust, kRobust},
        Conclusion{kFail, {Caveat::hostile_input, Caveat::harm}, kFail, kFail},
        Conclusion{kFail, {Caveat::harm, Caveat::overrun}, kFail, kFail},
        Conclusion{
            Status::not_supported, {Caveat::hostile_input}, Status::not_supported, Status::not_supported},
        Conclusion{Status::resource, {Caveat::hostile_input}, Status::resource, Status::resource}));

TEST(Caveats, HaveNamesThatComeBack) {
  for (int i = 0; i < kCaveatCount; ++i) {
    const auto caveat = static_cast<Caveat>(i);
    EXPECT_EQ(caveat_from_name(caveat_name(caveat)), caveat);
  }
  EXPECT_EQ(caveat_from_name("typo"), std::nullopt);
}

}  // namespace
}  // namespace qcts
