// SPDX-License-Identifier: BSD-3-Clause
// Shapes of the weights that the families of inputs.h are made for: rests of what kernels take at a time,
// long rows, many rows.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "suites/inputs/inputs.h"

namespace qcts {

using Shape = std::pair<int64_t, int64_t>;  // n, k

constexpr int64_t kDecodeColumns = 520;    // of one row of x: 8 blocks of 64, and a rest
constexpr int64_t kManyRows = 65536 + 16;  // more than 16 bits count

// Ordinary ones, the first two with tails. `layout` is "plain" but for pack and unpack.
std::vector<Shape> shapes(const Scheme& scheme, Layout layout);
// In the order in which a family takes them; a scheme may refuse some.
std::vector<Shape> shapes_of_family(const InputFamily& family, Kind kind, const Scheme& scheme, Layout layout,
                                    InputSet set);

}  // namespace qcts
