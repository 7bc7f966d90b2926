// SPDX-License-Identifier: BSD-3-Clause
// Comparing an answer with what is wanted of it: bitwise for bytes that a format or a scheme defines, bounded
// for sums. Both count every element alone (no tolerance is carried from one to the next), and no elements,
// other lengths and NaN are never equal by accident.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/tensor.h"
#include "reference/schemes/scheme.h"
#include "reports/verdict.h"

namespace qcts {

// What a comparison of two runs of elements found.
struct Comparison {
  uint64_t total = 0;      // elements compared
  uint64_t differing = 0;  // of those, the ones that fail
  uint64_t first = 0;      // index of the first that fails
  std::string want, got;   // of the first that fails: "0x3c21 (0.00982666)"
  std::string problem;     // why nothing could be compared: other lengths, no elements; empty otherwise

  // Something was compared and all of it agreed.
  bool equal() const { return problem.empty() && total > 0 && differing == 0; }
};

// Bitwise, element by element. For float types a NaN equals a NaN whatever its payload and sign; -0 differs
// from +0. Types of less than a byte, and packed ones, compare as bytes.
Comparison compare_bitwise(DType dtype, std::span<const std::byte> want, std::span<const std::byte> got);

// The planes of one weight: names, dtypes, shapes, then the bytes. nullopt: equal. `where` is the plane and
// Scheme::place of the first difference; count and total are summed over all planes.
std::optional<Mismatch> compare_planes(const Scheme& scheme, const WeightShape& shape, Layout layout,
                                       const Planes& want, const Planes& got);
// The planes of quantized x: `where` is the plane, row and column.
std::optional<Mismatch> compare_activation_planes(const Planes& want, const Planes& got);

// One element that is wanted within a bound: from `low` to `high`, both elements of the answer's type that
// may be returned.
struct Bounded {
  double value = 0;  // the oracle's, before any rounding
  double low = 0, high = 0;
};
// Every answer lies between -inf and inf: a stage that was declared may overflow on the way to this one.
bool is_unbounded(const Bounded& bounded);

struct BoundedComparison : Comparison {
  double worst = 0;  // max over finite elements of |answer - value| / (the far end - value); 0/0 counts as 0
  uint64_t vacuous = 0;    // elements without a usable bound (NaN, low > high): they do not pass
  uint64_t unbounded = 0;  // is_unbounded(): they do not pass either
  // What has a bound lies in it, and something has.
  bool holds() const { return problem.empty() && differing == unbounded && unbounded < total; }
};

// Passes an element only if low <= answer <= high, so NaN fails. A NaN value wants NaN and an infinite one
// wants that infinity; for a finite value an infinity passes only where the bound itself ends there. got:
// elements of dtype, a float type of whole bytes.
BoundedComparison compare_bounded(std::span<const Bounded> want, DType dtype, std::span<const std::byte> got);

// The smallest change of one element: one ulp for floats (away from zero; infinities and NaN become 0), one
// step for integers, the lowest bit for everything packed. Used to ask whether a case would have noticed.
void perturb_element(DType dtype, std::span<std::byte> elements, uint64_t index);

// true when changing element `index` of `want` by perturb_element makes compare_bitwise object.
bool bitwise_is_sensitive(DType dtype, std::span<const std::byte> want, uint64_t index);

// "0x3c21 (0.00982666)" for floats, "0x3c21" otherwise.
std::string describe_element(DType dtype, std::span<const std::byte> elements, uint64_t index);

}  // namespace qcts
