// SPDX-License-Identifier: BSD-3-Clause
// The values of a coded weight that its library writes for no finite weight.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/dialects/classes/coded_weight.h"

namespace qcts {

struct CodedFault {
  // code: not a number, or outside CodeMatrix::range. scale: negative (unless any_sign), not finite, larger
  // than the largest weight asks for, or 0 with codes that are not all equal. bias: not finite.
  enum class Kind : uint8_t { scale, bias, idle_bits, code, zero_point } kind = Kind::scale;
  std::string_view expected = {};  // "scales are finite and not negative"
  int64_t first = 0;               // index of the first one among the scales, biases, words or codes
  double value = 0;                // the first one; 0 for idle bits
  uint64_t count = 0, total = 0;
};

struct CodedValues {
  std::vector<CodedFault> faults;
  uint64_t lost_scales = 0;  // of 0, where ScaleMatrix::may_underflow explains them
  bool nan_of_zeros =
      false;  // no scale is a number, as ScaleMatrix::zeros_are_nan explains for a weight of zeros
  uint64_t infinities = 0;  // elements that overflow when they are rounded to the dtype of the weight
};
// Requires that coded_contradiction() is empty.
CodedValues coded_values(const CodedWeight& weight);

}  // namespace qcts
