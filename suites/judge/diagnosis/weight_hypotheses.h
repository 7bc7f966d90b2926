// SPDX-License-Identifier: BSD-3-Clause
// Weights that are not what they should be, explained: which one mistake in reading a weight would give what
// was seen?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

// Weights as somebody sees them: all n rows, some of the k columns.
struct SeenWeights {
  const Scheme* scheme = nullptr;
  WeightShape shape;
  const Planes* planes = nullptr;  // layout "plain"
  int64_t m = 0;                   // rows of the call that showed them; 0 where there is none
  std::vector<int64_t> columns;
  std::vector<double> values;  // [n][columns.size()]
  double tolerance = 0;        // relative: two rounding steps of the coarsest type on the way
};

struct RankedHypothesis {
  std::string name;
  uint64_t explained = 0;  // wrong weights that it predicts
  uint64_t refuted = 0;    // right ones that it would have changed
  // explained over all that are wrong or would be changed; 1: it predicts every weight that was seen
  double score = 0;
};

struct WeightExplanation {
  uint64_t wrong = 0, seen = 0;
  int64_t first_row = 0, first_column = 0;
  double want = 0, got = 0;  // of the first wrong one
  std::string region;  // where all wrong ones lie: "the first column of each group"; empty: no such place
  std::vector<RankedHypothesis> ranked;  // best first, score > 0

  // One hypothesis predicts nearly everything that was seen, so it may be named.
  bool is_explained() const { return !ranked.empty() && ranked.front().score >= 0.9; }
};

WeightExplanation explain_weights(const SeenWeights& seen);

// "96 of 1024 weights differ, first at row 0, column 64: want 0.25, got 0.5; hypothesis: nibbles swapped
// (predicts 96 of 96)". Without a hypothesis that predicts nearly all: "no single hypothesis explains them".
std::string describe(const WeightExplanation& explanation);

}  // namespace qcts
