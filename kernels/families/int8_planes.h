// SPDX-License-Identifier: BSD-3-Clause
// Reads the planes of the int8 schemes with one scale per row, or one for all rows.
// The planes serve the vector variants of `linear`, which cut weights into their own blocks.
// Each struct has these members:
//   codes(n)             the k codes of a row
//   scale(n), zero(n)    `zero` is subtracted from a code; it is always 0 unless kHasZeros is true
#pragma once

#include <immintrin.h>

#include "kernels/families/entry.h"

namespace qcts {
namespace {

// For int8_row and int8_row_reduced.
struct TorchaoRows {
  static constexpr bool kHasZeros = true;
  int64_t k;
  const int8_t *qdata, *zero_point;
  const char* scales;
  explicit TorchaoRows(const qcts_problem& problem)
      : k(problem.k),
        qdata(static_cast<const int8_t*>(in_plane(problem, "qdata"))),
        zero_point(static_cast<const int8_t*>(in_plane(problem, "zero_point"))),
        scales(static_cast<const char*>(in_plane(problem, "scale"))) {}

  const int8_t* codes(int64_t n) const { return qdata + n * k; }
  int32_t zero(int64_t n) const { return zero_point[n]; }
  float scale(int64_t n) const {
    float value;
    std::memcpy(&value, scales + 4 * n, 4);
    return value;
  }
};

// For int8_tensor and int8_tensor_reduced.
struct TorchaoTensor : TorchaoRows {
  using TorchaoRows::TorchaoRows;
  int32_t zero(int64_t) const { return TorchaoRows::zero(0); }
  float scale(int64_t) const { return TorchaoRows::scale(0); }
};

// For tinyq: scales have the weight's dtype. W8A32 has zero points, but its forward does not read them.
struct TinyqRows {
  static constexpr bool kHasZeros = false;
  int64_t k;
  uint32_t dtype;
  const int8_t* int8_weights;
  const char* scales;
  explicit TinyqRows(const qcts_problem& problem)
      : k(problem.k),
        dtype(problem.w_dtype),
        int8_weights(static_cast<const int8_t*>(in_plane(problem, "int8_weights"))),
        scales(static_cast<const char*>(in_plane(problem, "scales"))) {}

  const int8_t* codes(int64_t n) const { return int8_weights + n * k; }
  static int32_t zero(int64_t) { return 0; }
  float scale(int64_t n) const {
    if (dtype == QCTS_F32) {
      float value;
      std::memcpy(&value, scales + 4 * n, 4);
      return value;
    }
    uint16_t bits;
    std::memcpy(&bits, scales + 2 * n, 2);
    if (dtype == QCTS_F16) return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};

// Calls put(k, column, code) for `columns` rows of the weight, starting at first_n.
// Takes 128 values of k at a time, so that source and destination stay in L1.
template <class Source, class Put>
void each_code(const Source& source, int64_t first_n, int64_t columns, const Put& put) {
  constexpr int64_t kChunk = 128;
  for (int64_t k0 = 0; k0 < source.k; k0 += kChunk)
    for (int64_t c = 0; c < columns; ++c) {
      const int8_t* row = source.codes(first_n + c);
      for (int64_t k = k0; k < source.k && k < k0 + kChunk; ++k) put(k, c, static_cast<uint8_t>(row[k]));
    }
}
// Copies codes so that the 64 columns of each k are adjacent.
template <class Source>
void copy_columns(const Source& source, int64_t first_n, int64_t columns, uint8_t* codes) {
  constexpr int64_t kColumnBytes = 64;
  each_code(source, first_n, columns,
            [=](int64_t k, int64_t column, uint8_t code) { codes[k * kColumnBytes + column] = code; });
}

// Copies the zeros (int32) and then the scales of `columns` rows of the weight, starting at first_n.
template <class Source>
void copy_row_parameters(const Source& source, int64_t first_n, int64_t columns, uint8_t* zeros,
                         uint8_t* scales) {
  for (int64_t c = 0; c < columns; ++c) {
    const int32_t zero = source.zero(first_n + c);
    const float scale = source.scale(first_n + c);
    std::memcpy(zeros + 4 * c, &zero, 4);
    std::memcpy(scales + 4 * c, &scale, 4);
  }
}

}  // namespace
}  // namespace qcts
