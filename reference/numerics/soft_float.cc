// SPDX-License-Identifier: BSD-3-Clause
#include "reference/numerics/soft_float.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace qcts {
namespace {

// Returns 2^exponent, exactly, for -1074 <= exponent <= 1023, in a tenth of scalbn's time.
constexpr double power_of_two(int exponent) {
  return exponent < -1022 ? std::bit_cast<double>(uint64_t{1} << (exponent + 1074))
                          : std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// Returns floor(log2(magnitude)) for normal numbers; -1023 for smaller ones, 1024 for infinity.
int exponent_of(double magnitude) {
  return static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023;
}

// Rounds like nearbyint for 0 <= v < 2^52 and infinity, without a call: above 2^52, doubles are 1 apart.
double nearest_integer(double v) { return v + 0x1p52 - 0x1p52; }

constexpr FloatFormat make_format(int exponent_bits, int mantissa_bits, int bias, bool has_infinity,
                                  bool has_nan, double max) {
  FloatFormat format;
  format.exponent_bits = exponent_bits;
  format.mantissa_bits = mantissa_bits;
  format.bias = bias;
  format.has_infinity = has_infinity;
  format.has_nan = has_nan;
  format.max = max;
  format.min_normal = power_of_two(1 - bias);
  format.min_subnormal = power_of_two(1 - bias - mantissa_bits);
  format.unit_roundoff = power_of_two(-(mantissa_bits + 1));
  return format;
}

constexpr FloatFormat make_e8m0() {
  FloatFormat format = make_format(8, 0, 127, false, true, power_of_two(127));
  format.has_sign = false;
  format.min_normal = format.min_subnormal = power_of_two(-127);
  return format;
}

constexpr FloatFormat kFloat64 = make_format(11, 52, 1023, true, true, std::numeric_limits<double>::max());
constexpr FloatFormat kFloat32 = make_format(8, 23, 127, true, true, std::numeric_limits<float>::max());
constexpr FloatFormat kFloat16 = make_format(5, 10, 15, true, true, 65504.0);
constexpr FloatFormat kBfloat16 = make_format(8, 7, 127, true, true, 255 * power_of_two(120));
constexpr FloatFormat kE4m3fn = make_format(4, 3, 7, false, true, 448.0);
constexpr FloatFormat kE5m2 = make_format(5, 2, 15, true, true, 57344.0);
constexpr FloatFormat kE8m0 = make_e8m0();
constexpr FloatFormat kE2m1 = make_format(2, 1, 1, false, false, 6.0);
constexpr FloatFormat kE2m3 = make_format(2, 3, 1, false, false, 7.5);
constexpr FloatFormat kE3m2 = make_format(3, 2, 3, false, false, 28.0);

// Returns the exponent that spaces a finite magnitude's neighbours: they are 2^(exponent - mantissa_bits)
// apart; below the smallest normal number the spacing is constant.
int binade_of(double magnitude, const FloatFormat& format) {
  return std::max(exponent_of(magnitude), 1 - format.bias);
}

// Returns an exponent field of all ones.
uint64_t exponent_ones(const FloatFormat& format) { return (uint64_t{1} << format.exponent_bits) - 1; }

uint64_t quiet_nan(DType dtype, const FloatFormat& format) {
  if (dtype == DType::float8_e4m3fn) return 0x7F;
  // torch encodes every E5M2 NaN as S.11111.11 (c10/util/Float8_e5m2.h); the wider types set the top mantissa
  // bit.
  if (dtype == DType::float8_e5m2) return 0x7F;
  return exponent_ones(format) << format.mantissa_bits | uint64_t{1} << (format.mantissa_bits - 1);
}

// Returns the bits of the largest finite value, without sign.
uint64_t largest(DType dtype, const FloatFormat& format) {
  if (dtype == DType::float8_e4m3fn) return 0x7E;
  if (dtype == DType::float4_e2m1fn_x2) return 0x7;
  if (dtype == DType::float6_e2m3fn || dtype == DType::float6_e3m2fn) return 0x1F;
  return (exponent_ones(format) << format.mantissa_bits) - 1;
}

// Returns the float32's exponent field, rounded to nearest by its mantissa; ties go up, for normal numbers
// (c10/util/Float8_e8m0fnu.h).
uint64_t encode_e8m0(double value) {
  const float narrow = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(narrow) & 0x7FFFFFFF;
  const uint32_t exponent = bits >> 23, mantissa = bits & 0x7FFFFF, half = 0x400000;
  if (exponent == 255) return 255;
  const bool up = mantissa > half || (mantissa == half && exponent > 0);
  return exponent + (up ? 1 : 0);
}

// Loads element `index` of a buffer of `Bits`.
template <typename Bits>
Bits load_bits(std::span<const std::byte> bytes, size_t index) {
  Bits bits;
  std::memcpy(&bits, bytes.subspan(index * sizeof bits, sizeof bits).data(), sizeof bits);
  return bits;
}

}  // namespace

bool is_float(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e8m0fnu:
    case DType::float4_e2m1fn_x2:
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
      return true;
    default:
      return false;
  }
}
bool has_float_elements(DType dtype) { return is_float(dtype) && dtype != DType::float4_e2m1fn_x2; }

