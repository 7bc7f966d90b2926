// SPDX-License-Identifier: BSD-3-Clause
// What the frame of kernels/vnni/int8_linear.h asks of a scheme and of an engine.
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

// How the codes of a scheme lie in a block.
template <class T>
concept QuadScheme = HasGroups<T> && requires(const qcts_problem& p, int64_t group) {
  { T::kOffset } -> std::convertible_to<int>;  // what makes a code unsigned
  requires T::kQuads == 1 || T::kQuads == 2;   // 4 k that a step holds: 1 or, with two codes a byte, 2
  // A group is padded to multiples of it: whole steps, or whole tiles.
  { T::pad_k(group) } -> std::convertible_to<int64_t>;
  { T::scale_dtype(p) } -> std::convertible_to<uint32_t>;  // of the weight's scales
  { T::recipe(p) } -> std::same_as<avx2::RowRecipe>;       // of x
};

// What multiplies quads. multiply<Scheme>(piece, rows, sums): sums += products, or, with `closing`, its
// totals += scaled sums; of several groups, it asks memory for what lies between their codes. An engine may
// have multiply_row<Scheme>(frame, first, last): blocks [first, last) of a lone row.
template <class T>
concept QuadEngine = requires(const Layout& layout, int64_t count, bool asks_ahead) {
  requires T::kRows > 0;  // of x at a time
  // Of (quads, rows): the steps that it wants in one piece.
  { T::chunk_steps(count, count) } -> std::convertible_to<int64_t>;
  // The groups of `count` elements each, parts of a row, that it wants in one piece.
  { T::chunk_groups(count) } -> std::convertible_to<int64_t>;
  // How far ahead it fetches what lies behind codes; 0: not at all.
  { T::tail_ahead_bytes(asks_ahead, count) } -> std::convertible_to<int>;
  // Rows of x that it reads; those beyond m are zeros.
  { T::padded_rows(count) } -> std::convertible_to<int64_t>;
  T::open(layout, count);  // before a thread's pieces
  T::close();              // after them
};

}  // namespace
}  // namespace qcts::vnni
