// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device_check/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

namespace qcts::device_check {
namespace {

constexpr uint32_t kSign = 0x80000000u;

// Returns the bits of a float: a random sign and fraction, and an exponent in the given range. The field 127
// stands for 1.
uint32_t float_of(Random& random, int first_exponent, int last_exponent) {
  const int field = std::clamp(random.between(first_exponent, last_exponent) + 127, 0, 254);
  return (random.word() & (kSign | 0x7FFFFF)) | static_cast<uint32_t>(field) << 23;
}

constexpr uint32_t kSpecials[] = {
    0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33000000,  // 2^-25
    0x33000001, 0x337FFFFF, 0x33800000, 0x387FE000, 0x387FF000, 0x38800000,              // 2^-14
    0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F800000, 0x3F800001, 0x40000000, 0x477FE000,  // 65504
    0x477FEFFF, 0x477FF000, 0x47800000, 0x4AFFFFFF, 0x4B000000, 0x4B7FFFFF, 0x4B800000,  // 2^24
    0x4EFFFFFF, 0x7F7F0000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
    0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF};

// Returns a number halfway between two numbers of a narrower type, or next to such a number.
uint32_t tie(Random& random, int first_exponent, int last_exponent, int dropped_bits) {
  const uint32_t half = 1u << (dropped_bits - 1), low = half - 1 + random.below(3);
  return (float_of(random, first_exponent, last_exponent) >> dropped_bits << dropped_bits) | low;
}

struct Format {
  int exponent_bits, fraction_bits, bias, last_field;  // of the largest finite number
};
Format format_of(Operand type) {
  switch (type) {
    case Operand::bf16:
      return {8, 7, 127, 254};
    case Operand::f16:
      return {5, 10, 15, 30};
    default:
      return {4, 3, 7, 15};
  }
}

// Returns a random element. An exponent outside the type's range makes it subnormal or gives it the largest
// exponent.
uint32_t element(Random& random, Operand type, int first_exponent, int last_exponent, bool few_bits) {
  const Format format = format_of(type);
  const int field =
      std::clamp(random.between(first_exponent, last_exponent) + format.bias, 0, format.last_field);
  uint32_t fraction = random.word() & ((1u << format.fraction_bits) - 1);
  if (few_bits) fraction &= 1u << (format.fraction_bits - 1);
  if (type == Operand::e4m3 && field == format.last_field && fraction == 7) fraction = 6;  // not NaN
  return random.below(2) << (format.exponent_bits + format.fraction_bits) |
         static_cast<uint32_t>(field) << format.fraction_bits | fraction;
}

uint32_t sign_bit(Operand type) { return 1u << (8 * bytes_of(type) - 1); }

uint32_t special_element(Random& random, Operand type) {
  const uint32_t sign = random.below(2) * sign_bit(type);
  if (type == Operand::e4m3) return sign | 0x7F;
  const uint32_t infinity = type == Operand::bf16 ? 0x7F80 : 0x7C00;
  return sign | infinity | (random.one_in(2) ? 0 : 1 + random.below(type == Operand::bf16 ? 0x7F : 0x3FF));
}

uint32_t styled_s8(Random& random, Style style) {
  constexpr uint8_t kExtremes[] = {0x80, 0x81, 0x7F, 0xFF, 0x01, 0x00};
  if (style == Style::near) return kExtremes[random.below(std::size(kExtremes))];
  if (style == Style::large) return random.one_in(8) ? 0x7F : 0x80;
  return random.word() & 0xFF;
}

uint32_t styled(Random& random, Style style, Operand type) {
  if (type == Operand::s8) return styled_s8(random, style);
  const int span = type == Operand::e4m3 ? 4 : 8;
  switch (style) {
    case Style::near:
      return element(random, type, -2, 2, false);
    case Style::wide:
      return element(random, type, -span - 2, span, false);
    case Style::peaks:
      return random.one_in(8) ? element(random, type, span - 1, span, false)
                              : element(random, type, -span, 0, false);
    case Style::swamped:
      return element(random, type, -1, 1, true);
    case Style::cancels:
      return element(random, type, -span / 2, span / 2, false);
    case Style::small:
      if (random.one_in(4)) return element(random, type, -1000, -1000, false);
      return type == Operand::bf16 ? element(random, type, -76, -60, false)
                                   : element(random, type, -15, -4, false);
    case Style::zeros:
      return random.one_in(2) ? random.below(2) * sign_bit(type) : element(random, type, -3, 0, true);
    case Style::large:
      return type == Operand::bf16 ? element(random, type, 58, 64, false)
                                   : element(random, type, 6, 16, false);
    case Style::specials:
      return random.one_in(64) ? special_element(random, type) : element(random, type, -2, 2, false);
    default:
      return any_element(random, type);
  }
}

}  // namespace

Random::Random(uint64_t seed, uint64_t stream, uint64_t index)
    : state_(seed ^ stream * 0xD1342543DE82EF95u ^ index * 0xA24BAED4963EE407u) {
  word();
}
uint32_t Random::word() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>((z ^ z >> 31) >> 32);
}
uint32_t Random::below(uint32_t count) { return static_cast<uint32_t>(uint64_t{word()} * count >> 32); }

