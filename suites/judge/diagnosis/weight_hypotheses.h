// SPDX-License-Identifier: BSD-3-Clause
// Explains wrong weights: finds the single mistake in reading weights that would produce the observed values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/schemes/scheme.h"
#include "suites/judge/diagnosis/least_distinct.h"

namespace qcts {

// The observed weights of all n rows and some of the k columns.
struct SeenWeights {
  const Scheme* scheme = nullptr;
  WeightShape shape;
  const Planes* planes = nullptr;  // layout "plain"
  int64_t m = 0;                   // rows of the call that produced the weights; 0 if there was none
  std::vector<int64_t> columns;
  std::vector<double> values;  // [n][columns.size()]
  double tolerance = 0;        // relative; two rounding steps of the coarsest type on the way to y
};

struct RankedHypothesis {
  std::string name;
  uint64_t explained = 0;  // wrong weights that the hypothesis predicts
  uint64_t refuted = 0;    // right weights that the hypothesis would have changed
  // explained / (weights that are wrong or would be changed).
  // The score is 1 if the hypothesis predicts every observed weight.
  double score = 0;
};

struct WeightExplanation {
  uint64_t wrong = 0, seen = 0;
  uint64_t distinct = 0;       // different pairs of a wanted and a got value among the wrong
  bool are_probed_all = true;  // false: the weight has columns that were not looked at
  int64_t first_row = 0, first_column = 0;
  double want = 0, got = 0;  // values of the first wrong weight
  // The smallest region that contains all wrong weights, and of which they are half or more: "the first
  // column of each group". It may be empty.
  std::string region;
  bool are_dropped = false;              // every wrong weight is 0 instead, so that its product is missing
  std::vector<RankedHypothesis> ranked;  // best first; every score is > 0

  // Returns true if one hypothesis predicts every wrong weight and changes no right one, and if they are
  // enough to tell. Only then it may be named.
  bool is_explained() const {
    return distinct >= kLeastDistinct && !ranked.empty() && ranked.front().score == 1;
  }
  // Returns the only hypothesis that predicts every observed weight if the weights are too few to name it, or
  // "".
  std::string agrees_with() const {
    const bool is_only = ranked.size() == 1 || (ranked.size() > 1 && ranked[1].score < 1);
    const bool fits = distinct >= kLeastAgreeing && distinct < kLeastDistinct && is_only;
    return fits && ranked.front().score == 1 ? ranked.front().name : "";
  }
};

WeightExplanation explain_weights(const SeenWeights& seen);

// Describes the explanation in words. The first part is
// "96 of 1024 weights differ, first at row 0, column 64: want 0.25, got 0.5".
// The second part is "; hypothesis: nibbles swapped (predicts 96 of 96)".
// If no hypothesis predicts all weights, the text is "no single hypothesis explains them".
// Right weights are "all 1024 weights are right", or "the 640 probed weights are right".
std::string describe(const WeightExplanation& explanation);

}  // namespace qcts
