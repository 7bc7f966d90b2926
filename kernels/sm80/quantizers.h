// SPDX-License-Identifier: BSD-3-Clause
// Families of quantize with integer codes, and float8 (sm80/quantize.h). kernels/quantize/*scalar.cc and
// kernels/families name the sources of the formulas. Reciprocals and products round separately, as in the
// originals.
#pragma once

#include <string.h>

#include "kernels/sm80/quantize.h"

namespace qcts::sm80 {
namespace {

[[maybe_unused]] uint8_t* out_bytes(const qcts_problem& p, const char* name) {
  return static_cast<uint8_t*>(out_plane(p, name));
}
[[maybe_unused]] const uint8_t* given_bytes(const qcts_problem& p, const char* name) {
  return static_cast<const uint8_t*>(in_plane(p, name));
}
[[maybe_unused]] bool is_policy(const qcts_problem& p, const char* policy) {
  return p.op == QCTS_OP_QUANTIZE_ACTIVATION && strcmp(p.activation, policy) == 0;
}

// Provides encode() for families whose codes do not depend on each other.
template <class Family>
struct EachCode {
  template <class T, int kCount, class Scale>
  QCTS_DEVICE void encode(const Scale& scale, const float (&x)[kCount], int64_t, bool,
                          uint32_t (&words)[2]) const {
    QCTS_UNROLL
    for (int i = 0; i < kCount; ++i)
      Family::Codes::put(words, i, static_cast<const Family*>(this)->template code<T>(scale, x[i]));
  }
};

// Clamps a rounded number to min .. max; a NaN becomes 0.
QCTS_DEVICE int32_t clamped(float rounded, float min, float max) {
  if (is_nan(rounded)) return 0;
  return static_cast<int32_t>(rounded < min ? min : rounded > max ? max : rounded);
}

// int8, intx and rows of x (kernels/families/affine_groups.h). Every step of the scale is rounded to T, and
// codes are computed in T or float32.
template <class RangeOf>
struct AffineQuantizer : EachCode<AffineQuantizer<RangeOf>> {
  using Codes = sm80::Codes<8>;
  using Range = RangeOf;
  static constexpr int kUnit = 1;
  struct Scale {
    float scale, reciprocal, zero_point;
  };
  uint8_t *codes, *scales, *zero_points;  // scales is NULL if they have been stored
  const uint8_t *given_scale, *given_zero_point;
  uint32_t mapping, scale_dtype;
  float code_min, code_max, min_scale;
  bool in_float32;  // codes are computed in float32
  bool has_one;     // the planes hold one scale for all runs

  template <class T>
  QCTS_DEVICE float scale_of(const Range& range) const {
    const float low = range.low(), high = range.high(), span = code_max - code_min;
    if (mapping == QCTS_ASYMMETRIC) return round_to<T>(round_to<T>(high - low) / span);
    if (mapping == QCTS_SYMMETRIC) return round_to<T>((-low > high ? -low : high) / (span / 2));
    const float by_low = round_to<T>(low / code_min), by_high = round_to<T>(high / code_max);
    return by_low > by_high ? by_low : by_high;
  }
  template <class T>
  QCTS_DEVICE Scale scale(const Range& range, int64_t) const {
    Scale of = {0, 0, 0};
    if constexpr (Range::kWords == 0) {
      of.scale = load_float(QCTS_F32, given_scale, 0);
      if (given_zero_point != nullptr)
        of.zero_point = static_cast<int8_t>(load_global<uint8_t>(given_zero_point));
    } else {
      of.scale = scale_of<T>(range);
      if (of.scale < min_scale) of.scale = min_scale;
      if (mapping == QCTS_ASYMMETRIC) {
        const float below = nearbyintf(round_to<T>(range.low() / of.scale));
        of.zero_point = static_cast<float>(clamped(round_to<T>(code_min - below), code_min, code_max));
      }
    }
    const float reciprocal = 1.0f / of.scale;
    of.reciprocal = in_float32 ? reciprocal : round_to<T>(reciprocal);
    return of;
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, const Scale& of) const {
    if (scales == nullptr || (has_one && run != 0)) return;
    store_float(scale_dtype, scales, run, of.scale);
    store_global(zero_points + run, static_cast<uint8_t>(static_cast<int32_t>(of.zero_point)));
  }
  template <class T>
  QCTS_DEVICE uint32_t code(const Scale& of, float x) const {
    const float product = x * of.reciprocal, steps = nearbyintf(in_float32 ? product : round_to<T>(product));
    const float sum = steps + of.zero_point;
    return static_cast<uint32_t>(clamped(in_float32 ? sum : round_to<T>(sum), code_min, code_max)) & 0xFF;
  }
};

// TinyQ: the scale is largest / 127, and codes are quotients. W8A32 clamps them. W8A16 rounds them to T and
// keeps the low byte of an int32, which is 0x80000000 for a quotient that does not fit.
struct TinyqQuantizer : EachCode<TinyqQuantizer> {
  using Codes = sm80::Codes<8>;
  using Range = Magnitude;
  using Scale = float;
  static constexpr int kUnit = 1;
  uint8_t *codes, *scales, *zero_points;
  bool wraps;
  explicit TinyqQuantizer(const qcts_problem& p)
      : codes(out_bytes(p, "int8_weights")),
        scales(out_bytes(p, "scales")),
        zero_points(out_bytes(p, "zero_points")),
        wraps((scheme_params(p).flags & QCTS_SCHEME_CODES_WRAP) != 0) {}