uint32_t any_float(Random& random) {
  switch (random.below(8)) {
    case 0:
    case 1:
      return random.word();
    case 2:
      return kSpecials[random.below(std::size(kSpecials))] | random.below(2) * kSign;
    case 3:
      return tie(random, -16, 16, 13);  // a tie of f16
    case 4: {                           // a tie of its subnormals
      const int exponent = random.between(-25, -15);
      return tie(random, exponent, exponent, std::min(-1 - exponent, 23));
    }
    case 5:
      return tie(random, -127, 127, 16);  // a tie of bf16
    case 6:                               // integers and halves
      return std::bit_cast<uint32_t>(0.5f * static_cast<float>(random.between(-0x4000, 0x4000)));
    default:
      return float_of(random, -30, 30);
  }
}

void float_pair(Random& random, uint32_t* two) {
  two[0] = any_float(random);
  switch (random.below(4)) {
    case 0:  // of similar magnitude, or equal
      two[1] = (two[0] + random.between(-2, 2)) ^ random.below(2) * kSign;
      break;
    case 1: {  // some bits apart, down to where one is no more than a tie of the other
      const auto exponent = static_cast<int>(two[0] >> 23 & 0xFF) - 127;
      two[1] = float_of(random, exponent - 26, exponent);
      if (random.one_in(2)) two[1] &= 0xFF800000;
      break;
    }
    default:
      two[1] = any_float(random);
  }
}

void float_triple(Random& random, uint32_t* three) {
  float_pair(random, three);
  const float product = std::bit_cast<float>(three[0]) * std::bit_cast<float>(three[1]);
  if (random.one_in(2))
    three[2] = (std::bit_cast<uint32_t>(product) + random.between(-1, 1)) ^ random.below(2) * kSign;
  else if (random.one_in(2))
    three[2] = float_of(random, std::ilogb(product != 0 && std::isfinite(product) ? product : 1.0f) - 26,
                        std::ilogb(product != 0 && std::isfinite(product) ? product : 1.0f) + 26);
  else
    three[2] = any_float(random);
}

uint32_t bytes_of(Operand type) { return type == Operand::bf16 || type == Operand::f16 ? 2 : 1; }

uint32_t any_element(Random& random, Operand type) {
  const uint32_t bits = random.word() & (2 * sign_bit(type) - 1);
  if (type == Operand::s8 || !random.one_in(8)) return bits;
  switch (random.below(3)) {
    case 0:
      return special_element(random, type);
    case 1:
      return element(random, type, -1000, -1000, false);  // subnormal
    default:
      return element(random, type, -3, 3, true);
  }
}

