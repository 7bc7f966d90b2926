// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/weight_regions.h"

namespace qcts {

std::vector<WeightRegion> weight_regions(const WeightShape& shape, int64_t group) {
  const int64_t n = shape.n, k = shape.k;
  std::vector<WeightRegion> all;
  all.push_back({"the last column", [=](const WeightPlace& p) { return p.column == k - 1; }});
  if (group < k)
    all.push_back(
        {"the first column of each group", [=](const WeightPlace& p) { return p.column % group == 0; }});
  for (const int64_t width : {4, 8, 16, 32, 64})
    if (k % width != 0 && k > width)
      all.push_back({"the last k % " + std::to_string(width) + " columns",
                     [=](const WeightPlace& p) { return p.column >= k / width * width; }});
  if (group < k)
    all.push_back({"the last group", [=](const WeightPlace& p) { return p.column >= k - group; }});
  all.push_back({"the first row", [](const WeightPlace& p) { return p.row == 0; }});
  all.push_back({"the last row", [=](const WeightPlace& p) { return p.row == n - 1; }});
  for (const int64_t width : {4, 8, 16, 32})
    if (n % width != 0 && n > width)
      all.push_back({"the last n % " + std::to_string(width) + " rows",
                     [=](const WeightPlace& p) { return p.row >= n / width * width; }});
  return all;
}

}  // namespace qcts
