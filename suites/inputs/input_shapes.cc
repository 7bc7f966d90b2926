// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/input_shapes.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace qcts {

std::vector<Shape> shapes(const Scheme& scheme, Layout layout) {
  const int64_t g = scheme.group();
  if (layout != kPlain)
    return {{8, 1024}, {48, 1024}, {12, 1024}, {16, 2048}, {16, 4 * std::max<int64_t>(g, 32)},
            {64, 256}, {96, 384}};
  if (g == 0) return {{37, 216}, {7, 13}, {1, 1}, {17, 33}, {16, 64}, {3, 129}};
  const std::vector<Shape> found = {{40, 3 * g}, {37, 3 * g}, {8, g}, {7, 5 * g}, {64, 4 * g}, {16, 1024}};
  const bool any_taken = std::any_of(found.begin(), found.end(), [&](const Shape& shape) {
    return !scheme.refusal({DType::bfloat16, shape.first, shape.second}) ||
           !scheme.refusal({DType::float32, shape.first, shape.second});
  });
  if (any_taken) return found;
  return {{g, 2 * g}, {3 * g, g}};  // blocks along n too
}

namespace {

// Larger than the blocks of kernels: 32 rows of x, 256 columns, 2048 elements of a row; and for one row,
// which has its own path in kernels, 8 blocks of 64 columns.
std::vector<Shape> tiles_of(const Scheme& scheme) {
  const int64_t g = scheme.group();
  if (g == 0) return {{8, 72}, {264, 40}, {8, 2051}, {kDecodeColumns, 40}};
  return {{8, 2 * g}, {264, g}, {8, (2048 / g + 1) * g}, {kDecodeColumns, g}, {32, 1024}};
}

// More than one panel of the weights as kernels for many rows split them: 64 columns, 1024 or 2048 k.
// Determinism, which makes a hundred calls, only has the columns, for several threads.
std::vector<Shape> panels_of(Kind kind, const Scheme& scheme) {
  const int64_t g = scheme.group();
  const Shape columns = {kDecodeColumns, g == 0 ? 40 : g};
  if (kind == Kind::determinism) return {columns};
  return {{80, g == 0 ? 2187 : (2048 / g + 1) * g}, columns, {64, 3072}};
}

std::vector<Shape> odd_columns(const Scheme& scheme) {
  const int64_t g = scheme.group();
  if (g == 0) return {{12, 22}, {10, 47}, {22, 30}, {30, 106}, {47, 31}};
  return {{12, 2 * g}, {10, g}, {22, g}, {30, 2 * g}, {47, g}};
}

// Longer than the longest rows of a published model of 8 billion weights, which have 14,336, and more rows
// than 16 bits can count. If long groups would make a weight of many rows too large, only long rows are used.
// A kernel that works in rounds of 3, 4, 5 or 6 tiles of 64 or 128 has only whole rounds in 15,360, so that a
// rest follows a whole round, as in no shorter row.
std::vector<Shape> long_shapes(const Scheme& scheme, Layout layout) {
  constexpr int64_t kLongRow = 15360;
  if (layout != kPlain) return {{16, kLongRow}};
  const int64_t g = scheme.group();
  std::vector<Shape> found = {{8, g == 0 ? kLongRow + 32 : (kLongRow / g + 1) * g}};
  if (g <= kShortGroup) {
    const int64_t k = g == 0 ? 24 : g;
    found.push_back({kManyRows, k});
    found.push_back({3, k});
  }
  return found;
}

// Rows of published models: the width of one of 405 billion weights, and the inputs of down_proj of those of
// 70 and 405 billion.
std::vector<Shape> deep_shapes() { return {{8, 16384}, {8, 28672}, {8, 53248}}; }

// More elements than 16 bits can count, in whole groups of 256.
constexpr Shape kDeeper[] = {{8, 65536 + 256}, {16, 65536 + 256}, {64, 65536 + 256}, {128, 65536 + 256}};
// Two blocks of 128 rows, and several of 4 scales, of layouts that reorder both: first with a part of a
// block along n. In the last two, which groups of 16 and of 32 divide, only the block along k is a part.
constexpr Shape kBlocks[] = {{160, 512}, {256, 512}, {128, 80}, {128, 96}};

// Rows of the layers of published models, with fewer columns.
std::vector<Shape> model_shapes() {
  return {{128, 2048}, {256, 2048}, {128, 4096}, {256, 4096}, {128, 8192}, {256, 8192}};
}

// Few columns, because there are up to a thousand rows of x.
std::vector<Shape> batch_shapes(const Scheme& scheme, Layout layout) {
  const int64_t g = scheme.group();
  std::vector<Shape> found = {{24, g == 0 ? 40 : g}};
  for (const Shape& shape : shapes(scheme, layout)) found.push_back(shape);
  return found;
}

// The second shape is for many rows of x.
std::vector<Shape> tall_shapes(const Scheme& scheme) {
  const int64_t k = std::max<int64_t>(scheme.group(), 32);
  return {{kManyRows, k}, {1, k}};
}

// The smallest that the scheme and the layout accept is asked: whole groups, and blocks of 128 rows.
std::vector<Shape> square_shapes(const Scheme& scheme) {
  const int64_t g = std::max<int64_t>(scheme.group(), 48);
  return {{g, g}, {64, 64}, {128, 128}, {256, 256}};
}

// As many rows as groups in a row.
std::vector<Shape> group_square_shapes(const Scheme& scheme) {
  const int64_t g = scheme.group();
  return g > 1 ? std::vector<Shape>{{16, 16 * g}, {64, 64 * g}, {128, 128 * g}} : std::vector<Shape>{};
}

// Returns the first shape with one of these numbers of rows that the scheme and the layout accept.
std::vector<Shape> first_accepted(const Scheme& scheme, Layout layout, std::span<const int64_t> rows,
                                  int64_t k) {
  for (const int64_t n : rows)
    for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
      if (!scheme.refusal({dtype, n, k}) && !scheme.refusal({dtype, n, k}, layout)) return {{n, k}};
  return {};
}

// Many rows of the weight, in whole blocks of 128 or 256 if the scheme needs those, and few for many rows of
// x.
std::vector<Shape> many_rows_shapes(const Scheme& scheme, Layout layout) {
  constexpr int64_t kMany[] = {kManyRows, kManyRowsOfBlocks}, kFew[] = {1, 16, 128};
  const int64_t k = std::max<int64_t>(scheme.group(), 32);
  std::vector<Shape> found = first_accepted(scheme, layout, kMany, k);
  for (const Shape& shape : first_accepted(scheme, layout, kFew, k)) found.push_back(shape);
  return found;
}

// More than 4.2 million elements: 2 MiB of half bytes, 8 MiB of bfloat16. Rows end in a short block of 64 if
// the layout allows that.
constexpr Shape kLarge[] = {{2080, 2048}, {2112, 2048}};
// More than 2^23 elements.
constexpr Shape kLarger[] = {{4112, 2048}, {4224, 2048}};

}  // namespace

