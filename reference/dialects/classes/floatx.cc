// SPDX-License-Identifier: BSD-3-Clause
// Unpacks floats of 3 to 8 bits that were prepacked for tensor cores: torchao 0.5 to 0.15,
// floatx_tensor_core_layout.py (fpx.py in 0.5), which follows FP6-LLM's weight_prepacking.h. Codes are split
// into shards of 1, 2 and 4 bits; the narrowest comes first and holds the highest bits. Each shard is one
// block of bytes with its 32-bit words interleaved for the kernel.
#include <array>
#include <cmath>
#include <cstring>

#include "reference/dialects/classes/affine.h"

namespace qcts {
namespace {

// Reorders the elements of a word, from the highest bits on: the kernel's i-th is the (start + 4 j)-th, with
// start in 1, 3, 0, 2.
uint32_t deinterleaved(uint32_t word, int width) {
  const int elems = 32 / width;
  const uint32_t mask = (1u << width) - 1;
  uint32_t result = 0;
  int i = 0;
  for (const int start : {1, 3, 0, 2})
    for (int j = 0; j < elems / 4; ++j, ++i) {
      const uint32_t element = word >> (32 - (i + 1) * width) & mask;
      result |= element << (32 - (start + 4 * j + 1) * width);
    }
  return result;
}

// Returns the codes of one shard in lane order (32 lanes). The size must be a multiple of 128 bytes.
std::vector<int> shard_codes(std::span<const std::byte> shard, int width) {
  const size_t rows = shard.size() / 128;  // rows of 32 lanes, four bytes each
  std::vector<uint8_t> bytes(shard.size());
  for (size_t w = 0; w < shard.size() / 4; ++w) {
    uint32_t word;
    std::memcpy(&word, shard.data() + 4 * w, 4);
    word = deinterleaved(word, width);
    const size_t lane = w % 32, row = w / 32;
    for (size_t p = 0; p < 4; ++p)  // the word's bytes, last first
      bytes[(lane * rows + row) * 4 + p] = static_cast<uint8_t>(word >> 8 * (3 - p));
  }
  std::vector<int> codes;
  for (const uint8_t byte : bytes)
    for (int i = 0; i < 8 / width; ++i) codes.push_back(byte >> (8 - (i + 1) * width) & ((1 << width) - 1));
  return codes;
}

}  // namespace

double floatx_value(int code, int exponent_bits, int mantissa_bits) {
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = code >> (exponent_bits + mantissa_bits) ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

std::optional<std::vector<double>> floatx_codes(const Tensor& packed, int64_t rows, int64_t columns,
                                                int exponent_bits, int mantissa_bits) {
  const int bits = 1 + exponent_bits + mantissa_bits;
  if (exponent_bits < 1 || mantissa_bits < 0 || bits < 3 || bits > 7 || rows % 64 || columns % 64 ||
      packed.dtype != DType::uint8 || packed.numel() != rows * columns * bits / 8)
    return std::nullopt;
  const std::vector<std::byte> bytes = row_major_bytes(packed);
  const size_t unit = bytes.size() / static_cast<size_t>(bits);
  std::vector<int> codes(static_cast<size_t>(rows * columns), 0);
  size_t offset = 0;
  int used = 0;
  for (const int width : {1, 2, 4}) {
    if (!(bits & width)) continue;
    const std::span<const std::byte> shard(bytes.data() + offset, unit * static_cast<size_t>(width));
    if (shard.size() % 128) return std::nullopt;
    const std::vector<int> part = shard_codes(shard, width);
    used += width;
    for (size_t i = 0; i < codes.size(); ++i) codes[i] |= part[i] << (bits - used);
    offset += shard.size();
  }
  // Lane l, pair j, element b hold tile element t = (j * 32 + l) * 2 + b. t runs over a tile's 64 rows and 16
  // columns as [row block][column block][4][2: column half][2][8 rows][8 columns].
  std::vector<double> values(codes.size());
  const int64_t pairs = rows * columns / 64, column_blocks = columns / 16;
  for (int64_t t = 0; t < rows * columns; ++t) {
    const int64_t b = t % 2, lane = t / 2 % 32, j = t / 64;
    const int64_t g = t % 8, f = t / 8 % 8, e = t / 64 % 2, d = t / 128 % 2, c = t / 256 % 4;
    const int64_t column_block = t / 1024 % column_blocks, row_block = t / 1024 / column_blocks;
    const int64_t row = ((row_block * 4 + c) * 2 + e) * 8 + f, column = (column_block * 2 + d) * 8 + g;
    values[static_cast<size_t>(row * columns + column)] =
        floatx_value(codes[static_cast<size_t>((lane * pairs + j) * 2 + b)], exponent_bits, mantissa_bits);
  }
  return values;
}

}  // namespace qcts
