// SPDX-License-Identifier: BSD-3-Clause
// The values that a scheme's recipe writes for finite weights, plane by plane.
// A recipe has cases: the usual one, and those of weights at the ends of their type, such as rows of zeros.
// An element of a weight is its code and the parameters that the code is decoded with.
// The recipe has written it only if one case holds all of these.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/numerics/affine.h"

namespace qcts {

// The numbers from min to max. Infinities are numbers here.
struct ValueRange {
  double min = 0, max = 0;
  bool nan = false;  // NaN too
  bool holds(double value) const;
  bool operator==(const ValueRange&) const = default;
};
inline constexpr ValueRange kZero = {0, 0};
inline constexpr ValueRange kInfinite = {std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::infinity()};
inline constexpr ValueRange kNanAlone = {std::numeric_limits<double>::infinity(),
                                         -std::numeric_limits<double>::infinity(), true};

std::string described(const ValueRange& range);  // "0", "1.19209e-07 .. 513.5", "NaN"

// A range of the elements first, first + step, first + 2 step, ... of a plane of layout "plain".
// Codes count as elements, and have the values of Scheme::codes() or, if they are indices, of their bits.
// Several ranges for the same elements are alternatives.
struct WrittenRange {
  std::string_view plane;
  ValueRange values;
  int first = 0, step = 1;
};

struct WrittenCase {
  std::string_view when;      // "", or "the scale of the row is 0"
  std::string_view evidence;  // the producer's formula, a golden, or an id of the ledger of choices
  std::vector<WrittenRange> ranges;
};
using Written = std::vector<WrittenCase>;

// Selects the finite weights whose groups (elements that share a scale) have a largest magnitude between
// these two.
struct Magnitudes {
  double least = 0, most = 0;
};
Magnitudes any_finite(DType dtype);

// The cases of choose_affine() and AffineQuantizer, for planes "qdata", "scale" and "zero_point".
Written written_affine(const AffineRecipe& recipe, Magnitudes of, std::string_view evidence);

}  // namespace qcts
