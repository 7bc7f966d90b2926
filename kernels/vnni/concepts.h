// SPDX-License-Identifier: BSD-3-Clause
// Requirements of kernels/vnni/int8_linear.h on a scheme and on a micro-kernel.
#pragma once

#include <concepts>

#include "kernels/avx2/int8.h"

namespace qcts::vnni {
namespace {

struct Layout;

// Elements along k that share a scale: all of k, or a multiple of 8.
template <class T>
concept HasGroups = requires(const qcts_problem& p) {
  { T::group(p) } -> std::convertible_to<int64_t>;
};

// Layout of a scheme's codes in a block.
template <class T>
concept QuadScheme = HasGroups<T> && requires(const qcts_problem& p, int64_t group) {
  { T::kOffset } -> std::convertible_to<int>;  // what makes a code unsigned
  requires T::kQuads == 1 || T::kQuads == 2;   // 4 k that a step holds: 1 or, with two codes per byte, 2
  // A group is padded to multiples of it: whole steps, or whole tiles.
  { T::pad_k(group) } -> std::convertible_to<int64_t>;
  { T::scale_dtype(p) } -> std::convertible_to<uint32_t>;  // of the weight's scales
  { T::recipe(p) } -> std::same_as<avx2::RowRecipe>;       // of x
};

// Multiplies quads. multiply<Scheme>(packed, rows, sums) adds products to sums or, with an epilogue, scaled
// sums to its totals; between several groups it prefetches what lies between their codes. A micro-kernel may
// have multiply_row<Scheme>(call, first, last) for blocks [first, last) of a single row.
template <class T>
concept QuadMicroKernel = requires(const Layout& layout, int64_t count, bool asks_ahead) {
  requires T::kRows > 0;  // of x at a time
  // Steps per panel, for (quads, rows).
  { T::chunk_steps(count, count) } -> std::convertible_to<int64_t>;
  // Groups of `count` elements each per panel.
  { T::chunk_groups(count) } -> std::convertible_to<int64_t>;
  // Bytes ahead at which it prefetches what follows the codes; 0: none.
  { T::tail_ahead_bytes(asks_ahead, count) } -> std::convertible_to<int>;
  // Rows of x that it reads; those beyond m are zeros.
  { T::padded_rows(count) } -> std::convertible_to<int64_t>;
  T::open(layout, count);  // before a thread's panels
  T::close();              // after them
};

}  // namespace
}  // namespace qcts::vnni