// The identity has k rows of x. If there is only one shape, two long groups are enough to read every code
// back.
std::vector<Shape> shapes_of_family(const InputFamily& family, Kind kind, const Scheme& scheme, Layout layout,
                                    InputSet set) {
  constexpr int64_t kLongGroup = 128;
  if (family.generator == Generator::large) return {std::begin(kLarge), std::end(kLarge)};
  if (family.generator == Generator::larger) return {std::begin(kLarger), std::end(kLarger)};
  if (family.generator == Generator::panels) return panels_of(kind, scheme);
  if (family.generator == Generator::long_rows) return long_shapes(scheme, layout);
  if (family.generator == Generator::deep) return deep_shapes();
  if (family.generator == Generator::deeper) return {std::begin(kDeeper), std::end(kDeeper)};
  if (family.generator == Generator::blocks) return {std::begin(kBlocks), std::end(kBlocks)};
  if (family.generator == Generator::models) return model_shapes();
  if (family.generator == Generator::wide_sums) return {{64, 2048}};
  if (family.generator == Generator::batches) return batch_shapes(scheme, layout);
  if (family.generator == Generator::tall) return tall_shapes(scheme);
  if (family.generator == Generator::squares) return square_shapes(scheme);
  if (family.generator == Generator::group_squares) return group_square_shapes(scheme);
  if (family.generator == Generator::many_rows) return many_rows_shapes(scheme, layout);
  if (family.generator == Generator::columns) return odd_columns(scheme);
  std::vector<Shape> found = family.generator == Generator::tiles ? tiles_of(scheme) : shapes(scheme, layout);
  if (set == InputSet::few && family.generator == Generator::one_hot && scheme.group() >= kLongGroup)
    found.insert(found.begin(), {16, 2 * scheme.group()});
  return found;
}

}  // namespace qcts
