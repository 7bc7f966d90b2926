// SPDX-License-Identifier: BSD-3-Clause
// Tests that the reject kind checks a refusal's class and its security mark, which a hostile file must have
// and a damaged one must not.
#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "suites/base/paths.h"
#include "suites/judge/files/file_kinds.h"

namespace qcts {
namespace {

class Reject : public testing::Test {
 protected:
  Reject() : fixtures_(load_fixtures(fixtures_folder())) {}

  Malformed find_malformed(std::string_view id) const {
    for (const Malformed& malformed : fixtures_.malformed)
      if (malformed.id == id) return malformed;
    throw std::logic_error("no malformed file " + std::string(id));
  }

  static Status judged(const Malformed& malformed) {
    Case c;
    c.question = RejectQuestion{&malformed};
    Verdict verdict;
    judge_reject(c, JudgeContext{}, verdict);
    return verdict.status;
  }

  Fixtures fixtures_;
};

TEST_F(Reject, AsksForTheMarkOfSecurity) {
  for (const char* id : {"p01_os_system", "l1_global", "p02_inst", "p33_newobj_dtype", "t03_os_system",
                         "sa1_dtype_load", "sk1_os_system", "z01_truncated_500", "sa1_block_size"}) {
    Malformed malformed = find_malformed(id);
    EXPECT_EQ(judged(malformed), Status::pass) << id;
    malformed.security = !malformed.security;
    EXPECT_EQ(judged(malformed), Status::fail) << id;
  }
}

TEST_F(Reject, EveryForbiddenOpcodeGlobalAndCallIsMarked) {
  int marked = 0, others = 0;
  for (const Malformed& malformed : fixtures_.malformed) {
    if (!malformed.refusal) continue;
    const bool of_a_pickle = *malformed.refusal == RefusalClass::PickleOpcode ||
                             *malformed.refusal == RefusalClass::PickleGlobal ||
                             *malformed.refusal == RefusalClass::PickleCall;
    if (of_a_pickle) {
      EXPECT_TRUE(malformed.security) << malformed.id;
    }
    marked += malformed.security;
    others += malformed.security && !of_a_pickle;
  }
  EXPECT_GE(marked, 60);
  EXPECT_GE(others, 7);  // functions and classes named in metadata
}

}  // namespace
}  // namespace qcts
