// SPDX-License-Identifier: BSD-3-Clause
// Rows of x with a NaN or an infinity above weights of zero.
#pragma once

#include "suites/inputs/generate.h"

namespace qcts {

// Returns true if the scheme's recipe writes zero weights next to others in a column.
bool has_zero_codes(const Scheme& scheme, const WeightShape& shape);

// Makes a weight_only linear. Every other row of x, the first included, has one element that is not finite.
// The weights of its column are zero in some rows and not zero in others.
// The product with zero is NaN, so a kernel that skips weights of zero gives a number instead.
// The elements are +Inf, NaN and -Inf in turn. They are all NaN if a zero point may be subtracted from a sum,
// because an infinity may then correctly become NaN with any code.
// The bias has all three in its last columns, for the rows of x that are finite.
Generated zero_codes(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed);

}  // namespace qcts
