// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of fp8_sparse24 in chunks of four elements, for the scalar variant of quantize.
#pragma once

#include "kernels/families/sparse24.h"
#include "kernels/scalar/blocks.h"

namespace qcts::scalar {
namespace {

// Writes the two values of a chunk. Returns their places, or kTooMany.
[[maybe_unused]] uint8_t compress24(const uint8_t* four, uint8_t* two) {
  int mask = 0;
  for (int i = 0; i < 4; ++i) mask |= (four[i] & 0x7F) != 0 ? 1 << i : 0;
  const uint8_t places = kPlaces24[mask];
  if (places == kTooMany) return places;
  for (int i = 0; i < 2; ++i) {
    const int place = places >> (2 * i) & 3;
    two[i] = (mask >> place & 1) != 0 ? four[place] : 0;
  }
  return places;
}

[[maybe_unused]] bool quantize_sparse24_rows(const Sparse24Task& task, int64_t first, int64_t last) {
  const Float8Task& dense = task.dense;
  for (int64_t row = first; row < last; ++row) {
    const char* from = dense.from.row(row);
    const float scale = float8_scale(dense, largest_of(dense.from.dtype, from, dense.k));
    store_scale(dense, row, scale);
    for (int64_t k = 0; k < dense.k; k += 4) {
      uint8_t four[4];
      for (int64_t i = 0; i < 4; ++i)
        four[i] = float8_code(dense.format, load(dense.from.dtype, from, k + i), scale);
      const int64_t chunk = (row * dense.k + k) / 4;
      const uint8_t places = compress24(four, task.values + 2 * chunk);
      if (places == kTooMany) return false;
      uint8_t& pair = task.metadata[chunk / 2];
      pair = static_cast<uint8_t>(chunk % 2 == 0 ? places : pair | places << 4);
    }
  }
  return true;
}

template <const qcts_kernel& kKernel>
qcts_status quantize_sparse24_problem(const qcts_problem* p) {
  return check_run(kKernel, p) == QCTS_OK ? quantize_sparse24(*p, quantize_sparse24_rows) : QCTS_INVALID;
}

}  // namespace
}  // namespace qcts::scalar
