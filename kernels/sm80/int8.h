// SPDX-License-Identifier: BSD-3-Clause
// The families of torchao 0.18's Int8Tensor for the frames of quantize and dequantize
// (quant_primitives.py: _choose_qparams_affine SYMMETRIC, _quantize_affine,
// _dequantize_affine_no_dtype_check).
#pragma once

#include "kernels/families/entry.h"
#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

// int8_row: a float32 scale and an int8 zero point a row.
struct Int8RowPlanes {
  struct Scale {
    float scale;
    int32_t zero_point;
  };
  static constexpr int kRun = 16;
  const uint8_t* codes;
  const float* scales;
  const int8_t* zero_points;
  explicit Int8RowPlanes(const qcts_problem& p)
      : codes(static_cast<const uint8_t*>(in_plane(p, "qdata"))),
        scales(static_cast<const float*>(in_plane(p, "scale"))),
        zero_points(static_cast<const int8_t*>(in_plane(p, "zero_point"))) {}

  QCTS_DEVICE Scale scale(int64_t n, int64_t) const {
    return {float_of(load_global<uint32_t>(scales + n)),
            static_cast<int8_t>(load_global<uint8_t>(zero_points + n))};
  }
  // The difference is exact; the product is rounded to float32, then to T.
  template <class T>
  QCTS_DEVICE typename T::Bits element(Scale of, int8_t code) const {
    return T::encode(static_cast<float>(code - of.zero_point) * of.scale);
  }
};

// The reciprocal and the product round separately, as in the original.
struct Int8RowQuantizer {
  struct Scale {
    float scale, reciprocal;
  };
  uint8_t* codes;
  float* scales;
  int8_t* zero_points;
  explicit Int8RowQuantizer(const qcts_problem& p)
      : codes(static_cast<uint8_t*>(out_plane(p, "qdata"))),
        scales(static_cast<float*>(out_plane(p, "scale"))),
        zero_points(static_cast<int8_t*>(out_plane(p, "zero_point"))) {}

  // (127 - -128) / 2 in the weight's dtype; at least float32's epsilon 2^-23.
  template <class T>
  QCTS_DEVICE Scale scale(int64_t, float largest) const {
    const float scale = round_to<T>(largest / 127.5f);
    const float clamped = scale < 0x1p-23f ? 0x1p-23f : scale;
    return {clamped, 1.0f / clamped};
  }
  // A NaN, which only a non-finite row gives, becomes 0.
  QCTS_DEVICE int8_t code(Scale of, float x) const {
    const float rounded = nearbyintf(x * of.reciprocal);
    if (!(rounded > -128)) return rounded <= -128 ? -128 : 0;
    return static_cast<int8_t>(rounded < 127 ? rounded : 127);
  }
  QCTS_DEVICE void store(int64_t n, Scale of) const {
    store_global(scales + n, bits_of(of.scale));
    store_global(zero_points + n, uint8_t{0});
  }
};

}  // namespace
}  // namespace qcts::sm80
