// SPDX-License-Identifier: BSD-3-Clause
// Reads the planes of fp8_sparse24 for the vector variants of `linear`,
// which cut weights into their own blocks.
// Two of every four codes along k are stored, with a nibble of their places (kernels/families/sparse24.h).
#pragma once

#include "kernels/families/entry.h"

namespace qcts {
namespace {

struct Sparse24Planes {
  const qcts_problem& p;
  const uint8_t *codes, *metadata;
  explicit Sparse24Planes(const qcts_problem& problem)
      : p(problem),
        codes(static_cast<const uint8_t*>(in_plane(problem, "qdata"))),
        metadata(static_cast<const uint8_t*>(in_plane(problem, "sparse_metadata"))) {}

  // Calls put(k, code) for each stored code. first_k and last_k are multiples of 4.
  template <class Put>
  void each_code(int64_t n, int64_t first_k, int64_t last_k, const Put& put) const {
    for (int64_t k = first_k; k < last_k; k += 4) {
      const int64_t at = n * p.k + k;
      const int places = metadata[at / 8] >> at % 8 & 15;
      if (places == 0) continue;
      // If both values have the same place, the second one counts.
      if ((places & 3) != places >> 2) put(k + (places & 3), codes[at / 2]);
      put(k + (places >> 2), codes[at / 2 + 1]);
    }
  }
};

}  // namespace
}  // namespace qcts