  // W8A32 divides in double and rounds to float32. The result is the same, since a double has more than twice
  // the bits.
  template <class T>
  QCTS_DEVICE float scale(const Range& range, int64_t) const {
    const float scale = range.largest() / 127.0f;
    return wraps ? round_to<T>(scale) : scale;
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, float scale) const {
    store_global(scales + run * T::kBytes, T::encode_all(scale));
    if (!wraps) store_global(zero_points + 4 * run, uint32_t{0});
  }
  template <class T>
  QCTS_DEVICE uint32_t code(float scale, float x) const {
    const float ratio = x / scale, rounded = nearbyintf(wraps ? round_to<T>(ratio) : ratio);
    if (!wraps) return static_cast<uint32_t>(clamped(rounded, -128, 127)) & 0xFF;
    const bool fits = rounded >= -2147483648.0f && rounded < 2147483648.0f;
    return fits ? static_cast<uint32_t>(static_cast<int32_t>(rounded)) & 0xFF : 0;
  }
};

// int4_plain: everything is computed in float32. The scale and the zero are rounded to T when they are
// stored.
struct PlainQuantizer : EachCode<PlainQuantizer> {
  using Codes = sm80::Codes<4>;
  using Range = MinMax<false>;
  static constexpr int kUnit = 2;
  static constexpr bool kGroupMajor = true;
  struct Scale {
    float scale, zero, min;
  };
  uint8_t *codes, *scales, *zeros;
  int64_t n;
  uint32_t across;
  bool symmetric;
  explicit PlainQuantizer(const qcts_problem& p)
      : codes(out_bytes(p, "qdata")),
        scales(out_bytes(p, "scale")),
        zeros(out_bytes(p, "zero_point")),
        n(p.n),
        across(static_cast<uint32_t>(p.k / p.group)),
        symmetric(scheme_params(p).mapping == QCTS_SYMMETRIC) {}

  template <class T>
  QCTS_DEVICE Scale scale(const Range& range, int64_t) const {
    const float low = range.low(), high = range.high();
    if (is_nan(low)) return {low, symmetric ? 0 : low, symmetric ? 0 : low};
    const float size = symmetric ? fmaxf(fabsf(low), fabsf(high)) : high - low;
    const float scale = (size < 1e-6f ? 1e-6f : size) / (symmetric ? 8.0f : 15.0f);
    if (symmetric) return {scale, 0, 0};
    return {scale, low + scale * 8.0f, low};
  }
  const uint8_t* pairs() const { return nullptr; }
  template <class T>
  QCTS_DEVICE TileParameters<T, true> tile(uint32_t k) const {
    return {scales, zeros, n, k, k / across};
  }
  template <class T>
  static QCTS_DEVICE void stage(uint8_t* at, const Scale& of) {
    store_shared(at, T::encode_all(of.scale));
    store_shared(at + T::kBytes, T::encode_all(of.zero));
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, const Scale& of) const {
    const int64_t at = (run % across * n + run / across) * T::kBytes;
    store_global(scales + at, T::encode_all(of.scale));
    store_global(zeros + at, T::encode_all(of.zero));
  }
  template <class T>
  QCTS_DEVICE uint32_t code(const Scale& of, float x) const {
    const float steps = nearbyintf((x - of.min) / of.scale);
    if (is_nan(steps)) return 0;
    return static_cast<uint32_t>(symmetric ? clamped(steps, -8, 7) : clamped(steps, 0, 15) - 8) & 15;
  }
};

// int4_tinygemm: every step is rounded to T.
struct TinygemmQuantizer : EachCode<TinygemmQuantizer> {
  using Codes = sm80::Codes<4, true>;
  using Range = MinMax<false>;
  static constexpr int kUnit = 2;
  static constexpr bool kGroupMajor = true;
  struct Scale {
    float scale, zero, low;
  };
  uint8_t *codes, *scale_and_zero;
  int64_t n;
  uint32_t across;
  bool has_least_normal;  // the minimum of the scale is that; otherwise it is 1e-6
  explicit TinygemmQuantizer(const qcts_problem& p)
      : codes(out_bytes(p, "qdata")),
        scale_and_zero(out_bytes(p, "scale_and_zero")),
        n(p.n),
        across(static_cast<uint32_t>(p.k / p.group)),
        has_least_normal(same_text(p.layout, "tile_packed_4d")) {}

