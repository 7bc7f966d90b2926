// SPDX-License-Identifier: BSD-3-Clause
// Weight shapes of the input families of inputs.h: remainders of kernels' block sizes, long rows, many rows.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "suites/inputs/input_families.h"
#include "suites/inputs/inputs.h"

namespace qcts {

using Shape = std::pair<int64_t, int64_t>;  // n, k

constexpr int64_t kDecodeColumns = 520;             // for one row of x: 8 blocks of 64, and a remainder
constexpr int64_t kManyRows = 65536 + 16;           // a number of rows that 16 bits cannot count
constexpr int64_t kManyRowsOfBlocks = 65536 + 256;  // the same in whole blocks of 256
constexpr int64_t kShortGroup = 32;                 // longer groups have no rows of `long` beyond 16 bits

// Returns ordinary shapes. The first two have tails. `layout` is "plain" except for pack and unpack.
std::vector<Shape> shapes(const Scheme& scheme, Layout layout);
// Returns a family's shapes in order of preference. A scheme may refuse some of them.
std::vector<Shape> shapes_of_family(const InputFamily& family, Kind kind, const Scheme& scheme, Layout layout,
                                    InputSet set);

}  // namespace qcts
