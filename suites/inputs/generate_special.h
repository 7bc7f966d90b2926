// SPDX-License-Identifier: BSD-3-Clause
// Synthetic inputs with values that noise never has.
// Such values are NaN, infinities, zero points of every size, and exponents at the ends of their range.
// Each input finds kernels that pass on all other inputs.
#pragma once

#include <string_view>
#include <vector>

#include "suites/inputs/synthetic.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// Returns true if the checkpoint stores the scale of x under this policy.
bool has_given_scale(const Scheme& scheme, const WeightShape& shape, Policy activation);
// Returns true for the plane of such a scale.
bool is_given_scale(std::string_view plane);
// Returns the scale that "given_scales" uses for m rows of x.
double given_scale(int64_t m);
// Returns the values of m that "given_scales" uses, one per scale.
// For linear, returns only the values of m whose scale leaves the product visible.
std::vector<int64_t> given_scale_batches(Op op);

// Returns true if this scheme supports the generator in this dtype.
// Always true for generators that are defined in other files.
bool carries(const Scheme& scheme, Generator generator, const WeightShape& shape);

// Returns true for a plane of scales that "odd_scales" edits: one per scheme.
bool may_be_odd(std::string_view plane, DType dtype);
// Does "nan_scales" leave enough of the scales of this plane as they are?
bool may_be_nan(const PlaneSpec& spec);
// Returns the factor of the large scales of "odd_scales".
double odd_factor(DType dtype);

// Returns true if integer zero points are drawn from the range of the codes.
bool spreads_zero_points(const Scheme& scheme, Op op, Generator generator);

// Can a float32 scale be chosen so that a product is rounded twice, once to float32?
bool has_two_roundings(const Scheme& scheme, const WeightShape& shape);
// Adjusts the scales of a dequantize in this way, by at most a few thousand ulps.
void round_twice(KernelInput& input);

// Turns an input from the generator "noise" into one of these. Returns false for any other generator.
// non_finite     For quantize, three rows of four have a NaN, +Inf or -Inf.
//                For linear, the next to last row of x has a NaN, and the bias has a NaN and an infinity.
//                Another row of x has an infinity if no zero is subtracted.
//                If the scheme has codes that are NaN, some codes are NaN, and they meet zeros in x.
//                Otherwise a scale is NaN.
// zero_points    Integer zero points cover the range of the codes and differ in each row. The recipes of
//                symmetric schemes write only 0, so these inputs are not reachable there (input_kind.h).
//                The input hard_x of linear has them too where the recipe writes them.
// tiny_scales    Scales (and zeros) are multiplied by 2^-60 in even rows or groups and by 2^-122 in odd ones.
// block_scales   Scales of blocks in e4m3 and e8m0 have one value per row.
//                The values are subnormals, the largest, and exponents far from 0.
// odd_scales     Scales of the weight are negative, zero of both signs, subnormal, the smallest normal number
//                or large, one kind in each row. If all rows share a scale, m chooses its kind.
// given_scales   The given scale of x is one that no quantizer finds. Some of x is zero. There is no bias.
// nan_scales     Every other scale of the weight is a NaN with a payload, quiet or signalling, or an
//                infinity.
// overflow       Answers of odd rows are sums of positive terms beyond the largest finite number.
//                Answers of even rows are small.
// half_overflow  The same as overflow, but in float16.
bool make_special(const Scheme& scheme, Op op, const Synthetic& synthetic, uint64_t seed, KernelInput& input);

}  // namespace qcts
