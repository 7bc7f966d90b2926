// SPDX-License-Identifier: BSD-3-Clause
// Synthetic inputs made from a seed: the data behind suites/inputs/inputs.h. Nothing here knows a family:
// weights are made by quantizing floats with the reference, and by editing the planes that come out.
#pragma once

#include <cstdint>
#include <string_view>

#include "suites/inputs/synthetic.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

struct Generated {
  KernelInput input;
  bool exact =
      false;  // linear: every partial sum of every order and every stage is exact, so y is wanted bit for bit
  std::vector<KernelInput> related = {};  // of a relation: what is asked beside it (generate_related.h)
};

// Throws std::logic_error when the scheme cannot carry the generator.
Generated generate(const Scheme& scheme, Op op, Layout layout, const Synthetic& synthetic, uint64_t seed);

// Element i of x is 1 at column one_hot_column(i, ...) and 0 elsewhere: all columns when m = k, else spread
// from first to last.
int64_t one_hot_column(int64_t row, int64_t m, int64_t k);

// A float weight whose elements lie on both sides of code boundaries: the last float before a step of
// the reference's own quantizer, the first behind it, and the one before the last, found by bisection.
std::vector<std::byte> boundary_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed);
// The same for m rows of x under a policy.
std::vector<std::byte> boundary_activation(const Scheme& scheme, const WeightShape& shape, Policy activation,
                                           const Planes& planes, int64_t m, uint64_t seed);

// The planes of a policy that stores some: powers of two and -3 where `exact`, otherwise scales that no
// narrower type holds.
Planes policy_planes(const Scheme& scheme, const WeightShape& shape, Policy activation, bool exact);

// A float weight [n, k] that the scheme quantizes: noise, with two of every four elements zero where it takes
// no dense one.
std::vector<std::byte> noise_weight_for(const Scheme& scheme, const WeightShape& shape, uint64_t seed);

// Planes of a large weight without the cost of quantizing all of it: rows of noise, quantized by the
// reference, of which every unit of 32 rows takes a random unit. Where a plane cannot be put together so (n
// is no multiple of 32, or a block of more rows shares a scale), all of it is quantized.
Planes random_planes(const Scheme& scheme, const WeightShape& shape, uint64_t seed);

}  // namespace qcts
