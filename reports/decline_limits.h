// SPDX-License-Identifier: BSD-3-Clause
// Finds the limits of a provider in what it declined: "x float16", "m above 16", "k not a multiple of 64".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reports/asked.h"

namespace qcts {

inline constexpr size_t kMaxLimits = 5;  // a provider that needs more follows no rule that a user could know

enum class LimitField : uint8_t {
  w_dtype,
  x_dtype,
  y_dtype,
  bias_dtype,
  dtypes,
  policy,
  layout,
  container,
  m,
  n,
  k,
  group
};
// `differs`: y or the bias has a type other than x's, or x a type other than the weight's.
enum class LimitRule : uint8_t { equal, mixed, differs, above, below, no_multiple };

// A rule: every asked case that it matches was declined.
struct Limit {
  LimitField field = LimitField::x_dtype;
  LimitRule rule = LimitRule::equal;
  std::string word;    // of `equal`: "float16"
  int64_t bound = 0;   // of `above`, `below` and `no_multiple`
  uint64_t cases = 0;  // that only it explains, or that it is the first to explain

  bool matches(const Asked& asked) const;
  std::string text() const;  // "m above 16"
};

struct AskedCase {
  const Asked* asked = nullptr;
  bool declined = false;
};

struct DeclineLimits {
  std::vector<Limit> rules;       // at most kMaxLimits; the one that explains most comes first
  std::vector<size_t> irregular;  // indexes of declined cases that no rule explains
};

// Explains the declined cases by the fewest rules that a greedy choice finds. `mixed` matches types of x, y,
// bias and weight that are not all the same.
DeclineLimits limits_of(std::span<const AskedCase> cases);

}  // namespace qcts
