// SPDX-License-Identifier: BSD-3-Clause
// Makes the data of the synthetic inputs of suites/inputs/inputs.h from a seed.
// Nothing here depends on a family of schemes.
// The reference quantizes float weights, and the planes may then be edited.
#pragma once

#include <cstdint>
#include <string_view>

#include "suites/inputs/synthetic.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// The exact_bits of "exact_sums" and "outliers". Their sums have at most 2^8 units, which may be halved.
inline constexpr int kExactSumsBits = 9;

struct Generated {
  KernelInput input;
  // For linear. If an accumulator has this many fraction bits, partial sums are exact in every order and at
  // every stage, so y must match bit for bit. 0: they are not exact.
  int exact_bits = 0;
  std::vector<KernelInput> related = {};  // the other inputs of a relation (generate_related.h)
};

// Throws std::logic_error if the scheme does not support the generator.
Generated generate(const Scheme& scheme, Op op, Layout layout, const Synthetic& synthetic, uint64_t seed);

// Returns the column at which row `row` of x is 1; the row is 0 elsewhere. If m = k, every column is used.
// Otherwise the columns are spread from first to last.
int64_t one_hot_column(int64_t row, int64_t m, int64_t k);

// Returns a float weight with elements on both sides of code boundaries.
// Bisection finds the steps of the reference's own quantizer.
// The elements are the last two floats before a step and the first float after it.
std::vector<std::byte> boundary_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed);
// Returns m rows of x with elements on both sides of the code boundaries of a policy.
std::vector<std::byte> boundary_activation(const Scheme& scheme, const WeightShape& shape, Policy activation,
                                           const Planes& planes, int64_t m, uint64_t seed);

// Returns the planes that a policy stores: powers of two and -3 if `exact`.
// Otherwise the planes have scales that no narrower type can hold.
Planes policy_planes(const Scheme& scheme, const WeightShape& shape, Policy activation, bool exact);

// Returns a float weight [n, k] of noise that the scheme accepts.
// If the scheme is sparse, two of every four elements are zero.
std::vector<std::byte> noise_weight_for(const Scheme& scheme, const WeightShape& shape, uint64_t seed);

// Returns planes of a large weight without the cost of quantizing all of it.
// Every unit of 32 rows, or of 16 if 32 do not divide n, is a random unit of some quantized rows of noise.
// If the planes cannot be assembled in this way, the whole weight is quantized.
// Such a weight has an n that is not a multiple of 16, or a scale that covers more than 32 rows.
using MakeWeight = std::vector<std::byte> (*)(const Scheme&, const WeightShape&, uint64_t seed);
Planes random_planes(const Scheme& scheme, const WeightShape& shape, uint64_t seed,
                     MakeWeight noise = noise_weight_for);

}  // namespace qcts
