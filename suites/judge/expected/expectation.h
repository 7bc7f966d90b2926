// SPDX-License-Identifier: BSD-3-Clause
// The expected answer to a test vector, and the distance between it and an actual answer.
// The kinds numerics and determinism use this.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "suites/judge/expected/test_vector.h"

namespace qcts {

struct Finding {
  std::optional<Mismatch> mismatch;  // nullopt: the answer is right
  double worst = 0;                  // linear: the largest share of its bound that an element used
};

// Returns "y: row 3, column 40 (group 1)". `group` is the number of elements of k per group, or 0.
std::string place_in_matrix(const char* name, uint64_t index, int64_t cols, int64_t group);
Mismatch mismatch_of(const Comparison& compared, std::string where);

class Expectation {
 public:
  // `reference` is needed for linear and nullptr otherwise. Both arguments must outlive the object.
  // `stages` says where the kernel rounds.
  // Throws std::logic_error if exact sums are required but y's type cannot hold them.
  Expectation(const TestVector& test_vector, const LinearReference* reference, const LinearStages& stages);

  Finding judge(const KernelAnswer& answer) const;

  const std::vector<Bounded>& bounds() const { return bounds_; }  // for linear; row-major [m, n]
  // The same, as y is judged: sums that must be exact have no room.
  std::vector<Bounded> wanted() const;
  const LinearReference& reference() const { return *reference_; }
  // Returns true if y must match bit for bit, because the kernel's accumulator keeps all bits of these sums.
  bool is_exact() const { return !exact_y_.empty(); }

 private:
  void make_exact();
  Finding judge_answer(const KernelAnswer& answer) const;
  Finding judge_linear(const KernelAnswer& answer) const;
  bool only_zero_signs_differ(const KernelAnswer& answer) const;

  const TestVector& test_vector_;
  const LinearReference* reference_;
  std::vector<Bounded> bounds_;
  std::vector<std::byte> exact_y_;
};

}  // namespace qcts
