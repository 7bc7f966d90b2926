// SPDX-License-Identifier: BSD-3-Clause
// The planes of a weight as the frames of `linear` read them: codes, and a scale and a zero for each row and
// group. One struct serves all families. Only the way in which codes become numbers is a type
// (kernels/sm80/operands.h).
#pragma once

#include "kernels/families/entry.h"
#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

// Dimensions are below 2^31 (supports_linear()). A 64-bit division would be a call, which spills registers.
QCTS_DEVICE int64_t quotient(int64_t a, int64_t b) {
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}
constexpr int64_t kMaxDimension = 0x7FFFFFFF;

// The parameters of row n and group g have index n / rows * row_step + g * group_step. A group has `group`
// elements.
struct Weight {
  const uint8_t* codes = nullptr;  // [n, k], row-major
  int64_t group = 0;
  int64_t rows = 1, row_step = 0, group_step = 0;
  const uint8_t* scales = nullptr;
  const uint8_t* zeros = nullptr;
  // These are qcts_dtype values. Scales are a float, E8M0 or E4M3FN. Zeros are a float, or I8 or U8, which
  // stay integers. NONE means that there are none.
  uint32_t scale_type = QCTS_NONE, zero_type = QCTS_NONE;
  bool has_pairs = false;  // a scale and its zero are one aligned word of two 16-bit floats
  // The scales of nf4 have two levels: int8 codes, a divisor per 256 of them, and a mean for all.
  // `table` has the 16 values.
  const uint8_t *divided = nullptr, *divisors = nullptr, *mean = nullptr, *table = nullptr;
  // These multiply a finished sum. They are float32, one for each row or one for all.
  const uint8_t* finals = nullptr;
  int64_t final_step = 0;

  // word[0] is the scale, as a float32. word[1] is the zero, as an int32 or a float32.
  template <bool kTwoLevels>
  QCTS_DEVICE Words2 parameters(int64_t n, int64_t g) const {
    const int64_t at = (rows == 1 ? n : quotient(n, rows)) * row_step + g * group_step;
    if (has_pairs) {
      const auto pair = load_global<uint32_t>(scales + 2 * at);
      const auto low = static_cast<uint16_t>(pair), high = static_cast<uint16_t>(pair >> 16);
      if (scale_type == QCTS_F16) return {{bits_of(f16_to_f32(low)), bits_of(f16_to_f32(high))}};
      return {{pair << 16, pair & 0xFFFF0000}};
    }
    return {{bits_of(kTwoLevels ? of_two_levels(at) : scale(at)), zero(at)}};
  }
  QCTS_DEVICE float finish(int64_t n) const {
    return finals == nullptr ? 1 : float_of(load_global<uint32_t>(finals + 4 * n * final_step));
  }

 private:
  QCTS_DEVICE float scale(int64_t at) const {
    if (scale_type == QCTS_NONE) return 0;
    if (scale_type == QCTS_F8_E8M0) {
      const uint32_t code = load_global<uint8_t>(scales + at);  // 2^(code - 127); 0: a subnormal; 255: NaN
      return float_of(code == 0 ? 0x00400000 : code == 255 ? 0x7FC00000 : code << 23);
    }
    if (scale_type == QCTS_F8_E4M3FN) {
      const uint32_t code = load_global<uint8_t>(scales + at), magnitude = code & 0x7F;
      const float value = float_of(magnitude << 20) * 0x1p120f;
      return float_of((magnitude == 0x7F ? 0x7FC00000 : bits_of(value)) | (code & 0x80) << 24);
    }
    return load_float(scale_type, scales, at);
  }
  // Each step is rounded to the weight's dtype.
  QCTS_DEVICE float of_two_levels(int64_t at) const {
    constexpr int64_t kDivided = 256;
    const float code = static_cast<int8_t>(load_global<uint8_t>(divided + at));
    const float centred = rounded(code / load_float(scale_type, divisors, at / kDivided));
    return rounded(centred + load_float(scale_type, mean, 0));
  }
  QCTS_DEVICE float rounded(float value) const {
    return scale_type == QCTS_F32   ? value
           : scale_type == QCTS_F16 ? round_to<F16>(value)
                                    : round_to<BF16>(value);
  }
  QCTS_DEVICE uint32_t zero(int64_t at) const {
    if (zero_type == QCTS_NONE) return 0;
    if (zero_type == QCTS_U8) return load_global<uint8_t>(zeros + at);
    if (zero_type == QCTS_I8)
      return static_cast<uint32_t>(static_cast<int8_t>(load_global<uint8_t>(zeros + at)));
    return bits_of(load_float(zero_type, zeros, at));
  }
};

