// SPDX-License-Identifier: BSD-3-Clause
// int8 weights with a scale and a zero point for each group of a row: y = sum over groups of scale * sum(x *
// (q - zero_point)), plus bias. A difference of codes has nine bits, so packing stores it in two bytes. A
// block of 64 columns holds, for each group, 128 bytes for each k, then 64 scales (float32).
#include "kernels/avx2/linear.h"

namespace {

using namespace qcts::avx2;

struct Int8Groups {
  static constexpr int kStep = 1, kWide = 1, kBytesPerK = 2 * kColumns, kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + vector * 2 * kLanes));
    out[0] = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(words));
  }

  static void scales(const qcts_problem&, const uint8_t* at, float* scale, float*) {
    std::memcpy(scale, at, 4 * kColumns);
  }

  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Int8Groups>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const int8_t*>(qcts::in_plane(p, "qdata"));
    const auto* zero_points = static_cast<const int8_t*>(qcts::in_plane(p, "zero_point"));
    const auto* plane = static_cast<const char*>(qcts::in_plane(p, "scale"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns, groups = p.k / p.group;
    for (int64_t g = 0; g < groups; ++g, out += group_bytes<Int8Groups>(p)) {
      uint8_t* scales = out + padded_group<Int8Groups>(p) * kBytesPerK;
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t n = first_n + c, at = n * groups + g;
        std::memcpy(scales + 4 * c, plane + 4 * at, 4);
        for (int64_t k = 0; k < p.group; ++k) {
          const auto word = static_cast<int16_t>(qdata[n * p.k + g * p.group + k] - zero_points[at]);
          std::memcpy(out + k * kBytesPerK + 2 * c, &word, 2);
        }
      }
    }
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_group_avx2 = linear_of<qcts_kernel_linear_int8_group_avx2,
                                                                 Int8Groups>(
    "int8_group",
    "64 columns per block, words become floats in registers up to m = 4, else in a panel; bound by reading "
    "weights, then by fma",
    qcts::supports_problem<qcts_kernel_linear_int8_group_avx2>);
