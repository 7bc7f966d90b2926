// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of fp8_sparse24, for the AVX2 variants. Results equal those of kernels/scalar/sparse24.h.
// kernels/avx2/quantize/float8_bands.h encodes a part of a row.
// Then the two nonzero codes of each chunk are gathered, 32 codes at a time. Encoding limits the speed.
#pragma once

#include "kernels/avx2/quantize/float8_bands.h"
#include "kernels/avx2/sparse24.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kPartElems = 512;  // codes of a part; they stay in L1

// Compresses 32 codes at once; wider vectors take more.
// `faults` collects the chunks with too many nonzero codes.
struct Compress24 {
  static constexpr int64_t kCodes = 32;
  using Faults = __m256i;
  static Faults none() { return _mm256_setzero_si256(); }
  static Faults either(Faults a, Faults b) { return _mm256_or_si256(a, b); }
  static bool any(Faults faults) { return _mm256_movemask_epi8(faults) != 0; }
  static Faults compress(const uint8_t* codes, uint8_t* values, uint8_t* metadata) {
    return compress24(_mm256_load_si256(reinterpret_cast<const __m256i*>(codes)), values, metadata);
  }
};

// Compresses `count` codes, a multiple of 8. Zeros follow them up to a multiple of kCodes.
// Returns false if a chunk has too many nonzero codes.
template <class Compress>
bool compress_part(const uint8_t* codes, int64_t count, uint8_t* values, uint8_t* metadata) {
  constexpr int64_t kCodes = Compress::kCodes;
  auto faults = Compress::none();
  int64_t k = 0;
  for (; k + kCodes <= count; k += kCodes)
    faults = Compress::either(faults, Compress::compress(codes + k, values + k / 2, metadata + k / 8));
  if (k == count) return !Compress::any(faults);
  uint8_t two[kCodes / 2], places[kCodes / 8];
  faults = Compress::either(faults, Compress::compress(codes + k, two, places));
  std::memcpy(values + k / 2, two, static_cast<size_t>((count - k) / 2));
  std::memcpy(metadata + k / 8, places, static_cast<size_t>((count - k) / 8));
  return !Compress::any(faults);
}

template <class Parts, class Compress>
bool quantize_sparse24_rows(const Sparse24Task& task, int64_t first, int64_t last) {
  const Float8Task& dense = task.dense;
  const Float8Codes plain = plain_float8_codes(dense);
  alignas(64) uint8_t codes[kPartElems];
  for (int64_t row = first; row < last; ++row) {
    const float scale = float8_scale(
        dense,
        float_of_bits(dense.from.dtype, Parts::largest_bits(dense.from.dtype, dense.from.row(row), dense.k)));
    store_scale(dense, row, scale);
    for (int64_t k = 0; k < dense.k; k += kPartElems) {
      const int64_t count = dense.k - k < kPartElems ? dense.k - k : kPartElems, at = row * dense.k + k;
      quantize_float8_part<Parts>(dense, plain, row, k, count, scale, false, codes);
      std::memset(codes + count, 0, static_cast<size_t>(-count & (Compress::kCodes - 1)));
      if (!compress_part<Compress>(codes, count, task.values + at / 2, task.metadata + at / 8)) return false;
    }
  }
  return true;
}

template <const qcts_kernel& kKernel, class Parts, class Compress>
qcts_status quantize_sparse24_problem(const qcts_problem* p) {
  if (check_run(kKernel, p) != QCTS_OK) return QCTS_INVALID;
  return quantize_sparse24(*p, quantize_sparse24_rows<Parts, Compress>);
}

}  // namespace
}  // namespace qcts::avx2