const FloatFormat& float_format(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return kFloat64;
    case DType::float32:
      return kFloat32;
    case DType::float16:
      return kFloat16;
    case DType::bfloat16:
      return kBfloat16;
    case DType::float8_e4m3fn:
      return kE4m3fn;
    case DType::float8_e5m2:
      return kE5m2;
    case DType::float8_e8m0fnu:
      return kE8m0;
    case DType::float4_e2m1fn_x2:
      return kE2m1;
    case DType::float6_e2m3fn:
      return kE2m3;
    case DType::float6_e3m2fn:
      return kE3m2;
    default:
      throw std::invalid_argument("not a floating point type: " + std::string(dtype_name(dtype)));
  }
}

namespace {

[[gnu::always_inline]] inline double decode_in(const FloatFormat& format, DType dtype, uint64_t bits) {
  const uint64_t mantissa = bits & ((uint64_t{1} << format.mantissa_bits) - 1);
  const uint64_t exponent = bits >> format.mantissa_bits & exponent_ones(format);
  const double sign = bits >> (format.exponent_bits + format.mantissa_bits) & 1 ? -1.0 : 1.0;
  if (dtype == DType::float8_e4m3fn && (bits & 0x7F) == 0x7F) return std::copysign(std::nan(""), sign);
  if (format.has_infinity && exponent == exponent_ones(format))
    return mantissa == 0 ? sign * HUGE_VAL : std::copysign(std::nan(""), sign);
  if (exponent == 0) return sign * static_cast<double>(mantissa) * format.min_subnormal;
  const uint64_t significand = mantissa | uint64_t{1} << format.mantissa_bits;
  return sign * static_cast<double>(significand) *
         power_of_two(static_cast<int>(exponent) - format.bias - format.mantissa_bits);
}

}  // namespace

