// SPDX-License-Identifier: BSD-3-Clause
// Which values the judged inputs have touched, scheme by scheme: codes, scale exponents, points halfway
// between two codes, special values, tails. A worker says of each numerics case what no case before it has
// said; the report joins what all workers of all shards said, whatever the order.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/verdict.h"
#include "suites/judge/expected/question.h"

namespace qcts {

// Of one scheme under one policy ("int8_row", "int8_row:dyn_row_sym" for quantized activations). A value is
// counted by its number, in sets, so that two of them join by union.
struct Touched {
  std::set<int> codes_written, codes_read;  // indices of CodeSet::values
  std::set<int> halfway;  // i: between the i-th and the next of the finite code values in order
  // dtype of the scale -> exponents e of scales in [2^e, 2^(e+1))
  std::map<std::string, std::set<int>> exponents;
  // special values seen: "zero", "-zero", "subnormal", "largest", "inf", "nan"
  std::set<std::string> weights, scales;
  std::set<int> k_mod_32, n_mod_16, m;  // of shapes; m of linear and quantize_activation

  bool empty() const;
  // What `other` has and this has not; then this has it too.
  Touched take_new(const Touched& other);
};

// What a numerics case touches: the planes that it reads (dequantize, linear, pack, unpack) or that are
// expected of it (quantize, quantize_activation).
Touched touched_by(const Question& question);
// "int8_row", or "int8_row:POLICY" for quantize_activation.
std::string touched_name(const Question& question);

// What one process has said so far.
class CoverageLog {
 public:
  // The case's news as Verdict::coverage; null when it has none, or when a case of this id was noted before.
  nlohmann::ordered_json note(const std::string& case_id, const Question& question);

 private:
  std::set<std::string> noted_;
  std::map<std::string, Touched> said_;
};

// The section of the report: one entry a scheme (and policy) that a verdict touched, with counts, totals and
// holes.
nlohmann::ordered_json coverage_json(std::span<const Verdict> verdicts);

}  // namespace qcts
