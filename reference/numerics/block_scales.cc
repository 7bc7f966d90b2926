// SPDX-License-Identifier: BSD-3-Clause
#include "reference/numerics/block_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr int64_t kTileRows = 128, kTileCols = 4, kTileBytes = 512;

int64_t tiles_across(int64_t cols) { return (cols + kTileCols - 1) / kTileCols; }
int64_t tiles_down(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

float default_nan() { return std::copysign(std::nanf(""), -1.0f); }

}  // namespace

uint8_t floatx_code(DType element, float x) {
  if (!std::isnan(x)) return static_cast<uint8_t>(encode_float(element, x));
  const FloatFormat& format = float_format(element);
  const int dropped = 23 - format.mantissa_bits;
  const int64_t bits = std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
  const int64_t odd = bits >> dropped & 1;
  const int64_t rounded = bits + (int64_t{format.bias - 127} * (1 << 23)) + ((1 << (dropped - 1)) - 1) + odd;
  const int sign = std::signbit(x) ? 1 << (format.exponent_bits + format.mantissa_bits) : 0;
  return static_cast<uint8_t>(rounded >> dropped | sign);
}

float mul_x86(float a, float b) {
  if (std::isnan(b)) return b;
  if (std::isnan(a)) return a;
  const float product = a * b;
  return std::isnan(product) ? default_nan() : product;
}

float div_x86(float a, float b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  const float quotient = a / b;
  return std::isnan(quotient) ? default_nan() : quotient;
}

void store_pair(std::span<std::byte> bytes, int64_t pair, uint8_t even, uint8_t odd) {
  bytes[pair] = static_cast<std::byte>(static_cast<uint8_t>(even | odd << 4));
}

uint8_t load_nibble(std::span<const std::byte> bytes, int64_t index) {
  const uint8_t byte = static_cast<uint8_t>(bytes[index / 2]);
  return index % 2 ? byte >> 4 : byte & 0xF;
}

void put_nibble(std::span<std::byte> bytes, int64_t index, int code) {
  bytes[index / 2] |= static_cast<std::byte>((code & 0xF) << (index % 2 ? 4 : 0));
}

std::vector<int64_t> swizzled_shape(int64_t rows, int64_t cols) {
  return {32 * tiles_down(rows), 16 * tiles_across(cols)};
}

int64_t swizzled_offset(int64_t cols, int64_t row, int64_t col) {
  const int64_t tile = row / kTileRows * tiles_across(cols) + col / kTileCols;
  const int64_t in_tile = row % kTileRows;
  return tile * kTileBytes + in_tile % 32 * 16 + in_tile / 32 * 4 + col % kTileCols;
}

void swizzle(int64_t rows, int64_t cols, std::span<const std::byte> plain, std::span<std::byte> tiles) {
  std::fill(tiles.begin(), tiles.end(), std::byte{0});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) tiles[swizzled_offset(cols, r, c)] = plain[r * cols + c];
}

void unswizzle(int64_t rows, int64_t cols, std::span<const std::byte> tiles, std::span<std::byte> plain) {
  std::vector<std::byte> rest(tiles.begin(), tiles.end());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t offset = swizzled_offset(cols, r, c);
      plain[r * cols + c] = tiles[offset];
      rest[offset] = std::byte{0};
    }
  }
  const auto stray = std::ranges::find_if(rest, [](std::byte b) { return b != std::byte{0}; });
  if (stray != rest.end())
    throw std::invalid_argument("byte " + std::to_string(stray - rest.begin()) +
                                " of the swizzled scales is padding but not zero");
}

std::string swizzled_place(int64_t rows, int64_t cols, int64_t offset) {
  const int64_t tile = offset / kTileBytes, in_tile = offset % kTileBytes;
  const int64_t row = tile / tiles_across(cols) * kTileRows + in_tile / 16 + in_tile % 16 / 4 * 32;
  const int64_t col = tile % tiles_across(cols) * kTileCols + in_tile % 4;
  if (row >= rows || col >= cols) return "padding";
  return "row " + std::to_string(row) + ", block " + std::to_string(col);
}

}  // namespace qcts
