// SPDX-License-Identifier: BSD-3-Clause
#include "reference/numerics/special_values.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace qcts {
namespace {

// The bits of one element that decide whether it is NaN or infinite.
struct SpecialBits {
  int bits = 0;                       // per element; 0: the type has no special values
  uint64_t exponent = 0;              // special if all of these are set
  uint64_t mantissa = 0;              // NaN if any of these is set, infinite otherwise; 0: always NaN
  uint64_t sign = 0;                  // 0: no sign
  bool negative_zero_is_nan = false;  // the "fnuz" types: the only NaN has the bits of -0
  bool has_zero = true;
};

SpecialBits bits_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return {64, 0x7FF0'0000'0000'0000, 0x000F'FFFF'FFFF'FFFF, uint64_t{1} << 63};
    case DType::float32:
    case DType::complex64:
      return {32, 0x7F80'0000, 0x007F'FFFF, 0x8000'0000};
    case DType::float16:
    case DType::complex32:
      return {16, 0x7C00, 0x03FF, 0x8000};
    case DType::bfloat16:
      return {16, 0x7F80, 0x007F, 0x8000};
    case DType::float8_e5m2:
      return {8, 0x7C, 0x03, 0x80};
    case DType::float8_e4m3fn:
      return {8, 0x7F, 0, 0x80};
    case DType::float8_e8m0fnu:
      return {8, 0xFF, 0, 0, false, false};
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2fnuz:
      return {8, 0, 0, 0x80, true};
    default:
      return {};
  }
}

uint64_t word_at(std::span<const std::byte> bytes, size_t offset, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, size);
  return word;
}

// Repeats the bits of one element over a word.
uint64_t repeated(uint64_t element, int bits) {
  uint64_t word = element;
  for (int width = bits; width < 64; width *= 2) word |= word << width;
  return word;
}

constexpr size_t kChunkBytes = 4096;

// Looks at a word of elements at a time, and at single elements only where a chunk has a special one.
class SpecialScan {
 public:
  SpecialScan(const SpecialBits& format, std::span<const std::byte> bytes)
      : format_(format), bytes_(bytes), size_(static_cast<size_t>(format.bits / 8)) {
    found_.elements = bytes.size() / size_;
  }

  SpecialValues run() {
    for (size_t at = 0; at < bytes_.size(); at += kChunkBytes) {
      const std::span<const std::byte> chunk = bytes_.subspan(at, std::min(kChunkBytes, bytes_.size() - at));
      if (may_be_special(chunk)) count(at / size_, chunk);
    }
    found_.all_zero = found_.all_zero && format_.has_zero;
    found_.is_mask = found_.infinities != 0 && found_.nans == 0 && is_mask();
    return found_;
  }

 private:
  bool may_be_special(std::span<const std::byte> chunk) {
    const uint64_t exponent = repeated(format_.exponent, format_.bits);
    const uint64_t lowest = repeated(format_.exponent & (~format_.exponent + 1), format_.bits);
    // Adding the lowest exponent bit carries out of an exponent of all ones, into the bit of the sign.
    const uint64_t carry = repeated(uint64_t{1} << (format_.bits - 1), format_.bits);
    const bool by_carry = format_.sign != 0 && !format_.negative_zero_is_nan;
    uint64_t special = 0, any = 0;
    size_t at = 0;
    for (; at + 8 <= chunk.size(); at += 8) {
      const uint64_t word = word_at(chunk, at, 8);
      any |= word;
      special |= ((word & exponent) + lowest) & carry;
    }
    const uint64_t rest = word_at(chunk, at, chunk.size() - at);
    any |= rest;
    special |= ((rest & exponent) + lowest) & carry;
    const uint64_t sign = repeated(format_.sign, format_.bits);
    found_.all_zero = found_.all_zero && (any & ~sign) == 0;
    return by_carry ? special != 0 : any != 0;
  }

  bool is_special(uint64_t element) const {
    if (format_.negative_zero_is_nan) return element == format_.sign;
    return (element & format_.exponent) == format_.exponent;
  }

  void count(uint64_t first, std::span<const std::byte> chunk) {
    for (size_t at = 0; at < chunk.size(); at += size_) {
      const uint64_t element = word_at(chunk, at, size_);
      if (!is_special(element)) continue;
      const uint64_t index = first + at / size_;
      const bool nan = format_.mantissa == 0 || (element & format_.mantissa) != 0;
      ++(nan ? found_.nans : found_.infinities);
      std::optional<uint64_t>& place = nan ? found_.first_nan : found_.first_infinity;
      if (!place) place = index;
      found_.all_zero = false;
    }
  }

  bool is_mask() const {
    std::optional<uint64_t> kept;
    for (size_t at = 0; at < bytes_.size(); at += size_) {
      const uint64_t element = word_at(bytes_, at, size_);
      if (element == (format_.sign | format_.exponent)) continue;
      if (kept && *kept != element) return false;
      kept = element;
    }
    return kept && !is_special(*kept);
  }

  const SpecialBits format_;
  const std::span<const std::byte> bytes_;
  const size_t size_;
  SpecialValues found_;
};

}  // namespace

bool has_special_values(DType dtype) { return bits_of(dtype).bits != 0; }

SpecialValues special_values(DType dtype, std::span<const std::byte> bytes) {
  const SpecialBits format = bits_of(dtype);
  if (format.bits == 0)
    throw std::invalid_argument(std::string(dtype_name(dtype)) + " has neither NaN nor infinity");
  return SpecialScan(format, bytes).run();
}

bool all_bytes_zero(std::span<const std::byte> bytes) {
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8)
    if (word_at(bytes, at, 8) != 0) return false;
  return word_at(bytes, at, bytes.size() - at) == 0;
}

}  // namespace qcts
