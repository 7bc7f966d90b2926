// SPDX-License-Identifier: BSD-3-Clause
// Codes in words of 32 bits: eight 4-bit codes, with code i at bit 4 * i, or four 8-bit codes.
// Packing moves them in this form from the planes of a weight to the blocks of `linear`.
// One thread of an EPYC Zen 4 took these times for 4096 x 4096,
// first with one code at a time, then with one word at a time:
//   int4: 35 to 42 ms and 11 to 15 ms
//   MXFP4: 25 to 31 ms and 3 to 7 ms
//   NF4: 33 to 79 ms and 6 to 14 ms
#pragma once

#include <cstdint>
#include <cstring>

namespace qcts {
namespace {

// Columns of a block; a column of `linear` is a row of the weight.
constexpr int64_t kPlaneColumns = 64;

// Loads four bytes; the first code is in the low nibble of the first byte.
[[maybe_unused]] uint32_t load_nibbles(const uint8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, 4);
  return word;
}
// Does the same, but the first code is in the high nibble.
[[maybe_unused]] uint32_t load_high_nibbles_first(const uint8_t* bytes) {
  const uint32_t word = load_nibbles(bytes);
  return (word >> 4 & 0x0F0F0F0Fu) | (word & 0x0F0F0F0Fu) << 4;
}

// Loads bytes k to k + 3 of an array of `count` bytes, and xors each with a byte of `flip`.
// Bytes beyond the end are 0.
[[maybe_unused]] uint32_t load_four(const uint8_t* bytes, int64_t k, int64_t count, uint32_t flip) {
  if (k + 4 <= count) return load_nibbles(bytes + k) ^ flip;
  uint32_t word = 0;
  for (int64_t i = 0; k + i < count; ++i) word |= ((bytes[k + i] ^ flip) & 255) << 8 * i;
  return word;
}

// Exchanges the bits that `mask` selects with the bits `shift` places above them.
[[maybe_unused]] uint32_t exchanged(uint32_t word, uint32_t mask, int shift) {
  const uint32_t differences = (word ^ word >> shift) & mask;
  return word ^ differences ^ differences << shift;
}
// Puts the codes into the order 0 2 4 6 1 3 5 7.
[[maybe_unused]] uint32_t evens_first(uint32_t word) {
  return exchanged(exchanged(word, 0x00F000F0u, 4), 0x0000FF00u, 8);
}
// Puts the codes into the order 0 4 1 5 2 6 3 7.
[[maybe_unused]] uint32_t halves_interleaved(uint32_t word) {
  return exchanged(exchanged(word, 0x0000FF00u, 8), 0x00F000F0u, 4);
}

}  // namespace
}  // namespace qcts
