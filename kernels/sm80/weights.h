// SPDX-License-Identifier: BSD-3-Clause
// The families of dequantize for its frame (sm80/dequantize.h). kernels/dequantize/*scalar.cc names the
// sources of the formulas. Row and column numbers are divided as 32 bits, since a 64-bit division takes some
// 70 instructions.
#pragma once

#include "kernels/families/entry.h"
#include "kernels/sm80/group_major.h"
#include "kernels/sm80/small_floats.h"

namespace qcts::sm80 {
namespace {

[[maybe_unused]] const uint8_t* bytes_of(const qcts_problem& p, const char* name) {
  return static_cast<const uint8_t*>(in_plane(p, name));
}

// Finds the scale of an element if scales are row-major. There is one scale for `rows` rows of `length`
// elements.
struct ScaleGrid {
  uint32_t rows, length, across;
  explicit ScaleGrid(const qcts_problem& p)
      : rows(static_cast<uint32_t>(scheme_params(p).group_rows != 0 ? scheme_params(p).group_rows : p.n)),
        length(static_cast<uint32_t>(p.group != 0 ? p.group : p.k)),
        across(static_cast<uint32_t>(p.k) / length) {}
  QCTS_DEVICE int64_t index(int64_t n, int64_t k) const {
    return static_cast<int64_t>(static_cast<uint32_t>(n) / rows) * across + static_cast<uint32_t>(k) / length;
  }
};

struct NoTable {
  static constexpr bool kTable = false;
};

// int8, intx and tinyq: (code - zero point) * scale. The difference is exact, and the product is rounded to
// float32, then to T. tinyq has no zero points, or none that count.
template <bool kTinyq>
struct AffineWeight : NoTable {
  using Codes = sm80::Codes<8>;
  static constexpr int kUnit = 1;
  struct Parameters {
    float scale;
    int32_t zero_point;
  };
  const uint8_t *codes, *scales, *zero_points;
  uint32_t scale_dtype;
  ScaleGrid grid;
  int64_t length;
  explicit AffineWeight(const qcts_problem& p)
      : codes(bytes_of(p, kTinyq ? "int8_weights" : "qdata")),
        scales(bytes_of(p, kTinyq ? "scales" : "scale")),
        zero_points(kTinyq ? nullptr : bytes_of(p, "zero_point")),
        scale_dtype(plane_dtype(p.planes, p.n_planes, kTinyq ? "scales" : "scale")),
        grid(p),
        length(grid.length) {}

  template <class T>
  QCTS_DEVICE Parameters parameters(int64_t n, int64_t k) const {
    const int64_t at = grid.index(n, k);
    return {load_float(scale_dtype, scales, at),
            kTinyq ? 0 : static_cast<int8_t>(load_global<uint8_t>(zero_points + at))};
  }
  template <class T>
  QCTS_DEVICE typename T::Bits element(const Parameters& of, const uint32_t* words, int i) const {
    return T::encode(static_cast<float>(static_cast<int8_t>(Codes::get(words, i)) - of.zero_point) *
                     of.scale);
  }
};

// float8 with float32 scales: the product is rounded to float32, then to T.
struct Float8Weight : NoTable {
  using Codes = sm80::Codes<8>;
  static constexpr int kUnit = 1;
  const uint8_t *codes, *scales;
  SmallFormat format;
  ScaleGrid grid;
  int64_t length;
  explicit Float8Weight(const qcts_problem& p)
      : codes(bytes_of(p, "qdata")),
        scales(bytes_of(p, "scale")),
        format(small_format(scheme_params(p).element_dtype)),
        grid(p),
        length(grid.length) {}

  template <class T>
  QCTS_DEVICE float parameters(int64_t n, int64_t k) const {
    return load_float(QCTS_F32, scales, grid.index(n, k));
  }
  template <class T>
  QCTS_DEVICE typename T::Bits element(float scale, const uint32_t* words, int i) const {
    return T::encode(format.decode(Codes::get(words, i)) * scale);
  }
};

// fp8_sparse24 (kernels/families/sparse24.h): four elements have two codes, and a nibble with their places.
struct Sparse24Weight : NoTable {
  using Codes = sm80::Codes<4>;
  static constexpr int kUnit = 4;
  struct Parameters {
    float scale;
    uint32_t places;
  };
  const uint8_t *codes, *metadata, *scales;
  int64_t k, length;
  explicit Sparse24Weight(const qcts_problem& p)
      : codes(bytes_of(p, "qdata")),
        metadata(bytes_of(p, "sparse_metadata")),
        scales(bytes_of(p, "scale")),
        k(p.k),
        length(p.k) {}

