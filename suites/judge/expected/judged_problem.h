// SPDX-License-Identifier: BSD-3-Clause
// A problem with all that is needed to judge a kernel's answers to it.
#pragma once

#include <optional>

#include "reports/verdict.h"
#include "suites/judge/expected/expectation.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

class JudgedProblem {
 public:
  JudgedProblem(TestVector test_vector, const qcts_kernel& kernel);
  JudgedProblem(const JudgedProblem&) = delete;
  JudgedProblem& operator=(const JudgedProblem&) = delete;

  const KernelInput& input() const { return test_vector_.input; }
  bool is_refused() const { return test_vector_.is_refused; }  // as TestVector
  // Returns the first difference beyond what the kernel declares.
  std::optional<Mismatch> judge(const KernelAnswer& answer) const;

 private:
  TestVector test_vector_;
  std::optional<LinearReference> reference_;
  std::optional<Expectation> expectation_;
};

// Returns true if the answers have the same bytes.
bool is_same(const KernelAnswer& a, const KernelAnswer& b);

}  // namespace qcts
