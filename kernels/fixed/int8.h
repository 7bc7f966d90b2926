// SPDX-License-Identifier: BSD-3-Clause
// 8-bit codes with a scale and a zero point for each row, for kernels/fixed/linear.h.
// A block begins with 64 offsets (int32) and 64 scales (float32). A step is 4 values of k.
// If the MicroKernel multiplies words, a step is two pairs of k,
// and a column has two adjacent bytes in each pair.
// If it multiplies unsigned bytes, a column has 4 adjacent bytes.
// Each byte is then the code plus 128, and the offset is also raised by 128.
#pragma once

#include "kernels/families/int8_planes.h"
#include "kernels/fixed/linear.h"

namespace qcts::fixed {
namespace {

// The largest sum of a part, including the share of an offset of 255, fits into int32.
static_assert(avx2::kPartK * 255 * static_cast<int64_t>(avx2::kMaxFixed) < INT32_MAX);

// Source is one of the structs of kernels/families/int8_planes.h.
template <class Source, class Dots>
struct Int8Rows {
  using MicroKernel = Dots;
  static constexpr bool kWords = MicroKernel::kValues == FixedValues::words;
  static constexpr int kStepK = 4, kSideBySide = kWords ? 2 : 4;  // number of adjacent bytes of a column
  static constexpr bool kHasZeros = false, kLateScales = true;
  static constexpr int64_t kHeaderBytes = 8 * kColumns;
  struct Buffer {};

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t tail_bytes(const qcts_problem&) { return 0; }
  static __m256i offsets(const uint8_t* header, int n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(header + 4 * n));
  }
  static __m256i minus_offsets(const uint8_t* header, int n, int32_t times) {
    return _mm256_mullo_epi32(offsets(header, n), _mm256_set1_epi32(-times));
  }
  static Scales scales(const qcts_problem&, const uint8_t* header, const uint8_t*, Buffer&) {
    return {reinterpret_cast<const float*>(header + 4 * kColumns), nullptr};
  }
  static int64_t place(int64_t k, int64_t column) {
    return k / kSideBySide * kSideBySide * kColumns + column * kSideBySide + k % kSideBySide;
  }
  static __m256i codes(const uint8_t* at, int64_t k, int vector) {
    const uint8_t* from = at + (k / kSideBySide * kColumns + vector * kLanes) * kSideBySide;
    if (kWords) {
      const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      return _mm256_madd_epi16(_mm256_cvtepi8_epi16(pairs), _mm256_set1_epi32(k % 2 == 0 ? 1 : 1 << 16));
    }
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(8 * k));
    const __m256i fours = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm256_and_si256(_mm256_srl_epi32(fours, shift), _mm256_set1_epi32(255));
  }

  static void pack_block(const qcts_problem& p, const Layout&, int64_t first_n, uint8_t* out) {
    const Source source(p);
    const int64_t columns = std::min<int64_t>(p.n - first_n, kColumns);
    copy_row_parameters(source, first_n, columns, out, out + 4 * kColumns);
    for (int64_t c = 0; !kWords && c < columns; ++c) {
      int32_t offset;
      std::memcpy(&offset, out + 4 * c, 4);
      offset += 128;
      std::memcpy(out + 4 * c, &offset, 4);
    }
    each_code(source, first_n, columns, [=](int64_t k, int64_t column, uint8_t code) {
      out[kHeaderBytes + place(k, column)] = kWords ? code : code ^ 128;
    });
  }
};

}  // namespace
}  // namespace qcts::fixed