  template <class T>
  QCTS_DEVICE Parameters parameters(int64_t n, int64_t at) const {
    const int64_t index = n * k + at;
    return {load_float(QCTS_F32, scales, n),
            static_cast<uint32_t>(load_global<uint8_t>(metadata + index / 8)) >> (index % 8)};
  }
  // If both codes have the same place, the second one counts.
  template <class T>
  QCTS_DEVICE typename T::Bits element(const Parameters& of, const uint32_t* words, int i) const {
    const uint32_t places = of.places >> i / 4 * 4 & 15, place = static_cast<uint32_t>(i % 4);
    const uint32_t codes_of_four = words[i / 8] >> i % 8 / 4 * 16;
    const uint32_t code = places == 0             ? 0
                          : places >> 2 == place  ? codes_of_four >> 8 & 0xFF
                          : (places & 3) == place ? codes_of_four & 0xFF
                                                  : 0;
    return T::encode(decode_e4m3(code) * of.scale);
  }
};

// mx: the element and the e8m0 scale are exact. Their product is rounded to float32, then to T.
template <int kBits>
struct MxWeight : NoTable {
  using Codes = sm80::Codes<kBits>;
  static constexpr int kUnit = Codes::kUnit;
  static constexpr int64_t length = 32;
  const uint8_t *codes, *scales;
  SmallFormat format;
  int64_t k;
  explicit MxWeight(const qcts_problem& p)
      : codes(bytes_of(p, "qdata")),
        scales(bytes_of(p, "scale")),
        format(small_format(scheme_params(p).element_dtype)),
        k(p.k) {}

  template <class T>
  QCTS_DEVICE float parameters(int64_t n, int64_t at) const {
    return e8m0_to_f32(load_global<uint8_t>(scales + (n * k + at) / length));
  }
  template <class T>
  QCTS_DEVICE typename T::Bits element(float scale, const uint32_t* words, int i) const {
    return T::encode(format.decode(Codes::get(words, i)) * scale);
  }
};

// nvfp4: code * (per_tensor_scale * scale), with both products in float32. With one level, there is no
// per_tensor_scale.
struct Nvfp4Weight : NoTable {
  using Codes = sm80::Codes<4>;
  static constexpr int kUnit = 2;
  static constexpr int64_t length = 16;
  const uint8_t *codes, *scales, *whole;
  int64_t k;
  explicit Nvfp4Weight(const qcts_problem& p)
      : codes(bytes_of(p, "qdata")),
        scales(bytes_of(p, "scale")),
        whole(bytes_of(p, "per_tensor_scale")),
        k(p.k) {}

  template <class T>
  QCTS_DEVICE float parameters(int64_t n, int64_t at) const {
    const float scale = decode_e4m3(load_global<uint8_t>(scales + (n * k + at) / length));
    return whole == nullptr ? scale : load_float(QCTS_F32, whole, 0) * scale;
  }
  template <class T>
  QCTS_DEVICE typename T::Bits element(float scale, const uint32_t* words, int i) const {
    return T::encode(decode_e2m1(Codes::get(words, i)) * scale);
  }
};

// nf4: table[code] * (quantized scaler / factor + mean), with every step rounded to T. Blocks continue from
// row to row.
struct Nf4Weight {
  using Codes = sm80::Codes<4, true>;
  static constexpr int kUnit = 2;
  static constexpr bool kTable = true;
  const uint8_t *codes, *scalers, *factors, *mean, *table;
  uint32_t dtype;
  int64_t k, length;
  explicit Nf4Weight(const qcts_problem& p)
      : codes(bytes_of(p, "quantized_data")),
        scalers(bytes_of(p, "quantized_scalers")),
        factors(bytes_of(p, "quantization_factor")),
        mean(bytes_of(p, "scaler_mean")),
        table(bytes_of(p, "nf4")),
        dtype(p.w_dtype),
        k(p.k),
        length(64) {}

