// SPDX-License-Identifier: BSD-3-Clause
// Inputs that tell a right result from a nearly right one: all exponents, subnormals, signed zeros,
// infinities, NaNs, ties of each rounding, cancellation, and sums in which it matters how many bits are kept
// and whether the rest is cut or rounded.
#pragma once

#include <cstdint>

namespace qcts::device_check {

// splitmix64; one for each case, so that any process can fill any case.
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

// Bits of one, two or three numbers; several are related in a way that an operation may get wrong.
uint32_t any_float(Random& random);
void float_pair(Random& random, uint32_t* two);
void float_triple(Random& random, uint32_t* three);

enum class Operand : uint8_t { bf16, f16, e4m3, s8 };
uint32_t bytes_of(Operand type);
// Any bits, more often special ones.
uint32_t any_element(Random& random, Operand type);

// A tile's numbers have a style in common.
enum class Style : uint8_t {
  near,      // exponents of a few bits
  wide,      // of many
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
// Elements of row `bytes` long of a or b.
void fill_row(Random& random, Style style, Operand type, bool of_a, uint32_t* words, uint32_t bytes);
// Rows of a, rows of b, and a start for each pair of them. At the same places zeros of one, or seldom
// subnormal numbers, meet large numbers of the other; all other products are small. So the sums tell whether
// a product of zero has an exponent, below which the others are cut.
void fill_beside_zeros(Random& random, Operand type, uint32_t a_rows, uint32_t b_rows, uint32_t bytes,
                       uint32_t* words);
// What a sum starts from: float, or int32 for s8.
uint32_t any_start(Random& random, Style style, Operand type);

}  // namespace qcts::device_check
