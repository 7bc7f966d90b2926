// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/emulated/simt_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_matrix.h"
#include "kernels/families/elements.h"

namespace qcts::simt {
namespace {

constexpr int32_t kExponentOfZero = -126;
constexpr int kFloatFractionBits = 23, kMinFloatExponent = -126;

// Decodes a number with `exponent_bits` exponent bits, biased by `bias`, and `fraction_bits` fraction bits.
// Only `value` shows infinity and NaN.
Factor decode(uint32_t bits, int exponent_bits, int fraction_bits, int bias, float value) {
  const auto fraction = static_cast<int32_t>(bits & ((1u << fraction_bits) - 1));
  const auto field = static_cast<int32_t>(bits >> fraction_bits & ((1u << exponent_bits) - 1));
  const bool negative = (bits >> (exponent_bits + fraction_bits) & 1) != 0;
  const int32_t magnitude = field == 0 ? fraction : fraction | 1 << fraction_bits;
  const int32_t exponent = magnitude == 0 ? kExponentOfZero : std::max(field, 1) - bias;
  return {negative ? -magnitude : magnitude, exponent, value};
}
Factor decode_bf16(uint32_t bits) {
  return decode(bits, 8, 7, 127, scalar::bf16_to_f32(static_cast<uint16_t>(bits)));
}
Factor decode_f16(uint32_t bits) {
  return decode(bits, 5, 10, 15, scalar::f16_to_f32(static_cast<uint16_t>(bits)));
}
Factor decode_e4m3(uint32_t bits) {
  return decode(bits, 4, 3, 7, scalar::e4m3fn_to_f32(static_cast<uint8_t>(bits)));
}
Factor decode_f32(float value) {
  return decode(std::bit_cast<uint32_t>(value), 8, kFloatFractionBits, 127, value);
}

// Returns value * 2^by, cut toward zero.
int64_t shifted(int64_t value, int by) {
  constexpr int kAllBits = 62;
  if (value == 0 || by < -kAllBits) return 0;  // the exponent of a zero may be far above the largest
  if (by >= 0) return value << by;
  return value < 0 ? -(-value >> -by) : value >> -by;
}

// Returns sum * 2^exponent, cut toward zero to `fraction_bits` fraction bits.
float cut(int64_t sum, int exponent, int fraction_bits) {
  if (sum == 0) return 0;
  const auto magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int top = 63 - std::countl_zero(magnitude);
  const int dropped = std::max({top - fraction_bits, kMinFloatExponent - fraction_bits - exponent, 0});
  const uint64_t kept = dropped > 63 ? 0 : magnitude >> dropped << dropped;
  if (kept == 0) return 0;
  const auto result = static_cast<float>(std::ldexp(static_cast<double>(kept), exponent));
  return sum < 0 ? -result : result;
}

float fused_step(const SumModel& model, int product_bits, const Factor* a, const Factor* b, int count,
                 float c) {
  const Factor start = decode_f32(c);
  int32_t largest = model.least_exponent;
  if (start.significand != 0) largest = std::max(largest, start.exponent);
  double in_double = c;
  for (int i = 0; i < count; ++i) {
    if (model.zeros_count || (a[i].significand != 0 && b[i].significand != 0))
      largest = std::max(largest, a[i].exponent + b[i].exponent);
    in_double += static_cast<double>(a[i].value) * b[i].value;
  }
  if (!std::isfinite(in_double))
    return std::isnan(in_double) ? std::bit_cast<float>(0x7FFFFFFFu) : static_cast<float>(in_double);
  int64_t sum =
      shifted(start.significand, model.fraction_bits - kFloatFractionBits - (largest - start.exponent));
  for (int i = 0; i < count; ++i)
    sum += shifted(int64_t{a[i].significand} * b[i].significand,
                   model.fraction_bits - product_bits - (largest - a[i].exponent - b[i].exponent));
  return cut(sum, largest - model.fraction_bits, model.result_fraction_bits);
}

constexpr int kRows = 16, kColumns = 8, kLaneCount = 32, kRowBytes = 32;

// The bytes of a and b, collected from the fragments.
struct Operands {
  uint8_t a[kRows][kRowBytes], b[kColumns][kRowBytes];
};
template <class Sum>
Operands operands(const Fragments<Sum>& warp) {
  Operands all;
  for (int lane = 0; lane < kLaneCount; ++lane) {
    const Fragment<Sum>& own = warp.of[lane];
    const int row = lane / 4, at = lane % 4 * 4;
    for (int i = 0; i < 4; ++i) __builtin_memcpy(&all.a[row + i % 2 * 8][at + i / 2 * 16], &own.a[i], 4);
    for (int i = 0; i < 2; ++i) __builtin_memcpy(&all.b[row][at + i * 16], &own.b[i], 4);
  }
  return all;
}
// Calls visit(row, column, d) for each sum.
template <class Sum, class Visit>
void each_sum(const Fragments<Sum>& warp, const Visit& visit) {
  for (int lane = 0; lane < kLaneCount; ++lane)
    for (int i = 0; i < 4; ++i) visit(lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2, warp.of[lane].d[i]);
}

void decode_row(const FactorType& type, const uint8_t* bytes, int element_bytes, Factor* out) {
  for (int k = 0; k < kRowBytes / element_bytes; ++k) {
    uint32_t bits = bytes[k * element_bytes];
    if (element_bytes == 2) bits |= static_cast<uint32_t>(bytes[2 * k + 1]) << 8;
    out[k] = type.decode(bits);
  }
}

void multiply_tile(const SumModel& model, const FactorType& type, int element_bytes,
                   const Fragments<float>& warp) {
  const Operands bytes = operands(warp);
  Factor a[kRows][kRowBytes], b[kColumns][kRowBytes];
  for (int row = 0; row < kRows; ++row) decode_row(type, bytes.a[row], element_bytes, a[row]);
  for (int column = 0; column < kColumns; ++column)
    decode_row(type, bytes.b[column], element_bytes, b[column]);
  each_sum(warp, [&](int row, int column, float& d) {
    d = fused_dot(model, type, a[row], b[column], kRowBytes / element_bytes, d);
  });
}

const SumModel& sums16() {
  return settings().architecture == Architecture::ampere ? kAmpereSums16 : kHopperSums16;
}

}  // namespace

const FactorType kBf16 = {7, decode_bf16}, kF16 = {10, decode_f16}, kE4m3 = {3, decode_e4m3};

float fused_dot(const SumModel& model, const FactorType& type, const Factor* a, const Factor* b, int count,
                float c) {
  for (int first = 0; first < count; first += model.terms)
    c = fused_step(model, 2 * type.fraction_bits, a + first, b + first, std::min(model.terms, count - first),
                   c);
  return c;
}

void multiply_bf16_tile(const Fragments<float>& warp) { multiply_tile(sums16(), kBf16, 2, warp); }
void multiply_f16_tile(const Fragments<float>& warp) { multiply_tile(sums16(), kF16, 2, warp); }

void multiply_s8_tile(const Fragments<int32_t>& warp) {
  const Operands bytes = operands(warp);
  each_sum(warp, [&](int row, int column, int32_t& d) {
    auto sum = static_cast<uint32_t>(d);
    for (int k = 0; k < kRowBytes; ++k)
      sum += static_cast<uint32_t>(static_cast<int8_t>(bytes.a[row][k]) *
                                   static_cast<int8_t>(bytes.b[column][k]));
    d = static_cast<int32_t>(sum);
  });
}

}  // namespace qcts::simt
