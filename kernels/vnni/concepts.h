// SPDX-License-Identifier: BSD-3-Clause
// Requirements that kernels/vnni/int8_linear.h has on a scheme and on a micro-kernel.
#pragma once

#include <concepts>

#include "kernels/avx2/int8.h"

namespace qcts::vnni {
namespace {

struct Layout;

// Returns the elements along k that share a scale: all of k, or a multiple of 8.
template <class T>
concept HasGroups = requires(const qcts_problem& p) {
  { T::group(p) } -> std::convertible_to<int64_t>;
};

// Describes the layout of a scheme's codes in a block.
template <class T>
concept QuadScheme = HasGroups<T> && requires(const qcts_problem& p, int64_t group) {
  { T::kOffset } -> std::convertible_to<int>;  // the number that makes a code unsigned
  // number of quads (4 values of k) in a step: 1, or 2 if a byte has two codes
  requires T::kQuads == 1 || T::kQuads == 2;
  // Returns a number of elements.
  // A group is padded to a multiple of this number: to whole steps, or to whole tiles.
  { T::pad_k(group) } -> std::convertible_to<int64_t>;
  { T::scale_dtype(p) } -> std::convertible_to<uint32_t>;  // dtype of the weight's scales
  { T::recipe(p) } -> std::same_as<avx2::RowRecipe>;       // recipe of x
};

// Multiplies quads. multiply<Scheme>(packed, rows, sums) adds products to `sums`.
// If there is an epilogue, it adds scaled sums to the totals of the epilogue.
// With several groups, it prefetches the bytes between their codes.
// A micro-kernel may have multiply_row<Scheme>(call, first, last) for blocks [first, last) of a single row.
template <class T>
concept QuadMicroKernel = requires(const Layout& layout, int64_t count, bool asks_ahead) {
  requires T::kRows > 0;  // rows of x at a time
  // Returns the steps per panel for a number of quads and a number of rows.
  { T::chunk_steps(count, count) } -> std::convertible_to<int64_t>;
  // Returns the number of groups per panel, for groups of `count` elements.
  { T::chunk_groups(count) } -> std::convertible_to<int64_t>;
  // Returns the prefetch distance in bytes for the data that follows the codes, or 0 for none.
  { T::tail_ahead_bytes(asks_ahead, count) } -> std::convertible_to<int>;
  // Returns the number of rows of x that it reads. Rows beyond m are zeros.
  { T::padded_rows(count) } -> std::convertible_to<int64_t>;
  T::open(layout, count);  // before the panels of a thread
  T::close();              // after the panels
};

}  // namespace
}  // namespace qcts::vnni
