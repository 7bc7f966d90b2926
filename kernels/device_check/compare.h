// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device_check/check.h"

namespace qcts::device_check {

struct Difference {
  int64_t index;  // of the case
  uint32_t word;  // of its output
  uint32_t executor, device;
  bool nan_only;  // both are NaN
  std::string operands;
};

struct Comparison {
  int64_t cases = 0, words = 0;
  int64_t different = 0;  // cases that differ
  int64_t different_words = 0;
  int64_t nan_only = 0;              // those of `different` that differ only in the bits of NaN
  int64_t nan_bits = 0;              // words that count as equal because both are NaN (Output::arithmetic)
  std::vector<Difference> examples;  // the first ones, with some of each kind
};

// Adds the outputs of `count` cases to the comparison. The first of these cases has number `first`.
void compare(const Check& check, int64_t first, int64_t count, const uint32_t* in, const uint32_t* executor,
             const uint32_t* device, Comparison* comparison);

}  // namespace qcts::device_check
