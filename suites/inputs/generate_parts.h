// SPDX-License-Identifier: BSD-3-Clause
// What the generators of synthetic inputs share: suites/inputs/generate*.cc.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/scheme.h"
#include "suites/inputs/generate.h"

namespace qcts {

// A float matrix in double, rounded once when it is stored.
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

// 2:4 sparse: it takes no weight with more than two of four.
inline bool is_sparse(const Scheme& scheme, const WeightShape& shape) {
  for (const PlaneSpec& spec : scheme.plane_specs(shape))
    if (spec.name == "sparse_metadata") return true;
  return false;
}

// The least and the largest element of a group, in units of its scale, for which the recipe's scale is a
// power of two and small integers come back exact. Which pairs do is asked of the reference.
struct Anchors {
  double low, high;
};

// Does anything finite come back of a row of small integers? Of one bit, symmetric and without clipping, the
// recipe divides by zero: no linear shows a code there.
bool has_finite_weights(const Scheme& scheme, const WeightShape& shape);

// Are small integers exact in some weight of this scheme, so that exact_sums() can be made?
bool has_exact_sums(const Scheme& scheme, const WeightShape& shape);
// A linear whose sums are exact in every order and stage. `order`: a permutation of the k columns that moves
// none to another group, for the weight and x alike; empty: as they are.
Generated exact_sums(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed,
                     const std::vector<int64_t>& order = {});

// Is there room in a group for what outliers() plants, and does no zero act beside it?
bool has_outliers(const Scheme& scheme, const WeightShape& shape);
// Weight only: an element of x that meets weights of zero, and beside it in the last group, far smaller, the
// ones that the answer consists of, exactly.
Generated outliers(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed);

// The second half repeats the first in the weight and negates it in x: large terms, an answer near zero.
// Partial sums of the first half leave the range of float16.
void cancelling(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input);
// Every code at an end of its range, all but one of a group at the same one, and x of one size and sign.
void one_sign(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input);

// What quantized x means, row-major.
std::vector<double> meant_activation(const Scheme& scheme, const Matrix& x, Policy activation,
                                     const Planes& planes);

// Elements of x beside which a policy keeps -1, 0 and 1: the least and the largest of each `every` along k. A
// policy that scales all of x as well needs its maximum, `of_all`, in the first of these blocks, where it
// keeps nothing else; 0: none.
struct ActivationAnchors {
  Anchors pair;
  int64_t every = 0;
  double of_all = 0;
};
// nullopt when the policy keeps -1, 0 and 1 whatever x holds. Throws std::logic_error when no anchors are
// known.
std::optional<ActivationAnchors> activation_anchors(const Scheme& scheme, const WeightShape& shape,
                                                    Policy activation, const Planes& planes);

}  // namespace qcts
