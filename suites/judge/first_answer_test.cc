// SPDX-License-Identifier: BSD-3-Clause
// Protects the status of a kernel that does not take a problem: declining needs no excuse, failing is a fail.
#include "suites/judge/first_answer.h"

#include <string>

#include <gtest/gtest.h>

namespace qcts {
namespace {

struct Word {
  qcts_status status;
  bool is_declined;
  Status verdict;
  const char* reason;
};

TEST(Support, HasOneStatusForEveryKind) {
  const Word words[] = {
      {QCTS_OK, false, Status::internal, ""},
      {QCTS_UNSUPPORTED, true, Status::not_supported, "why"},
      {QCTS_INVALID, true, Status::fail, "supports() calls a valid problem invalid: why"},
      {QCTS_FAILED, true, Status::fail, "supports() failed: why"},
  };
  for (const Word& word : words) {
    Verdict verdict;
    EXPECT_EQ(is_declined({word.status, word.status == QCTS_OK ? "" : "why"}, verdict), word.is_declined);
    EXPECT_EQ(verdict.status, word.verdict) << word.reason;
    EXPECT_EQ(verdict.reason, word.reason);
  }
}

}  // namespace
}  // namespace qcts
