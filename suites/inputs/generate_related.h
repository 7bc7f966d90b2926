// SPDX-License-Identifier: BSD-3-Clause
// Metamorphic relations of linear: inputs whose answers determine each other.
// The answers do so whatever the reference computes.
// All sums are exact, so a relation holds bit for bit in a correct kernel.
//
// scaled_x    y(8 x) is 8 y(x)
// permuted_k  reordering the columns of the weight and of x within their groups gives the same y
// zero_x      y(0) is the bias
// split_k     y over the first columns, plus y over the others, is y
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "suites/inputs/generate.h"

namespace qcts {

bool is_relation(Generator generator);
// Returns true if the relation applies to this scheme, which has exact sums.
bool has_relation(const Scheme& scheme, Generator generator, const WeightShape& shape);

// Turns exact sums into the relation's first input and adds the other inputs.
void relate(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, Generated& made);

// The first element, row-major [m, n], at which the answers to the other inputs contradict y.
// y is the answer to the first input. `bias` is [n]; zeros if there is none.
struct Contradiction {
  size_t index;
  double want, got;
};
std::optional<Contradiction> contradiction(Generator generator, std::span<const double> y,
                                           std::span<const std::vector<double>> answers,
                                           std::span<const double> bias);

}  // namespace qcts
