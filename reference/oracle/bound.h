// SPDX-License-Identifier: BSD-3-Clause
// The error bound of one output element of `linear` (E4).
// The bound allows the results that a kernel may return if it rounds only where it declares.
// The bound is not tuned, because every term below is the worst case of its stage.
// A kernel that exceeds the bound has a fault, or a rounding that it did not declare.
//
// The weight is w = p + z, where p = code * scale, and z is the floating zero-point term.
// z is 0 in most schemes. Both p and z are exact in double.
// The oracle is y = sum over k of x*w, plus bias.
// A stage that rounds to a type replaces v by v' with |v' - v| <= u*|v| + h.
// Here u is the type's unit roundoff, half a unit in the last place of 1.
// For float32 u is 2^-24, for float16 2^-11, for bfloat16 2^-8.
// h covers results below the type's precision: half of the type's smallest subnormal.
// If the kernel flushes subnormals, h is the type's whole smallest normal number.
// This is the standard model, (2.4) and (2.8) in Higham's book
// "Accuracy and Stability of Numerical Algorithms", 2nd edition.
//
// The bound sums these terms, in the order in which a kernel computes.
// E is the error so far. M is at least the sum of the magnitudes so far.
//   1 x_cast        Adds u * sum|x*w|, and h * sum(|p|+|z|).
//   2 scale_cast    Adds u * sum(|x*p| + |x*z|), and h * sum|x|*(|code| + 1).
//                   Scale and zero are cast separately.
//                   If p and z cancel, the errors of the two parts therefore remain.
//                   Each later stage sees the rounded values.
//                   The later terms are scaled by (1 + u) of the earlier stages to cover products of errors.
//   3 weight_cast   Adds u * sum|x*w|, and h * sum|x|, for one rounding of the finished weight.
//                   A cast to float32 or wider adds u * sum|x*p| more.
//                   In that case the product p may have been rounded first (multiply, then add).
//                   For a narrower type, the weight is formed in float32 and then rounded.
//                   This adds 2^-24 * sum(|x*p| + |x*w|), which is negligible.
//   4 product_cast  Adds u * M, and h for each of the n products.
//   5 accumulator   Adds gamma(n + 1) * (M + |bias|), and h for each addition.
//                   gamma(n) is n*u / (1 - n*u) (Higham, (3.4) and section 4.2).
//                   This term covers n additions or n fused multiply-adds in any order.
//                   The order may be vectorised, blocked or a tree, and may start from the bias.
//                   With output_cast, the bias comes later and is not in M. int32 adds nothing.
//                   With fused sums (tensor cores), each step adds t products to the sum so far.
//                   Each of the t + 1 addends is cut below 2^-F of the largest addend.
//                   The result is cut below 2^-R of itself.
//                   A step loses at most s = (t + 1) * 2^-F + 2^-R of M, and c steps lose s*c / (1 - s*c).
//                   Ampere gives the factor 0 the exponent -126, so that a product with 0 counts as 2^-126
//                   times the other factor: M grows by 2^-126 * (sum|x| + sum|w|).
//                   A partial sum that is promoted every P elements takes P/t steps.
//                   Its parts are added in float32, which adds gamma(n/P).
//   6 output_cast   Rounds the sum before the bias. The bias addition (u * |y|) is next.
//                   The addition rounds in the accumulator's type.
//                   With bias_in_output_cast, the addition rounds in output_cast's type.
//                   The rounding to y_dtype is last.
// With scale_after_sum, codes are summed first, one group at a time. These terms then replace 2, 3 and 5:
//   5' accumulator  Adds term 5 for sum|x*code| of each group, times the group's scale.
//                   This gives the same gamma(n) * sum|x*p|. The sums of x for z are added in the same way.
//   2' scale_cast   Adds the same as term 2.
//   6' partial_cast Adds u * |sum in the group|.
//                   The magnitudes do not count: only the finished sum is rounded, and it is smaller.
//   7' scaling      Multiplying each group's sum by its scale rounds in the accumulator's type.
//                   Adding the groups is gamma(groups) once more.
//                   The number of groups doubles if a zero-point term is added separately.
//   8' quantized x  The kernel has the sum of codes, and the sum of weights that x's zero point subtracts.
//                   Each sum is converted to float, scaled and rounded like a partial sum.
//                   The zero point's term is scaled twice.
//                   This adds (3 * u_multiply + u_partial) of the two magnitudes, before 6'.
// Last, the oracle's own error in double is added: gamma(2n + 4) with u = 2^-53.
//
// The output's own rounding is not a term.
// A correct kernel may return every value of y_dtype to which a number in [y - E, y + E] rounds.
// Ties round to even.
// `low` and `high` are the two ends of that range.
// Rounding is monotonic, so the set is everything between the two ends.
// This is exact at ties, at the edges of a binade, and at overflow.
// `high` is Inf only if a sum within the error rounds to Inf.
//
// Some cases are not covered and are therefore refused:
//   - rounding toward zero, except in fused sums;
//   - an accumulator narrower than float32;
//   - overflow of an intermediate (x cast to float16, a group's sum);
//   - codes with another offset than the scheme's (unsigned sums that are corrected afterwards).
#pragma once

#include <cstdint>
#include <optional>

#include "reference/formats/tensor.h"
#include "reference/schemes/linear_stages.h"
#include "reference/schemes/scheme.h"

namespace qcts {

// The types of the operands. A cast to a type that holds every value of the source type does not round.
struct LinearDTypes {
  DType x = DType::float32;
  DType scale = DType::float32;  // type of the scale and zero planes
  DType y = DType::float32;
};

struct LinearBound {
  double error = 0;  // E, before rounding to y's type
  // `low` and `high` are the smallest and the largest value of y's type that a correct kernel may return.
  double low = 0;
  double high = 0;
  double bound = 0;  // max(high - y, y - low): |got - y| <= bound, for reports
};

// Computes the bound. If the oracle is NaN or Inf, then error, low, high and bound are NaN.
// accepts() then requires the same special value.
// Throws std::invalid_argument for an accumulator or a type that is not in the lists above.
// Throws it also for fused sums that check_fused_sums() refuses.
LinearBound linear_bound(const LinearOracle& oracle, const LinearStages& stages, const LinearDTypes& dtypes);

// Returns true if `got`, a value of y's type, is within the bound.
// Returns false for NaN unless the oracle is NaN.
bool accepts(const LinearOracle& oracle, const LinearBound& bound, double got);

// Returns n*u / (1 - n*u), or Inf if n*u >= 1.
double gamma(double n, double u);

// Throws std::invalid_argument, which says what is not possible.
void check_fused_sums(const FusedSums& fused);

// Returns the maximum share of the summed magnitudes that n additions in fused steps lose.
double fused_loss(double n, const FusedSums& fused);

// Returns how many bits may be between the largest partial sum and the smallest addend so that every order of
// additions is exact.
int exact_fraction_bits(const LinearStages& stages);

}  // namespace qcts