  QCTS_DEVICE void fill_table() const {
    if (thread_index() < 16)
      store_shared(shared_memory() + kAfterStages + 4 * thread_index(),
                   bits_of(load_float(dtype, table, thread_index())));
  }
  template <class T>
  QCTS_DEVICE float parameters(int64_t n, int64_t at) const {
    const int64_t block = (n * k + at) / 64;
    const auto code = static_cast<int8_t>(load_global<uint8_t>(scalers + block));
    const float scaler = round_to<T>(static_cast<float>(code) / load_float(dtype, factors, block / 256));
    return round_to<T>(scaler + load_float(dtype, mean, 0));
  }
  template <class T>
  QCTS_DEVICE typename T::Bits element(float scaler, const uint32_t* words, int i) const {
    const float value =
        float_of(load_shared<uint32_t>(shared_memory() + kAfterStages + 4 * Codes::get(words, i)));
    return T::encode(value * scaler);
  }
};

// Returns a * b + c for three numbers of T, rounded once.
template <class T>
QCTS_DEVICE typename T::Bits fused(typename T::Bits a, typename T::Bits b, typename T::Bits c);
template <>
QCTS_DEVICE uint32_t fused<F32>(uint32_t a, uint32_t b, uint32_t c) {
  return bits_of(fmaf(float_of(a), float_of(b), float_of(c)));
}
template <>
QCTS_DEVICE uint16_t fused<F16>(uint16_t a, uint16_t b, uint16_t c) {
  return static_cast<uint16_t>(fma_f16x2(a, b, c));
}
template <>
QCTS_DEVICE uint16_t fused<BF16>(uint16_t a, uint16_t b, uint16_t c) {
  return static_cast<uint16_t>(fma_bf16x2(a, b, c));
}

// int4_plain and int4_tinygemm: code * scale + zero, rounded once to T, which is the dtype of scale and zero.
// int4_tinygemm has the even k in the high nibble, codes from -8 on, and pairs of a scale and its zero.
template <bool kTinygemm>
struct Int4Weight : NoTable {
  using Codes = sm80::Codes<4, kTinygemm>;
  static constexpr int kUnit = 2;
  static constexpr bool kGroupMajor = true;
  template <class T>
  struct Parameters {
    typename T::Bits scale, zero;
  };
  const uint8_t *codes, *scales, *zeros;
  int64_t n, k, length;
  explicit Int4Weight(const qcts_problem& p)
      : codes(bytes_of(p, "qdata")),
        scales(bytes_of(p, kTinygemm ? "scale_and_zero" : "scale")),
        zeros(kTinygemm ? scales + dtype_bytes(p.w_dtype) : bytes_of(p, "zero_point")),
        n(p.n),
        k(p.k),
        length(p.group) {}

  template <class T>
  QCTS_DEVICE Parameters<T> parameters(int64_t row, int64_t column) const {
    const int64_t group = static_cast<uint32_t>(column) / static_cast<uint32_t>(length);
    const int64_t at = (group * n + row) * T::kBytes * (kTinygemm ? 2 : 1);
    return {load_global<typename T::Bits>(scales + at), load_global<typename T::Bits>(zeros + at)};
  }
  const uint8_t* pairs() const { return kTinygemm ? scales : nullptr; }
  template <class T>
  QCTS_DEVICE TileParameters<T, !kTinygemm> tile() const {
    return {const_cast<uint8_t*>(scales), const_cast<uint8_t*>(zeros), n, static_cast<uint32_t>(k),
            static_cast<uint32_t>(length)};
  }
  template <class T>
  static QCTS_DEVICE Parameters<T> staged(const uint8_t* at) {
    return {load_shared<typename T::Bits>(at), load_shared<typename T::Bits>(at + T::kBytes)};
  }
  template <class T>
  QCTS_DEVICE typename T::Bits element(const Parameters<T>& of, const uint32_t* words, int i) const {
    const auto code = static_cast<int>(Codes::get(words, i) ^ (kTinygemm ? 0 : 8)) - 8;
    return fused<T>(T::encode(static_cast<float>(code)), of.scale, of.zero);
  }
};

}  // namespace
}  // namespace qcts::sm80
