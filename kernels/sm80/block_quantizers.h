// SPDX-License-Identifier: BSD-3-Clause
// Families of quantize whose blocks hold small floats or table indices, and 2:4 sparse float8
// (sm80/quantize.h).
#pragma once

#include "kernels/families/nf4_blocks.h"
#include "kernels/families/sparse24.h"
#include "kernels/sm80/quantizers.h"

namespace qcts::sm80 {
namespace {

struct BlockFactor {
  uint32_t byte;
  float factor;
};

// Encodes elements times a factor. The code of a NaN may have more bits than a code should. If two codes
// share a byte, the even one keeps the extra bits, which fall into the odd one, as in the original.
template <class Codes, int kCount>
QCTS_DEVICE void encode_block(const SmallFormat& format, float factor, const float (&x)[kCount],
                              uint32_t (&words)[2]) {
  QCTS_UNROLL
  for (int i = 0; i < kCount; ++i)
    Codes::put(words, i,
               format.encode(times(x[i], factor)) & (Codes::kBits == 4 && i % 2 != 0 ? 0x0F : 0xFF));
}

// mx (kernels/families/block_scales.h).
template <int kBits>
struct MxQuantizer {
  using Codes = sm80::Codes<kBits>;
  using Range = Magnitude;
  using Scale = BlockFactor;
  static constexpr int kUnit = Codes::kUnit;
  uint8_t *codes, *scales;
  SmallFormat format;
  uint32_t rounding;
  explicit MxQuantizer(const qcts_problem& p)
      : codes(out_bytes(p, "qdata")),
        scales(out_bytes(p, "scale")),
        format(small_format(scheme_params(p).element_dtype)),
        rounding(scheme_params(p).scale_rounding) {}

  static QCTS_DEVICE int clamp(int exponent) {
    return exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
  }
  QCTS_DEVICE int exponent_of(uint32_t bits) const {
    if (rounding == QCTS_SCALE_EVEN) bits += 1u << (22 - format.fraction_bits);
    int exponent = static_cast<int>(bits >> 23 & 255) - 127;
    if (rounding == QCTS_SCALE_CEIL && (bits & 0x7FFFFF) != 0) ++exponent;
    return clamp(exponent - format.largest_exponent);
  }
  // Returns the ceiling of log2(ratio), with the logarithm rounded to float32.
  static QCTS_DEVICE int rounded_log2_ceiling(float ratio) {
    const auto bits = __builtin_bit_cast(uint64_t, static_cast<double>(ratio));
    const int exponent = static_cast<int>(bits >> 52) - 1023;
    const double fraction = __builtin_bit_cast(double, (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000) - 1;
    if (exponent == 0) return fraction > 0 ? 1 : 0;
    const int size = exponent < 0 ? -exponent : exponent;
    int binade = static_cast<int>(bits_of(static_cast<float>(size)) >> 23) - 127;
    if (exponent < 0 && (size & (size - 1)) == 0) --binade;
    constexpr double kLn2 = 0.693147180559945309;
    return fraction > kLn2 / static_cast<double>(1 << (24 - binade)) ? exponent + 1 : exponent;
  }
  template <class T>
  QCTS_DEVICE Scale scale(const Range& range, int64_t) const {
    const float largest = range.largest();
    if (rounding != QCTS_SCALE_RCEIL) {
      if (is_nan(largest)) return {255, 0};
      const int exponent = exponent_of(bits_of(largest));
      return {static_cast<uint32_t>(exponent + 127), power_of_two(exponent < -126 ? 126 : -exponent)};
    }
    const float ratio = quotient(largest, format.largest);
    if (is_nan(ratio)) return {255, ratio};
    if (bits_of(ratio) == kInfinityBits) return {254, power_of_two(-127)};
    const int exponent = ratio > 0 ? clamp(rounded_log2_ceiling(ratio)) : -127;
    return {static_cast<uint32_t>(exponent + 127), exponent == -127 ? 1.0f : power_of_two(-exponent)};
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, const Scale& of) const {
    store_global(scales + run, static_cast<uint8_t>(of.byte));
  }
  template <class T, int kCount>
  QCTS_DEVICE void encode(const Scale& of, const float (&x)[kCount], int64_t, bool,
                          uint32_t (&words)[2]) const {
    encode_block<Codes>(format, of.factor, x, words);
  }
};

// nvfp4. `whole` is the scale of the tensor, or NULL.
struct Nvfp4Quantizer {
  using Codes = sm80::Codes<4>;
  using Range = Magnitude;
  using Scale = BlockFactor;
  static constexpr int kUnit = 2;
  uint8_t *codes, *scales;
  const uint8_t* whole;
  explicit Nvfp4Quantizer(const qcts_problem& p)
      : codes(out_bytes(p, "qdata")),
        scales(out_bytes(p, "scale")),
        whole(out_bytes(p, "per_tensor_scale")) {}

