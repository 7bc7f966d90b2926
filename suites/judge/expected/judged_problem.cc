// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/judged_problem.h"

#include <algorithm>
#include <utility>

namespace qcts {

JudgedProblem::JudgedProblem(TestVector test_vector, const qcts_kernel& kernel)
    : test_vector_(std::move(test_vector)) {
  if (test_vector_.input.op == Op::linear) reference_.emplace(test_vector_.input);
  expectation_.emplace(test_vector_, reference_ ? &*reference_ : nullptr,
                       declared_stages(kernel, test_vector_.input.x_dtype));
}

std::optional<Mismatch> JudgedProblem::judge(const KernelAnswer& answer) const {
  return expectation_->judge(answer).mismatch;
}

bool is_same(const KernelAnswer& a, const KernelAnswer& b) {
  return a.y == b.y && std::ranges::equal(a.planes, b.planes, {}, &Plane::bytes, &Plane::bytes);
}

}  // namespace qcts
