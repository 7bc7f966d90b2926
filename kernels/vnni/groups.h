// SPDX-License-Identifier: BSD-3-Clause
// Epilogue of a group in kernels/vnni/int8_linear.h, for groups that are parts of a row.
#pragma once

#include "kernels/vnni/int8_linear.h"

namespace qcts::vnni {
namespace {

// Computes totals += scale * (S - the products of the pairs), for M rows, starting at `from`,
// and V vectors of columns. Everything except the last multiply-add is exact.
template <class Vector, int M, int V>
[[gnu::always_inline]] inline void group_epilogue(const Epilogue& epilogue, int64_t from, int first,
                                                  const typename Vector::Ints (&sum)[M][V]) {
  // The fields are copied one by one, so that the stores below cannot alias them.
  // A copy of the whole struct would wait for the stores that made it.
  // With groups of 32 at m = 1, that takes 1.8 times as long.
  const uint8_t* tail = epilogue.tail;
  const uint32_t dtype = epilogue.scale_dtype;
  const bool two_pairs = epilogue.two_pairs;
  const int64_t bytes = epilogue.scale_bytes, groups = epilogue.groups;
  const uint8_t* pairs = tail + kColumns * bytes;
  float(*totals)[kColumns] = epilogue.totals + from;
  typename Vector::Ints x[M];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
    x[m] = Vector::broadcast(reinterpret_cast<const int8_t*>(epilogue.x_pairs + (from + m) * groups));
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const int n = (first + v) * Vector::kLanes;
    const auto scale = Vector::load_floats(dtype, tail + n * bytes);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      auto value = Vector::dot_pairs(sum[m][v], Vector::load(pairs + 4 * n), x[m]);
      if (two_pairs) value = Vector::dot_pairs(value, Vector::load(pairs + 4 * (kColumns + n)), x[m]);
      float* total = &totals[m][n];
      Vector::store_floats(
          total, Vector::fmadd(scale, Vector::to_floats(value), Vector::load_floats(QCTS_F32, total)));
    }
  }
}

}  // namespace
}  // namespace qcts::vnni