  template <class T>
  QCTS_DEVICE Scale scale(const Range& range, int64_t) const {
    const float of_all = whole == nullptr ? 1.0f : load_float(QCTS_F32, whole, 0);
    float scale = quotient(range.largest(), 6.0f);
    if (whole != nullptr) scale = quotient(scale, of_all);
    if (!is_nan(scale)) scale = scale < 0x1p-6f ? 0x1p-6f : scale > 448.0f ? 448.0f : scale;
    const uint32_t byte = encode_e4m3(scale);
    // The code is never subnormal. A NaN is read as in c10/util/Float8_e4m3fn.h.
    const float stored =
        float_of((byte & 0x7F) == 0x7F ? (byte & 0x80) << 24 | 0x7FF00000u : (byte + (120u << 3)) << 20);
    return {byte, quotient(quotient(1.0f, of_all), stored)};
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, const Scale& of) const {
    store_global(scales + run, static_cast<uint8_t>(of.byte));
  }
  template <class T, int kCount>
  QCTS_DEVICE void encode(const Scale& of, const float (&x)[kCount], int64_t, bool,
                          uint32_t (&words)[2]) const {
    constexpr SmallFormat format = kE2m1;
    encode_block<Codes>(format, of.factor, x, words);
  }
};

// The first pass of nf4. It stores codes of x / scaler, and the scalers as float32.
struct Nf4Quantizer : EachCode<Nf4Quantizer> {
  using Codes = sm80::Codes<4, true>;
  using Range = Magnitude;
  using Scale = float;
  static constexpr int kUnit = 2;
  uint8_t *codes, *scalers;
  float bounds[15];  // nf4_bounds
  template <class T>
  QCTS_DEVICE float scale(const Range& range, int64_t) const {
    return range.largest();
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, float scaler) const {
    store_float(QCTS_F32, scalers, run, scaler);
  }
  template <class T>
  QCTS_DEVICE uint32_t code(float scaler, float x) const {
    const float value = round_to<T>(x / scaler);
    uint32_t code = 0;
    QCTS_UNROLL
    for (int i = 0; i < 15; ++i) code += value >= bounds[i] ? 1 : 0;
    return code;
  }
};

constexpr uint64_t packed_places24() {
  uint64_t packed = 0;
  for (int mask = 0; mask < 16; ++mask) packed |= static_cast<uint64_t>(kPlaces24[mask] & 15) << 4 * mask;
  return packed;
}
constexpr uint64_t kPackedPlaces24 = packed_places24();

// Leaves out zeros of both signs.
struct NotZero {
  static QCTS_DEVICE bool stays(uint32_t code) { return (code & 0x7F) != 0; }
};

// fp8_sparse24 (kernels/families/sparse24.h), with scales and codes as in fp8_row. Of every four codes, two
// stay and are stored with their places. If more than two would stay, `failed` becomes ~i, where i is the
// first such four.
template <class Stay = NotZero>
struct Sparse24Quantizer {
  using Codes = sm80::Codes<4>;
  using Range = Magnitude;
  using Scale = float;
  static constexpr int kUnit = 8;
  Float8Quantizer<Magnitude> dense;
  uint8_t *codes, *metadata;
  uint32_t* failed;

  template <class T>
  QCTS_DEVICE float scale(const Range& range, int64_t run) const {
    return dense.template scale<T>(range, run);
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, float scale) const {
    dense.template store<T>(run, scale);
  }
  // Returns the nibble of places, and puts the two codes into 16 bits of `two`.
  template <class T>
  QCTS_DEVICE uint32_t compress(float scale, const float* x, int64_t index, uint32_t& two) const {
    uint32_t four = 0, mask = 0;
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) {
      const uint32_t code = dense.template code<T>(scale, x[i]);
      four |= code << (8 * i);
      mask |= Stay::stays(code) ? 1u << i : 0;
    }
    const uint32_t without_one = mask & (mask - 1);
    if ((without_one & (without_one - 1)) != 0) atomic_max(failed, ~static_cast<uint32_t>(index / 4));
    const auto places = static_cast<uint32_t>(kPackedPlaces24 >> 4 * mask) & 15;
    two = 0;
    QCTS_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t place = places >> (2 * i) & 3;
      if ((mask >> place & 1) != 0) two |= (four >> (8 * place) & 0xFF) << (8 * i);
    }
    return places;
  }
  template <class T, int kCount>
  QCTS_DEVICE void encode(float scale, const float (&x)[kCount], int64_t index, bool valid,
                          uint32_t (&words)[2]) const {
    uint32_t places = 0;
    QCTS_UNROLL
    for (int i = 0; i < kCount; i += 4) {
      uint32_t two = 0;
      if (valid) places |= compress<T>(scale, x + i, index + i, two) << i;
      words[0] |= two << (4 * i);
    }
    // A byte of metadata describes eight elements, which two lanes hold.
    if constexpr (kCount == 4) places |= shuffle_xor(places, 1) << 4;
    if (valid && index % 8 == 0) store_global(metadata + index / 8, static_cast<uint8_t>(places));
  }
};

}  // namespace
}  // namespace qcts::sm80
