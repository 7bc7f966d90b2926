// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/did_you_mean.h"

#include <algorithm>

namespace qcts {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    const bool any_run = a[i - 1] == '*', any_one = a[i - 1] == '?';
    row[0] = last[0] + (any_run ? 0 : 1);
    for (size_t j = 1; j <= b.size(); ++j) {
      if (any_run) {
        row[j] = std::min(last[j], row[j - 1]);
        continue;
      }
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (any_one || a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = static_cast<size_t>(-1);
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best_distance = distance, best = candidate;
  }
  return best;
}

bool is_near(std::string_view word, std::string_view candidate) {
  return edit_distance(word, candidate) <= std::max<size_t>(2, candidate.size() / 2);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return {};
  const std::string best = nearest(word, candidates);
  if (is_near(word, best)) return " (did you mean '" + best + "'?)";
  if (candidates.size() > 20) return {};
  std::string known;
  for (const std::string& candidate : candidates) known += (known.empty() ? "" : ", ") + candidate;
  return " (known: " + known + ")";
}

}  // namespace qcts
