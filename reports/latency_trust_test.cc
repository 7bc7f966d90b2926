// SPDX-License-Identifier: BSD-3-Clause
// Tests that A/A alarms within chance do not suspend a run, that more do, and that a wrong answer stays
// wrong.
#include "reports/latency_trust.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

std::vector<Verdict> timed(size_t cases, size_t alarming) {
  std::vector<Verdict> verdicts(cases);
  for (size_t i = 0; i < cases; ++i) {
    verdicts[i].case_id = parse_case_id("latency.linear/int8_row/m" + std::to_string(i)).value();
    verdicts[i].status = i % 2 ? Status::pass : Status::fail;
    verdicts[i].measures.push_back({kAlarmMeasure, "x", i < alarming ? 1.0 : 0.0, {}, {}, {}});
  }
  return verdicts;
}

// Binomial tails at 5 %: P(X > 2 | n = 10) = 1.2 %, P(X > 3) = 0.1 %; P(X > 8 | n = 80) = 2 %, P(X > 9) = 0.8
// %.
TEST(LatencyTrust, AllowsWhatChanceExplains) {
  EXPECT_EQ(allowed_alarms(0), 0u);
  EXPECT_EQ(allowed_alarms(1), 1u);
  EXPECT_EQ(allowed_alarms(10), 3u);
  EXPECT_EQ(allowed_alarms(80), 9u);
}

TEST(LatencyTrust, TooManyAlarmsSuspendTheRun) {
  std::vector<Verdict> verdicts = timed(10, 4);
  verdicts.push_back({});  // a case that was never timed: wrong, or not a latency case
  verdicts.back().status = Status::fail;
  verdicts.back().reason = "wrong";
  const LatencyTrust trust = latency_trust(verdicts);
  EXPECT_EQ(trust.measured, 10u);
  EXPECT_EQ(trust.alarms, 4u);
  EXPECT_TRUE(trust.suspended);
  for (int twice = 0; twice < 2; ++twice) suspend_latency(trust, true, verdicts);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(verdicts[i].status, Status::inconclusive);
    EXPECT_EQ(verdicts[i].reason,
              "latency of this run is suspended: 4 of 10 kernels differed from themselves");
  }
  EXPECT_EQ(verdicts.back().status, Status::fail);
  EXPECT_EQ(verdicts.back().reason, "wrong");
}

// Claims about speed of a suspended run are not decided, whichever provider makes them; a peer's status
// stays.
TEST(LatencyTrust, ASuspendedRunDecidesNoClaim) {
  std::vector<Verdict> verdicts = timed(10, 10);
  for (Verdict& verdict : verdicts) {
    verdict.speed.push_back({.claim = kFaster,
                             .subject = "a",
                             .against = "b",
                             .ratio = 2,
                             .low = 1.9,
                             .high = 2.1,
                             .status = Status::pass});
    verdict.is_peer = true;
  }
  suspend_latency(latency_trust(verdicts), true, verdicts);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    EXPECT_EQ(verdicts[i].status, i % 2 ? Status::pass : Status::fail);
    EXPECT_EQ(verdicts[i].speed[0].status, Status::inconclusive);
    EXPECT_NE(claim_text(verdicts[i].speed[0]).find("in doubt"), std::string::npos);
  }
}

TEST(LatencyTrust, WithoutAGateItIsOnlySaid) {
  std::vector<Verdict> verdicts = timed(10, 10);
  suspend_latency(latency_trust(verdicts), false, verdicts);
  EXPECT_EQ(verdicts[0].status, Status::fail);
  EXPECT_EQ(verdicts[1].status, Status::pass);
  EXPECT_NE(verdicts[1].reason, "");
}

TEST(LatencyTrust, AFewAlarmsChangeNothing) {
  std::vector<Verdict> verdicts = timed(10, 3);
  const LatencyTrust trust = latency_trust(verdicts);
  EXPECT_FALSE(trust.suspended);
  suspend_latency(trust, true, verdicts);
  EXPECT_EQ(verdicts[0].status, Status::fail);
  EXPECT_EQ(verdicts[1].status, Status::pass);
}

}  // namespace
}  // namespace qcts
