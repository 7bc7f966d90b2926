// SPDX-License-Identifier: BSD-3-Clause
// Inputs that tell a correct result from a nearly correct one. They have all exponents, subnormals, signed
// zeros, infinities, NaNs, ties of each rounding, and cancellation. In some sums it matters how many bits are
// kept and whether the rest is cut or rounded.
#pragma once

#include <cstdint>

namespace qcts::device_check {

// splitmix64. Each case has its own generator, so that any process can fill any case.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream, uint64_t index);
  uint32_t word();
  uint32_t below(uint32_t count);
  int between(int first, int last) { return first + static_cast<int>(below(last - first + 1)); }
  bool one_in(uint32_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

// These make the bits of one, two or three numbers. Several numbers are related in a way that an operation
// may get wrong.
uint32_t any_float(Random& random);
void float_pair(Random& random, uint32_t* two);
void float_triple(Random& random, uint32_t* three);

enum class Operand : uint8_t { bf16, f16, e4m3, s8 };
uint32_t bytes_of(Operand type);
// Returns any bits, and special ones more often.
uint32_t any_element(Random& random, Operand type);

// All numbers of a tile have the same style.
enum class Style : uint8_t {
  near,      // exponents that differ by a few bits
  wide,      // exponents that differ by many bits
  peaks,     // a few far above the others
  swamped,   // a start that is far above the products
  cancels,   // pairs of products of opposite sign, next to each other or eight apart
  small,     // subnormal factors, products or sums
  zeros,     // of both signs
  large,     // up to overflow
  specials,  // a few infinities and NaN
  any,       // random bits
};
Style any_style(Random& random);
// Fills a row of a or b that is `bytes` long.
void fill_row(Random& random, Style style, Operand type, bool of_a, uint32_t* words, uint32_t bytes);
// Fills rows of a, rows of b, and a start for each pair of rows. Zeros of one operand, and seldom subnormal
// numbers, meet large numbers of the other at the same places. All other products are small. So the sums tell
// whether a product of zero has an exponent below which the other products are cut.
void fill_beside_zeros(Random& random, Operand type, uint32_t a_rows, uint32_t b_rows, uint32_t bytes,
                       uint32_t* words);
// Returns the start of a sum: a float, or an int32 for s8.
uint32_t any_start(Random& random, Style style, Operand type);

}  // namespace qcts::device_check
