// SPDX-License-Identifier: BSD-3-Clause
// Parts of a weight to which a mistake may be limited.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

struct WeightPlace {
  int64_t row = 0, column = 0;
};

struct WeightRegion {
  std::string name;  // "the last column"
  std::function<bool(const WeightPlace&)> holds;
};

// Lists regions from the smallest to the largest. `group` is the number of elements of k that share a scale.
std::vector<WeightRegion> weight_regions(const WeightShape& shape, int64_t group);

}  // namespace qcts
