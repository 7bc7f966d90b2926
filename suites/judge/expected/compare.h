// SPDX-License-Identifier: BSD-3-Clause
// Compares an answer with the expected one.
// The comparison is bitwise for bytes that a format or scheme defines, and within bounds for sums.
// Each element is compared on its own, and no tolerance is carried over.
// An empty comparison, different lengths and NaN never pass by accident.
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

// The result of comparing two runs of elements.
struct Comparison {
  uint64_t total = 0;      // elements compared
  uint64_t differing = 0;  // elements that fail
  uint64_t first = 0;      // index of the first failing element
  std::string want, got;   // values of the first failing element: "0x3c21 (0.00982666)"
  std::string problem;     // why nothing was compared: different lengths, no elements; otherwise empty

  // Returns true if at least one element was compared and all agree.
  bool equal() const { return problem.empty() && total > 0 && differing == 0; }
};

// Compares element by element. In float types any NaN equals any other NaN, and -0 differs from +0.
// Packed types and types of less than a byte compare as bytes.
Comparison compare_bitwise(DType dtype, std::span<const std::byte> want, std::span<const std::byte> got);

// Returns the elements that compare_bitwise() counts. Both have the same number of whole elements.
std::vector<bool> wrong_elements(DType dtype, std::span<const std::byte> want,
                                 std::span<const std::byte> got);

// Compares the planes of one weight: names, dtypes, shapes, then bytes. Returns nullopt if they are equal.
// `where` is the plane and Scheme::place of the first difference. count and total are summed over all planes.
std::optional<Mismatch> compare_planes(const Scheme& scheme, const WeightShape& shape, Layout layout,
                                       const Planes& want, const Planes& got);
// Compares the planes of quantized x. `where` is the plane, row and column.
std::optional<Mismatch> compare_activation_planes(const Planes& want, const Planes& got);

// The expected range of one element. `low` and `high` are values of the answer's type, and both are allowed.
struct Bounded {
  double value = 0;  // value of the oracle, before any rounding
  double low = 0, high = 0;
  double error = 0;  // how far a correct kernel's sum may be from `value` before it is rounded to y's type
};
// Returns true if the bound is -inf to inf, because a declared stage may overflow on the way to this element.
bool is_unbounded(const Bounded& bounded);

struct BoundedComparison : Comparison {
  // max over finite elements of |answer - value| / (distance to the bound), where 0/0 counts as 0
  double worst = 0;
  uint64_t vacuous = 0;    // elements without a usable bound (NaN, low > high), which do not pass
  uint64_t unbounded = 0;  // elements with is_unbounded(), which do not pass either
  // Returns true if all bounded elements are within bounds, and at least one is bounded.
  bool holds() const { return problem.empty() && differing == unbounded && unbounded < total; }
};

// Passes an element only if low <= answer <= high, so NaN fails.
// A NaN value requires NaN, and an infinite value requires that infinity.
// For a finite value, an infinity passes only if the bound includes it.
// `got` has elements of dtype, a float type of whole bytes.
BoundedComparison compare_bounded(std::span<const Bounded> want, DType dtype, std::span<const std::byte> got);

// Returns the elements outside their bounds. Elements without a usable bound are not among them. There are as
// many in `got` as in `want`.
std::vector<bool> wrong_elements(std::span<const Bounded> want, DType dtype, std::span<const std::byte> got);

// Changes one element as little as possible.
// A float changes by one ulp away from zero; infinities and NaN become 0.
// An integer changes by one, and a packed type in the lowest bit.
// Used to check that a case would notice such a change.
void perturb_element(DType dtype, std::span<std::byte> elements, uint64_t index);

// Returns true if compare_bitwise notices perturb_element on element `index` of `want`.
bool bitwise_is_sensitive(DType dtype, std::span<const std::byte> want, uint64_t index);

// Returns "0x3c21 (0.00982666)" for floats, or "0x3c21" for other types.
std::string describe_element(DType dtype, std::span<const std::byte> elements, uint64_t index);

}  // namespace qcts