// tile_packed_4d.
// A tile has 8 rows and 128 columns of the weight: 512 bytes, 16 for each lane of a warp
// (kernels/sm80/pack.h). k is padded to 1024, and tiles along k follow one another.
constexpr int kTileRows = 8, kTileK = 128, kTileBytes = 512;
QCTS_DEVICE const uint8_t* tile_at(const uint8_t* codes, int64_t k, int64_t down, int64_t across) {
  return codes + (down * ((k + 1023) / 1024 * (1024 / kTileK)) + across) * kTileBytes;
}

// On the host.

[[maybe_unused]] const uint8_t* bytes_in(const qcts_problem& p, const char* name) {
  return static_cast<const uint8_t*>(in_plane(p, name));
}
[[maybe_unused]] int64_t group_of(const qcts_problem& p) { return p.group == 0 ? p.k : p.group; }

// Returns a weight with a scale for each row and group, in order.
[[maybe_unused]] Weight by_row(const qcts_problem& p, const char* codes, int64_t group) {
  Weight weight;
  weight.codes = bytes_in(p, codes);
  weight.group = group;
  weight.row_step = p.k / group;
  weight.group_step = 1;
  weight.scales = bytes_in(p, "scale");
  weight.scale_type = QCTS_F32;
  return weight;
}

[[maybe_unused]] Weight int4_tinygemm_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", p.group);
  weight.row_step = 2;
  weight.group_step = 2 * p.n;
  weight.scales = bytes_in(p, "scale_and_zero");
  weight.zeros = weight.scales == nullptr ? nullptr : weight.scales + dtype_bytes(p.w_dtype);
  weight.scale_type = weight.zero_type = p.w_dtype;
  weight.has_pairs = p.w_dtype != QCTS_F32 && reinterpret_cast<uintptr_t>(weight.scales) % 4 == 0;
  return weight;
}

// The padding has parameters too.
[[maybe_unused]] Weight int4_tile_packed_weight(const qcts_problem& p) {
  Weight weight = int4_tinygemm_weight(p);
  weight.group_step = 2 * ((p.n + kTileRows - 1) / kTileRows * kTileRows);
  return weight;
}

[[maybe_unused]] Weight int4_plain_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", p.group);
  weight.row_step = 1;
  weight.group_step = p.n;
  weight.zeros = bytes_in(p, "zero_point");
  weight.scale_type = weight.zero_type = p.w_dtype;
  return weight;
}

// There is one scale per row, or per group of a row.
[[maybe_unused]] Weight int8_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", group_of(p));
  weight.zeros = bytes_in(p, "zero_point");
  weight.zero_type = QCTS_I8;
  return weight;
}
[[maybe_unused]] Weight int8_tensor_weight(const qcts_problem& p) {
  Weight weight = int8_weight(p);
  weight.row_step = weight.group_step = 0;
  return weight;
}

// Codes of all widths take a byte each.
[[maybe_unused]] Weight intx_weight(const qcts_problem& p) {
  Weight weight = int8_weight(p);
  weight.scale_type = plane_dtype(p.planes, p.n_planes, "scale");
  return weight;
}

// The zero points of W8A32 are ignored, as its forward ignores them.
[[maybe_unused]] Weight tinyq_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "int8_weights", p.k);
  weight.scales = bytes_in(p, "scales");
  weight.scale_type = p.w_dtype;
  return weight;
}

// There is one scale per row (fp8_row), or per block of rows and columns.
[[maybe_unused]] Weight fp8_row_weight(const qcts_problem& p) { return by_row(p, "qdata", p.k); }
[[maybe_unused]] Weight fp8_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", group_of(p));
  weight.rows = scheme_params(p).group_rows != 0 ? scheme_params(p).group_rows : p.n;
  return weight;
}

[[maybe_unused]] Weight mx_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", 32);
  weight.scale_type = QCTS_F8_E8M0;
  return weight;
}

[[maybe_unused]] Weight nvfp4_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", 16);
  weight.scale_type = QCTS_F8_E4M3FN;
  weight.finals = bytes_in(p, "per_tensor_scale");
  return weight;
}

[[maybe_unused]] Weight nf4_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "quantized_data", 64);
  weight.scale_type = p.w_dtype;
  weight.divided = bytes_in(p, "quantized_scalers");
  weight.divisors = bytes_in(p, "quantization_factor");
  weight.mean = bytes_in(p, "scaler_mean");
  weight.table = bytes_in(p, "nf4");
  return weight;
}

// The parameters of eight elements are the byte that holds their places.
[[maybe_unused]] Weight fp8_sparse24_weight(const qcts_problem& p) {
  Weight weight = by_row(p, "qdata", 8);
  weight.finals = weight.scales;
  weight.final_step = 1;
  weight.scale_type = QCTS_NONE;
  weight.zeros = bytes_in(p, "sparse_metadata");
  weight.zero_type = QCTS_U8;
  return weight;
}

}  // namespace
}  // namespace qcts::sm80
