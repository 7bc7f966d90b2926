// SPDX-License-Identifier: BSD-3-Clause
#include "suites/confirmed/ledger.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

Ledger a_ledger(bool complete, uint64_t failed) {
  Ledger ledger;
  ledger.gpu = "NVIDIA H200";
  ledger.date = "2026-12-03";
  ledger.library_sha256 = "library";
  ledger.complete = complete;
  ledger.rows = {{Op::linear, "int8_row", "sm80", "sources", 120, 100 - failed, failed, 20, 431, 90, 0}};
  return ledger;
}

LedgerRow now_of(const std::string& sources) {
  return {Op::linear, "int8_row", "sm80", sources, 0, 0, 0, 0, 0, 0, 0};
}

struct Question {
  const char* name;
  bool complete;
  uint64_t failed;
  const char *sources, *library, *answer;
};

class LedgerSays : public testing::TestWithParam<Question> {};

TEST_P(LedgerSays, WhatItProvesNow) {
  const Question& asked = GetParam();
  EXPECT_EQ(confirmation_of({a_ledger(asked.complete, asked.failed)}, now_of(asked.sources), asked.library),
            asked.answer);
}

INSTANTIATE_TEST_SUITE_P(
    All, LedgerSays,
    testing::Values(
        Question{"Confirmed", true, 0, "sources", "library", "confirmed on NVIDIA H200, 2026-12-03"},
        Question{"OtherLibrary", true, 0, "sources", "another", "confirmed on NVIDIA H200, 2026-12-03"},
        Question{"SameCode", true, 0, "changed", "library",
                 "confirmed on NVIDIA H200, 2026-12-03, sources changed since, same machine code"},
        Question{"AllChanged", true, 0, "changed", "another", "emulated only"},
        Question{"NoSources", true, 0, "", "another", "emulated only"},
        Question{"InPart", false, 0, "sources", "library",
                 "confirmed in part (100 of 431) on NVIDIA H200, 2026-12-03"},
        Question{"Failed", true, 3, "sources", "library", "failed 3 of 120 on NVIDIA H200, 2026-12-03"}),
    [](const auto& info) { return info.param.name; });

TEST(Ledger, OtherBitsThanTheExecutorConfirmNothing) {
  Ledger ledger = a_ledger(true, 0);
  ledger.rows[0].differing_digests = 2;
  EXPECT_EQ(confirmation_of({ledger}, now_of("sources"), "library"),
            "bits differ from the executor's in 2 of 92 outputs on NVIDIA H200, 2026-12-03");
}

TEST(Ledger, OtherRowsProveNothing) {
  LedgerRow now = now_of("sources");
  now.variant = "sm90a";
  EXPECT_EQ(confirmation_of({a_ledger(true, 0)}, now, "library"), "emulated only");
  EXPECT_EQ(confirmation_of({}, now_of("sources"), "library"), "emulated only");
}

TEST(Ledger, ACompleteRunCountsMoreThanAPart) {
  EXPECT_EQ(confirmation_of({a_ledger(false, 0), a_ledger(true, 0)}, now_of("sources"), "library"),
            "confirmed on NVIDIA H200, 2026-12-03");
}

TEST(Ledger, SurvivesItsJson) {
  const Ledger ledger = a_ledger(true, 1);
  EXPECT_EQ(to_json(ledger_from_json(to_json(ledger))), to_json(ledger));
  nlohmann::ordered_json lacks = to_json(ledger);
  lacks["rows"][0].erase("failed");
  EXPECT_THROW(ledger_from_json(lacks), std::runtime_error);
}

TEST(Ledger, IsNamedAfterItsGpu) {
  EXPECT_EQ(ledger_name("NVIDIA H100 80GB HBM3"), "nvidia_h100_80gb_hbm3.json");
}

}  // namespace
}  // namespace qcts
