// SPDX-License-Identifier: BSD-3-Clause
// Parts that the generators of synthetic inputs (suites/inputs/generate*.cc) share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"
#include "suites/inputs/generate.h"

namespace qcts {

// A float matrix whose values are held in double and rounded once when they are stored.
struct Floats {
  DType dtype;
  int64_t rows, cols;
  std::vector<double> values;
  Floats(DType type, int64_t r, int64_t c)
      : dtype(type), rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out(values.size() * dtype_bytes(dtype));
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != 0 || std::signbit(values[i])) store_float(dtype, out, i, values[i]);
    return out;
  }
};

// Puts a NaN with all bits of its payload set into an array of float32.
inline void put_full_nan(std::vector<std::byte>& x, int64_t index) {
  constexpr uint32_t kFullNan = 0x7fffffff;
  std::memcpy(x.data() + index * static_cast<int64_t>(sizeof kFullNan), &kFullNan, sizeof kFullNan);
}

// Noise; neighbouring rows and groups differ by a factor of 4, so that using a neighbour's scale is visible.
// `fewer`: some chunks of a 2:4 sparse weight have fewer than two nonzeros.
Floats noise_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed, bool fewer = true);

inline int64_t group_length(const Scheme& scheme, const WeightShape& shape) {
  return scheme.group() == 0 ? shape.k : scheme.group();
}

inline Planes quantized(const Scheme& scheme, const WeightShape& shape, const std::vector<std::byte>& bytes) {
  return scheme.quantize({shape.dtype, shape.n, shape.k, bytes});
}

inline Plane& codes_plane(Planes& planes) {
  for (Plane& plane : planes)
    if (plane.name == "qdata") return plane;
  return planes.front();
}
inline std::string_view name_of_codes(const Planes& planes) {
  const auto named = std::ranges::find(planes, "qdata", &Plane::name);
  return (named == planes.end() ? planes.front() : *named).name;
}

// Returns true for a 2:4 sparse scheme. Such a scheme refuses weights with more than two nonzeros of four.
inline bool is_sparse(const Scheme& scheme, const WeightShape& shape) {
  for (const PlaneSpec& spec : scheme.plane_specs(shape))
    if (spec.name == "sparse_metadata") return true;
  return false;
}

// The smallest and the largest element of a group, in units of its scale.
// With these elements, the recipe's scale is a power of two, and small integers are restored exactly.
// Suitable pairs are found by trying the reference.
struct AnchorPair {
  double low, high;
};

// Returns true if the dequantized form of a row of small integers is finite.
// With one symmetric bit and no clipping, the recipe divides by zero, and linear cannot show any code.
bool has_finite_weights(const Scheme& scheme, const WeightShape& shape);

// Returns true if a weight of this scheme can hold small integers exactly, as exact_sums() requires.
bool has_exact_sums(const Scheme& scheme, const WeightShape& shape);
// Makes a linear whose sums are exact in every order and at every stage.
// `order` is a permutation of the k columns of both the weight and x; empty: none.
// The permutation must keep each column in its group.
Generated exact_sums(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed,
                     const std::vector<int64_t>& order = {});

// Makes exact_sums() with a bias so large that half of the sums are halfway between two numbers of y's type,
// bfloat16 or float16.
Generated tied_sums(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed);

// Returns true if a group has room for the elements that outliers() plants, and there is no zero point.
bool has_outliers(const Scheme& scheme, const WeightShape& shape);
// Only for the policy weight_only. Makes an x with one large element, and zero weights in its column.
// The elements of the last group are far smaller, and their exact sum is the answer.
Generated outliers(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed);

// Makes rows of x for a weight_only linear. Their small terms are between two large terms that cancel.
// A row has 2^p units, then up to 40 terms of at most 6 units, then -2^p units, with p up to 22.
// All terms are in one group: next to each other, or between the two ends of the group.
// The answer is the sum of the small terms. An accumulator of fewer than p bits loses it.
// Needs the weight that has_outliers() describes.
Generated swamped(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed);

// Makes large terms whose sum is near zero. Partial sums of the first half exceed the range of float16.
// The second half of k repeats the first half in the weight and negates it in x.
void cancelling(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input);
// Puts every code at an end of its range, with all but one code of a group at the same end.
// All elements of x have one magnitude and one sign.
void one_sign(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input);
// Puts pairs of k at the ends of 8-bit codes, in the weight and in x, with sums of 0 wherever both reach
// their ends. A recipe rounds some of the largest magnitudes to -127, so only others are taken.
void end_pairs(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input);
// Does the scheme have weights of 8-bit codes, and the policy x in such codes, each chosen from its own data?
bool has_end_pairs(const Scheme& scheme, Policy policy);

// Gives each group that has one scale a range that noise does not have, in turn: one sign, constant, zero but
// for one end, far from zero, subnormal in float16. A group has `group_rows` rows (0: all) and `group`
// columns; `first` is the first one's turn.
inline constexpr int64_t kRanges = 11;
void make_ranges(int64_t group_rows, int64_t group, int64_t first, Floats& w);

// Makes every other element of a float16 x subnormal.
void make_half_subnormal(Floats& x);
// Make every other row of a bfloat16 or float32 x subnormal, and a weight of noise so large that sums are
// not.
void make_subnormal_x(Floats& x);
void make_huge_weight(Floats& w);
// Scale a weight and an x of noise so that sums are subnormal and elements of x are not. Every other row of x
// stays larger, by 2^30 or, in float16, 2^10: a kernel that declares that it flushes shows its codes there.
void make_tiny_weight(Floats& w);
void make_tiny_x(Floats& x);
// Replaces noise by values from half of the largest finite number up to it.
void fill_to_max(Floats& w);

// Returns the dequantized values of quantized x, row-major.
std::vector<double> meant_activation(const Scheme& scheme, const Matrix& x, Policy activation,
                                     const Planes& planes);

// Elements to put in x so that a policy represents -1, 0 and 1 exactly.
// The elements are the smallest and the largest of each block of `every` columns.
// If a policy also has a scale for all of x, `of_all` is the maximum that this scale needs.
// The first of the blocks has this maximum and represents nothing else. Without such a scale, `of_all` is 0.
struct ActivationAnchors {
  AnchorPair pair;
  int64_t every = 0;
  double of_all = 0;
};
// Returns nullopt if the policy represents -1, 0 and 1 exactly, whatever x is.
// Throws std::logic_error if no anchors are known.
std::optional<ActivationAnchors> activation_anchors(const Scheme& scheme, const WeightShape& shape,
                                                    Policy activation, const Planes& planes);

}  // namespace qcts
