// SPDX-License-Identifier: BSD-3-Clause
// Finds the values in a quantized weight that its scheme's recipe cannot have written for any finite weight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

// The values of one plane that the recipe does not write, for one reason.
struct NotWritten {
  std::string plane;
  uint64_t byte_offset = 0;  // of the first one, in layout "plain": Scheme::place() describes it
  std::string value;         // the first one: "nan", "3e+38", "100", "0xc5 with idle bits"
  std::string why;     // "the recipe writes 1.19209e-07 .. 2.66e+36" [", where the scale of the row is 0"]
  uint64_t count = 0;  // of all
};

// Compares the planes of layout "plain" with Scheme::written(), and the planes of the policy
// `activation`, if present, with Scheme::policy_ranges(). First every value on its own, then every element:
// its code with its parameters. `layout` is the layout whose recipe is meant, as in Scheme::quantize().
// Throws std::invalid_argument if a plane is missing or has the wrong size.
std::vector<NotWritten> not_written(const Scheme& scheme, const Planes& plain, const WeightShape& shape,
                                    Layout layout = kPlain, Policy activation = kWeightOnly);

// Returns how many elements a plane has: two per byte of packed codes.
int64_t stored_elements(const Scheme& scheme, const PlaneSpec& spec, const WeightShape& shape);

// Returns the number of each element of a plane, as WrittenRange counts elements. NaN for a byte that has
// bits besides its code.
std::vector<double> stored_numbers(const Scheme& scheme, const PlaneSpec& spec, const WeightShape& shape,
                                   std::span<const std::byte> bytes);

}  // namespace qcts
