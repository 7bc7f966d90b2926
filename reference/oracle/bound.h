// SPDX-License-Identifier: BSD-3-Clause
// The error bound of one output element of `linear` (E4): the results that a kernel may return if it rounds
// only where it declares. The bound is not tuned: every term below is the worst case of its stage. A kernel
// that exceeds it has a fault, or a rounding that it did not declare.
//
// Terms. The weight is w = p + z: p = code * scale, z the floating zero-point term (0 in most schemes); both
// are exact in double. The oracle is y = sum over k of x*w, plus bias. A stage that rounds to a type with
// unit roundoff u (half a unit in the last place of 1: 2^-24 float32, 2^-11 float16, 2^-8 bfloat16) replaces
// v by v' with |v' - v| <= u*|v| + h. h covers results below the type's precision: half of its smallest
// subnormal, or its whole smallest normal number if the kernel flushes subnormals. This is the standard model
// of Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, (2.4) and (2.8).
//
// The bound sums these terms, in the order in which a kernel computes. E is the error so far, M >= the sum of
// the magnitudes so far.
//   1 x_cast        u * sum|x*w|, and h * sum(|p|+|z|)
//   2 scale_cast    u * sum(|x*p| + |x*z|), and h * sum|x|*(|code| + 1): scale and zero are cast separately,
//                   so where p and z cancel the error is that of the parts. Each later stage sees the rounded
//                   values, so it is scaled by (1 + u) of the earlier ones, which covers products of two.
//   3 weight_cast   u * sum|x*w|, and h * sum|x|: one rounding of the finished weight. If the cast is to
//                   float32 or wider, the product p may have been rounded first (multiply, then add):
//                   u * sum|x*p| more. For a narrower type the weight is formed in float32 and then rounded:
//                   2^-24 * sum(|x*p| + |x*w|) more, which is negligible.
//   4 product_cast  u * M, and h for each of the n products
//   5 accumulator   gamma(n + 1) * (M + |bias|) with gamma(n) = n*u / (1 - n*u): n additions, or n fused
//                   multiply-adds, in any order (vectorised, blocked, tree), possibly starting from the bias
//                   (Higham, (3.4) and section 4.2), and h for each. With output_cast the bias comes
//                   later and is not in M. int32 adds nothing.
//                   With fused sums (tensor cores), each step adds t products to the sum so far. Each of the t + 1
//                   addends is cut below 2^-F of the largest of them, and the result below 2^-R of itself, so
//                   a step loses at most s = (t + 1) * 2^-F + 2^-R of M, and c steps lose s*c / (1 - s*c). A
//                   partial sum that is promoted every P elements takes P/t steps, and its parts are added in
//                   float32: gamma(n/P) more.
//   6 output_cast   rounding of the sum before the bias; then the bias addition (u * |y|) in the
//   accumulator's
//                   type, or with bias_in_output_cast in output_cast's; then y_dtype.
// With scale_after_sum, codes are summed first, one group at a time, and 2, 3 and 5 are replaced:
//   5' accumulator  as 5, on sum|x*code| of each group, times its scale, which gives the same
//                   gamma(n) * sum|x*p|; and the sums of x for z
//   2' scale_cast   as 2
//   6' partial_cast u * |sum in the group|, not of the magnitudes: the finished sum is rounded, and it is
//                   smaller
//   7' scaling      multiplying each group's sum by its scale rounds in the accumulator's type, and adding
//                   the groups is gamma(groups) once more (twice the groups if a zero-point term is added
//                   separately)
//   8' quantized x  the sum of codes, and the sum of weights that its zero point subtracts, are each
//                   converted to float, scaled (the zero point's term twice) and rounded like a partial sum:
//                   (3 * u_multiply + u_partial) of the two magnitudes, before 6'
// Last, the oracle's own error in double, gamma(2n + 4) with u = 2^-53, is added.
//
// The output's own rounding is not a term: a correct kernel may return every value of y_dtype to which a
// number in [y - E, y + E] rounds, ties to even. `low` and `high` are the two ends; rounding is monotonic, so
// the set is everything between. This is exact at ties, at the edges of a binade, and at overflow (high is
// Inf only if a sum within the error rounds there).
//
// Not covered, and therefore refused: other rounding toward zero, an accumulator narrower than float32, overflow of
// an intermediate (x cast to float16, a group's sum), codes with another offset than the scheme's (unsigned
// sums corrected afterwards).
#pragma once

#include <cstdint>
#include <optional>

#include "reference/formats/tensor.h"
#include "reference/schemes/linear_stages.h"
#include "reference/schemes/scheme.h"

namespace qcts {

// The types of the operands. A cast to a type that holds every value of the source does not round.
struct LinearDTypes {
  DType x = DType::float32;
  DType scale = DType::float32;  // type of the scale and zero planes
  DType y = DType::float32;
};

struct LinearBound {
  double error = 0;  // E, before rounding to y's type
  double low = 0;    // smallest and largest value of y's type that a correct kernel may return
  double high = 0;
  double bound = 0;  // max(high - y, y - low): |got - y| <= bound, for reports
};

// Computes the bound. If the oracle is NaN or Inf, error, low, high and bound are NaN, and accepts() requires
// the same special value. Throws std::invalid_argument for an accumulator or a type that is not in the lists
// above, and for fused sums that are not possible.
LinearBound linear_bound(const LinearOracle& oracle, const LinearStages& stages, const LinearDTypes& dtypes);

// Is `got`, a value of y's type, within the bound? False for NaN unless the oracle is NaN.
bool accepts(const LinearOracle& oracle, const LinearBound& bound, double got);

// Returns n*u / (1 - n*u); Inf when n*u >= 1.
double gamma(double n, double u);

// Throws std::invalid_argument, saying what is not possible.
void check_fused_sums(const FusedSums& fused);

// Returns the share of the summed magnitudes that n additions in fused steps lose at most.
double fused_loss(double n, const FusedSums& fused);

// Returns the number of bits between the largest partial sum and the smallest addend with which every order of
// additions is exact.
int exact_fraction_bits(const LinearStages& stages);

}  // namespace qcts