  template <class T>
  QCTS_DEVICE Scale scale(const Range& range, int64_t) const {
    const float min = has_least_normal ? 0x1p-126f : round_to<T>(1e-6f), low = range.low();
    if (is_nan(low)) return {low, low, low};
    float scale = round_to<T>(round_to<T>(range.high() - low) / 15.0f);
    if (scale < min) scale = min;
    const float half = round_to<T>(scale * 8.0f), zero = round_to<T>(low + half);
    return {scale, zero, round_to<T>(zero - half)};
  }
  const uint8_t* pairs() const { return scale_and_zero; }
  template <class T>
  QCTS_DEVICE TileParameters<T, false> tile(uint32_t k) const {
    return {scale_and_zero, nullptr, n, k, k / across};
  }
  template <class T>
  static QCTS_DEVICE void stage(uint8_t* at, const Scale& of) {
    store_shared(at, T::encode_all(of.scale));
    store_shared(at + T::kBytes, T::encode_all(of.zero));
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, const Scale& of) const {
    uint8_t* at = scale_and_zero + 2 * (run % across * n + run / across) * T::kBytes;
    store_global(at, T::encode_all(of.scale));
    store_global(at + T::kBytes, T::encode_all(of.zero));
  }
  template <class T>
  QCTS_DEVICE uint32_t code(const Scale& of, float x) const {
    return static_cast<uint32_t>(clamped(nearbyintf(round_to<T>(round_to<T>(x - of.low) / of.scale)), 0, 15));
  }
};

// float8 (kernels/families/float8_scales.h): the scale is the largest magnitude, within bounds, / the largest
// code.
template <class RangeOf>
struct Float8Quantizer : EachCode<Float8Quantizer<RangeOf>> {
  using Codes = sm80::Codes<8>;
  using Range = RangeOf;
  using Scale = float;
  static constexpr int kUnit = 1;
  uint8_t *codes, *scales;                     // scales is NULL if they have been stored
  const uint8_t *given_scale, *lower, *upper;  // each bound is a double, or NULL
  const uint8_t* upper_float;                  // the same as `upper`, but a float32
  SmallFormat format;
  float min, least;  // lower bounds: of the largest magnitude, instead of `lower` (0: none), and of the scale
  bool in_float32;   // the scale stays in float32
  bool has_one;      // the planes hold one scale for all runs

  // Returns a bound, rounded as it acts: from double to float32, and to T if the scale is rounded to T.
  template <class T>
  QCTS_DEVICE float bound(const uint8_t* plane) const {
    const auto value = static_cast<float>(__builtin_bit_cast(double, load_global<Words2>(plane)));
    return in_float32 ? value : round_to<T>(value);
  }
  // A comparison with a NaN is false, so a bound that is NaN has no effect.
  template <class T>
  QCTS_DEVICE float within_bounds(float largest) const {
    const float low = min != 0 ? min : lower != nullptr ? bound<T>(lower) : 0;
    if (largest < low) largest = low;
    if (upper == nullptr && upper_float == nullptr) return largest;
    const float high = upper_float != nullptr ? load_float(QCTS_F32, upper_float, 0) : bound<T>(upper);
    return largest > high ? high : largest;
  }
  template <class T>
  QCTS_DEVICE float scale(const Range& range, int64_t) const {
    if constexpr (Range::kWords == 0) {
      return load_float(QCTS_F32, given_scale, 0);
    } else {
      const float quotient = within_bounds<T>(range.largest()) / format.largest;
      const float scale = in_float32 ? quotient : round_to<T>(quotient);
      return scale < least ? least : scale;
    }
  }
  template <class T>
  QCTS_DEVICE void store(int64_t run, float scale) const {
    if (scales != nullptr && (!has_one || run == 0)) store_float(QCTS_F32, scales, run, scale);
  }
  template <class T>
  QCTS_DEVICE uint32_t code(float scale, float x) const {
    return format.encode(x / scale);
  }
};

}  // namespace
}  // namespace qcts::sm80
