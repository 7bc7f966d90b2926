// SPDX-License-Identifier: BSD-3-Clause
// Synthetic inputs with values that noise never has: NaN, infinities, zero points of every size, exponents at
// the ends of their range. Each finds kernels that pass on all the others.
#pragma once

#include <string_view>
#include <vector>

#include "suites/inputs/synthetic.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// Is the scale of x stored in the checkpoint under this policy?
bool has_given_scale(const Scheme& scheme, const WeightShape& shape, Policy activation);
// Returns the values of m that "given_scales" uses, one for each scale; for linear only those with which the
// product is visible.
std::vector<int64_t> given_scale_batches(Op op);

// Does this scheme support the generator in this dtype? True for every generator of another file.
bool carries(const Scheme& scheme, Generator generator, const WeightShape& shape);

// Turns an input of generator "noise" into one of those below. Returns false for any other generator.
// non_finite   quantize: a NaN, +Inf or -Inf in three rows of four. linear: a NaN in a row of x before the
//              last, an infinity in another where no zero is subtracted, both in the bias; a NaN scale, or
//              NaN codes where there are such; zeros in the first row of x under the latter
// zero_points  integer zero points over a byte's whole range, another in each row; so in linear of hard_x,
//              and where a producer's forward never reads them
// tiny_scales  scales (and zeros) times 2^-60 in even rows or groups, 2^-122 in odd ones
// block_scales scales of blocks in e4m3 and e8m0, a row each: subnormals, the largest, exponents far from 0
// given_scales the given scale of x is one that no quantizer finds; some of x is zero, no bias
// overflow     answers of odd rows, sums of positive terms, beyond the largest finite number; even ones small
// half_overflow  the same of float16
bool make_special(const Scheme& scheme, Op op, const Synthetic& synthetic, uint64_t seed, KernelInput& input);

}  // namespace qcts
