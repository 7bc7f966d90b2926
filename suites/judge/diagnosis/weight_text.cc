// SPDX-License-Identifier: BSD-3-Clause
// An explanation of weights in words.
#include <cmath>
#include <cstdio>

#include "suites/judge/diagnosis/weight_hypotheses.h"

namespace qcts {

std::string describe(const WeightExplanation& explanation) {
  if (explanation.wrong == 0)
    return (explanation.are_probed_all ? "all " : "the ") + std::to_string(explanation.seen) +
           (explanation.are_probed_all ? " weights are right" : " probed weights are right");
  const auto number = [](double value) -> std::string {
    if (std::isnan(value)) return "nan";
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
  };
  std::string text = std::to_string(explanation.wrong) + " of " + std::to_string(explanation.seen) +
                     " weights differ, first at row " + std::to_string(explanation.first_row) + ", column " +
                     std::to_string(explanation.first_column) + ": want " + number(explanation.want) +
                     ", got " + number(explanation.got);
  const std::string region = explanation.region.empty() ? "" : "all in " + explanation.region;
  if (!explanation.is_explained() && !region.empty()) text += "; " + region;
  if (explanation.are_dropped) text += "; all read as 0: their products are missing";
  if (!explanation.is_explained()) return text + "; no single hypothesis explains them";
  const RankedHypothesis& best = explanation.ranked.front();
  text += "; hypothesis: " + best.name + " (predicts " + std::to_string(best.explained) + " of " +
          std::to_string(explanation.wrong) + ")" + (region.empty() ? "" : ", " + region);
  if (explanation.ranked.size() > 1 && explanation.ranked[1].score == 1)
    text += ", or else: " + explanation.ranked[1].name;
  return text;
}

}  // namespace qcts