Style any_style(Random& random) {
  return static_cast<Style>(random.below(static_cast<uint32_t>(Style::any) + 1));
}

void fill_row(Random& random, Style style, Operand type, bool of_a, uint32_t* words, uint32_t bytes) {
  const uint32_t size = bytes_of(type), count = bytes / size;
  auto* row = reinterpret_cast<uint8_t*>(words);
  const uint32_t apart = random.one_in(2) ? 1 : 8;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t bits = styled(random, style, type);
    if (style == Style::cancels && type != Operand::s8 && (k & apart) != 0) {
      bits = 0;
      std::memcpy(&bits, row + (k - apart) * size, size);
      if (of_a) bits ^= sign_bit(type);
      if (random.one_in(8)) bits ^= 1;
    }
    std::memcpy(row + k * size, &bits, size);
  }
}

void fill_beside_zeros(Random& random, Operand type, uint32_t a_rows, uint32_t b_rows, uint32_t bytes,
                       uint32_t* words) {
  enum Place : uint8_t { large_in_a, large_in_b, small };
  const uint32_t size = bytes_of(type), count = bytes / size;
  const Format format = format_of(type);
  const int last = format.last_field - format.bias, large = random.between(last / 3, last);
  const int low = random.between(type == Operand::bf16 ? -70 : -format.bias, 0);
  const bool only_zeros = random.one_in(4), has_subnormals = random.one_in(4);
  std::vector<Place> places(count);
  for (Place& place : places) place = static_cast<Place>(random.below(only_zeros ? 2 : 4) % 3);
  if (!only_zeros) places[random.below(count)] = small;
  auto* at = reinterpret_cast<uint8_t*>(words);
  for (uint32_t row = 0; row < a_rows + b_rows; ++row)
    for (uint32_t k = 0; k < count; ++k, at += size) {
      uint32_t bits = random.below(2) * sign_bit(type);
      if (places[k] == small)
        bits = element(random, type, low - 2, low, false);
      else if ((places[k] == large_in_a) == (row < a_rows))
        bits = element(random, type, large - 2, large, false);
      else if (has_subnormals && random.one_in(8))
        bits = element(random, type, -1000, -1000, false);
      std::memcpy(at, &bits, size);
    }
  uint32_t* start = words + (a_rows + b_rows) * bytes / 4;
  for (uint32_t i = 0; i < a_rows * b_rows; ++i) {
    const uint32_t kind = random.below(4);
    start[i] = kind == 0   ? random.below(2) * kSign
               : kind == 1 ? float_of(random, -130, -100)
                           : float_of(random, 2 * low - 12, 2 * low + 2);
  }
}

uint32_t any_start(Random& random, Style style, Operand type) {
  if (type == Operand::s8) {
    constexpr uint32_t kExtremes[] = {0x7FFFFFFF, 0x80000000, 0x7FFFFF00, 0x80000100, 0, 0xFFFFFFFF};
    return random.one_in(4) ? kExtremes[random.below(std::size(kExtremes))] : random.word();
  }
  if (random.one_in(8)) return random.below(2) * kSign;
  switch (style) {
    case Style::near:
      return float_of(random, -4, 8);
    case Style::swamped: {
      const uint32_t start = float_of(random, 9, 28);
      return random.one_in(2) ? start & 0xFF800000 : start;
    }
    case Style::small:
      return float_of(random, -150, type == Operand::bf16 ? -100 : -8);
    case Style::zeros:
      return random.below(2) * kSign;
    case Style::large:
      return float_of(random, 100, 127);
    case Style::specials:
      return random.one_in(4) ? kSpecials[random.below(std::size(kSpecials))] : float_of(random, -4, 8);
    case Style::any:
      return any_float(random);
    default:
      return float_of(random, -20, 20);
  }
}

}  // namespace qcts::device_check