double decode_float(DType dtype, uint64_t bits) {
  if (dtype == DType::bfloat16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  if (dtype == DType::float32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (dtype == DType::float16) return decode_in(kFloat16, DType::float16, bits);
  if (dtype == DType::float64) return std::bit_cast<double>(bits);
  if (dtype == DType::float8_e8m0fnu)
    return bits == 255 ? std::nan("") : power_of_two(static_cast<int>(bits) - 127);
  return decode_in(float_format(dtype), dtype, bits);
}

namespace {

// Inlined, so that the formats of 16 bits become constants.
[[gnu::always_inline]] inline uint64_t encode_in(const FloatFormat& format, DType dtype, double value) {
  const uint64_t sign =
      std::signbit(value) ? uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  if (std::isnan(value)) return format.has_nan ? sign | quiet_nan(dtype, format) : 0;
  if (value == 0) return sign;

  const double magnitude = std::fabs(value);
  const int exponent = binade_of(magnitude, format), quantum = exponent - format.mantissa_bits;
  const double steps = nearest_integer(magnitude * power_of_two(-quantum));
  if (std::isinf(value) || steps * power_of_two(quantum) > format.max)
    return sign |
           (format.has_infinity ? exponent_ones(format) << format.mantissa_bits : largest(dtype, format));
  // steps counts from zero below the smallest normal number and from 2^mantissa_bits above it. Adding it to
  // the exponent field carries into the next binade when rounding reached it.
  const uint64_t field = static_cast<uint64_t>(exponent + format.bias - 1) << format.mantissa_bits;
  return sign | (field + static_cast<uint64_t>(steps));
}

}  // namespace

uint64_t encode_float(DType dtype, double value) {
  if (dtype == DType::bfloat16) return encode_in(kBfloat16, DType::bfloat16, value);
  if (dtype == DType::float32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (dtype == DType::float16) return encode_in(kFloat16, DType::float16, value);
  if (dtype == DType::float64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::float8_e8m0fnu) return encode_e8m0(value);
  return encode_in(float_format(dtype), dtype, value);
}

double round_to(DType dtype, double value) {
  if (dtype == DType::float64) return value;
  if (dtype == DType::float32) return static_cast<float>(value);
  const FloatFormat& format = float_format(dtype);
  const double magnitude = std::fabs(value);
  if (!format.has_sign || !(magnitude <= format.max)) return decode_float(dtype, encode_float(dtype, value));
  const int quantum = binade_of(magnitude, format) - format.mantissa_bits;
  const double rounded = nearest_integer(magnitude * power_of_two(-quantum)) * power_of_two(quantum);
  return std::copysign(rounded, value);
}

float round_to(DType dtype, float value) {
  if (dtype == DType::float32) return value;
  if (dtype == DType::bfloat16 && !std::isnan(value)) {  // the upper half, rounded to nearest even
    const uint32_t bits = std::bit_cast<uint32_t>(value), even = bits >> 16 & 1;
    return std::bit_cast<float>((bits + 0x7FFF + even) & 0xFFFF0000);
  }
  return static_cast<float>(round_to(dtype, static_cast<double>(value)));
}

float add_in(DType dtype, float a, float b) { return round_to(dtype, a + b); }
float sub_in(DType dtype, float a, float b) { return round_to(dtype, a - b); }
float mul_in(DType dtype, float a, float b) { return round_to(dtype, a * b); }
float div_in(DType dtype, float a, float b) { return round_to(dtype, a / b); }

double fma_in(DType dtype, double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!std::isfinite(sum)) return round_to(dtype, sum);
  // Rounding to double and then to dtype could turn a near-tie into a tie. Rounding the double to odd keeps
  // the side (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008). `error` is exactly
  // what the sum lost (Knuth).
  const double back = sum - product;
  const double error = (product - (sum - back)) + (c - back);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return round_to(dtype, std::bit_cast<double>(bits));
}

double load_float(DType dtype, std::span<const std::byte> bytes, size_t index) {
  if (dtype == DType::float32) return load_bits<float>(bytes, index);
  if (dtype == DType::bfloat16)
    return std::bit_cast<float>(static_cast<uint32_t>(load_bits<uint16_t>(bytes, index)) << 16);
  const size_t size = dtype_bytes(dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.subspan(index * size, size).data(), size);
  return decode_float(dtype, bits);
}

void store_float(DType dtype, std::span<std::byte> bytes, size_t index, double value) {
  const size_t size = dtype_bytes(dtype);
  const uint64_t bits = encode_float(dtype, value);
  std::memcpy(bytes.subspan(index * size, size).data(), &bits, size);
}

namespace {

template <typename Bits, typename Value>
void load_all(DType dtype, std::span<const std::byte> bytes, std::vector<Value>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = static_cast<Value>(decode_float(dtype, bits));
  }
}

template <typename Value>
std::vector<Value> loaded(DType dtype, std::span<const std::byte> bytes) {
  std::vector<Value> values(bytes.size() / dtype_bytes(dtype));
  switch (dtype_bytes(dtype)) {
    case 1:
      load_all<uint8_t>(dtype, bytes, values);
      break;
    case 2:
      load_all<uint16_t>(dtype, bytes, values);
      break;
    case 4:
      load_all<uint32_t>(dtype, bytes, values);
      break;
    default:
      load_all<uint64_t>(dtype, bytes, values);
  }
  return values;
}

}  // namespace

std::vector<float> load_floats(DType dtype, std::span<const std::byte> bytes) {
  return loaded<float>(dtype, bytes);
}
std::vector<double> load_doubles(DType dtype, std::span<const std::byte> bytes) {
  return loaded<double>(dtype, bytes);
}

}  // namespace qcts
