// SPDX-License-Identifier: BSD-3-Clause
// What an answer to a question has to be, and how far one is from it: numerics and determinism judge by it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "suites/judge/expected/question.h"

namespace qcts {

struct Finding {
  std::optional<Mismatch> mismatch;  // nullopt: the answer holds
  double worst = 0;                  // of linear: the largest part of a bound that an element took
};

// "y: row 3, column 40 (group 1)"; group: elements of k, 0 for none.
std::string place_in_matrix(const char* name, uint64_t index, int64_t cols, int64_t group);
Mismatch mismatch_of(const Comparison& compared, std::string where);

class Expectation {
 public:
  // truth: of linear; nullptr otherwise. Both outlive it. Throws std::logic_error where exact sums are asked
  // for that y's type cannot hold.
  Expectation(const Question& question, const LinearTruth* truth, const qcts_numerics& numerics);

  Finding judge(const KernelAnswer& answer) const;

  const std::vector<Bounded>& bounds() const { return bounds_; }  // of linear, row-major [m, n]
  const LinearTruth& truth() const { return *truth_; }

 private:
  void make_exact();
  Finding judge_linear(const KernelAnswer& answer) const;
  bool only_zero_signs_differ(const KernelAnswer& answer) const;

  const Question& question_;
  const LinearTruth* truth_;
  std::vector<Bounded> bounds_;
  std::vector<std::byte> exact_y_;
};

}  // namespace qcts
