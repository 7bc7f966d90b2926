// SPDX-License-Identifier: BSD-3-Clause
// Records which values the judged inputs cover, per scheme.
// The values are codes, scale exponents, points halfway between two codes, special values, and tails.
// With each numerics case, a worker reports the values that are new.
// The report merges the values of all workers and shards, in any order.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/verdict.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

// Coverage of one scheme ("int8_row") or of its activations under one policy ("int8_row:dyn_row_sym").
// The coverage is stored as sets, which merge by union.
struct ValueCoverage {
  std::set<int> codes_written, codes_read;  // indices of CodeSet::values
  // A number i stands for the point between the i-th finite code value and the next.
  std::set<int> halfway;
  // Maps a scale's dtype to the exponents e of scales in [2^e, 2^(e+1)).
  std::map<std::string, std::set<int>> exponents;
  // Special values that were seen: "zero", "-zero", "subnormal", "largest", "inf", "nan".
  std::set<std::string> weights, scales;
  std::set<int> k_mod_32, n_mod_16, m;  // from the shapes; m of linear and quantize_activation

  bool empty() const;
  // Adds the entries of `other`, and returns those that are new.
  ValueCoverage merge_new(const ValueCoverage& other);
};

// Returns the coverage of a numerics case.
// For dequantize, linear, pack and unpack, this is the coverage of the planes that the case reads.
// For quantize and quantize_activation, this is the coverage of the planes that the case should write.
ValueCoverage coverage_of(const TestVector& test_vector);
// Returns "int8_row", or "int8_row:POLICY" for quantize_activation.
std::string coverage_key(const TestVector& test_vector);

// Keeps the values that one process has reported so far.
class CoverageLog {
 public:
  // Returns the case's new values for Verdict::coverage.
  // Returns null if there are no new values or a case of this id was noted before.
  nlohmann::ordered_json note(const std::string& case_id, const TestVector& test_vector);

 private:
  std::set<std::string> noted_;
  std::map<std::string, ValueCoverage> said_;
};

// Returns the report's section, with one entry per covered scheme (and policy).
// An entry has counts, totals and missing values.
nlohmann::ordered_json coverage_json(std::span<const Verdict> verdicts);

}  // namespace qcts
