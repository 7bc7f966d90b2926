// SPDX-License-Identifier: BSD-3-Clause
// Makes the data of the synthetic inputs of suites/inputs/inputs.h from a seed. Nothing here depends on a
// family of schemes: weights are floats quantized with the reference, whose planes may then be edited.
#pragma once

#include <cstdint>
#include <string_view>

#include "suites/inputs/synthetic.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// exact_bits of "exact_sums" and "outliers": sums of at most 2^8 units, which may be halved.
inline constexpr int kExactSumsBits = 9;

struct Generated {
  KernelInput input;
  // linear: partial sums are exact in every order and at every stage for an accumulator with this many
  // fraction bits, so y must match bit for bit; 0: they are not exact
  int exact_bits = 0;
  std::vector<KernelInput> related = {};  // the other inputs of a relation (generate_related.h)
};

// Throws std::logic_error if the scheme does not support the generator.
Generated generate(const Scheme& scheme, Op op, Layout layout, const Synthetic& synthetic, uint64_t seed);

// Row i of x is 1 at column one_hot_column(i, ...) and 0 elsewhere: every column if m = k, else columns
// spread from first to last.
int64_t one_hot_column(int64_t row, int64_t m, int64_t k);

// Returns a float weight with elements on both sides of code boundaries: the last float before a step of the
// reference's own quantizer, the first after it, and the one before the last, found by bisection.
std::vector<std::byte> boundary_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed);
// The same for m rows of x under a policy.
std::vector<std::byte> boundary_activation(const Scheme& scheme, const WeightShape& shape, Policy activation,
                                           const Planes& planes, int64_t m, uint64_t seed);

// Returns the planes that a policy stores: powers of two and -3 if `exact`, otherwise scales that no narrower
// type can hold.
Planes policy_planes(const Scheme& scheme, const WeightShape& shape, Policy activation, bool exact);

// Returns a float weight [n, k] that the scheme accepts: noise, with two of every four elements zero if the
// scheme is sparse.
std::vector<std::byte> noise_weight_for(const Scheme& scheme, const WeightShape& shape, uint64_t seed);

// Returns planes of a large weight without the cost of quantizing all of it: every unit of 32 rows is a
// random unit of some quantized rows of noise. If the planes cannot be assembled in this way (n is not a
// multiple of 32, or a scale covers more than 32 rows), quantizes the whole weight.
Planes random_planes(const Scheme& scheme, const WeightShape& shape, uint64_t seed);

}  // namespace qcts
