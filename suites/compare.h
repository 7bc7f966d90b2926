// Comparing an answer with what is wanted of it: bitwise for bytes that a format or a scheme defines, bounded for sums. Both count
// every element alone (no tolerance is carried from one to the next), and no elements, other lengths and NaN are never equal by
// accident.
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

// Bitwise, element by element. For float types a NaN equals a NaN whatever its payload and sign; -0 differs from +0. Types of
// less than a byte, and packed ones, compare as bytes.
Comparison compare_bitwise(DType dtype, std::span<const std::byte> want, std::span<const std::byte> got);

// The planes of one weight: names, dtypes, shapes, then the bytes. nullopt: equal. `where` is the plane and Scheme::place of the
// first difference; count and total are summed over all planes.
std::optional<Mismatch> compare_planes(const Scheme& scheme, const WeightShape& shape, std::string_view layout,
                                       const Planes& want, const Planes& got);

// One element that is wanted within a bound.
struct Bounded {
  double value = 0;  // the oracle's, before any rounding
  double bound = 0;  // largest |answer - value| that the declared numerics allow, output rounding included; >= 0
};

struct BoundedComparison : Comparison {
  double worst = 0;         // max over finite elements of |answer - value| / bound; 0/0 counts as 0
  uint64_t vacuous = 0;     // elements whose bound is not finite: nothing can be said of them, they do not pass
};

// Passes an element only if |answer - value| <= bound, so NaN fails. A NaN value wants NaN and an infinite one wants that infinity.
// An infinity passes for a finite value only where value +- bound reaches the magnitude at which `dtype` rounds to infinity.
// got: elements of dtype (float32, float16, bfloat16, float64).
BoundedComparison compare_bounded(std::span<const Bounded> want, DType dtype, std::span<const std::byte> got);

// The smallest change of one element: one ulp for floats (away from zero; infinities and NaN become 0), one step for integers, the
// lowest bit for everything packed. Used to ask whether a case would have noticed.
void perturb_element(DType dtype, std::span<std::byte> elements, uint64_t index);

// true when changing element `index` of `want` by perturb_element makes compare_bitwise object.
bool bitwise_is_sensitive(DType dtype, std::span<const std::byte> want, uint64_t index);

// "0x3c21 (0.00982666)" for floats, "0x3c21" otherwise.
std::string describe_element(DType dtype, std::span<const std::byte> elements, uint64_t index);

// A float type whose elements are whole bytes: what compares as numbers.
bool has_float_elements(DType dtype);
// The magnitude from which rounding to nearest gives an infinity; infinity for types that have none or that double cannot exceed.
double overflow_threshold(DType dtype);

}  // namespace qcts
