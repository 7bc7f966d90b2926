// Synthetic inputs whose values ordinary noise never takes: not a number, infinities, zero points of every
// size, the ends of the range of exponents. Each one hunts kernels that are right on all others.
#pragma once

#include <string_view>

#include "suites/case.h"
#include "suites/kernel_run.h"

namespace qcts {

// Can this scheme carry the generator in this dtype? true for every generator that is not one of this file's.
bool carries(const Scheme& scheme, std::string_view generator, const WeightShape& shape);

// Turns an input of generator "noise" into one of "non_finite", "zero_points", "tiny_scales" or "overflow".
// false: none of these. non_finite   quantize: a NaN, +Inf or -Inf in three rows of four. linear: a NaN in
// the last of several rows of x; a NaN scale, or NaN
//              codes where there are such; zeros in the first row of x under the latter
// zero_points  integer zero points over a byte's whole range, another in each row; so in linear of hard_x,
//              and where a producer's forward never reads them
// tiny_scales  scales (and zeros) times 2^-60 in even rows or groups, 2^-122 in odd ones
// overflow     the answers of odd rows, sums of positive terms, lie beyond the largest finite number; even ones are small
bool make_special(const Scheme& scheme, std::string_view op, const Synthetic& synthetic, uint64_t seed,
                  KernelInput& input);

}  // namespace qcts
