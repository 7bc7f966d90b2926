// Rows of fp8_sparse24, for the AVX2 variants of quantize and for nothing else: every function has internal
// linkage. As quantize/fp8_sparse24_scalar.cc: codes of a part of a row as kernels/avx2/float8_bands.h makes
// them, of which the two that are not zero are gathered 32 at a time; bound by making the codes.
#pragma once

#include "kernels/avx2/float8_bands.h"
#include "kernels/avx2/sparse24.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kPartElems = 512;  // stay in the first cache

// count: a multiple of 8, followed by zeros up to one of 32. Has kTooMany where a chunk does.
[[maybe_unused]] __m256i compress_part(const uint8_t* codes, int64_t count, uint8_t* values,
                                       uint8_t* metadata) {
  const auto thirty_two = [&](int64_t k, uint8_t* two, uint8_t* places) {
    return compress24(_mm256_load_si256(reinterpret_cast<const __m256i*>(codes + k)), two, places);
  };
  __m256i faults = _mm256_setzero_si256();
  int64_t k = 0;
  for (; k + 32 <= count; k += 32)
    faults = _mm256_or_si256(faults, thirty_two(k, values + k / 2, metadata + k / 8));
  if (k == count) return faults;
  uint8_t two[16], places[4];
  faults = _mm256_or_si256(faults, thirty_two(k, two, places));
  std::memcpy(values + k / 2, two, static_cast<size_t>((count - k) / 2));
  std::memcpy(metadata + k / 8, places, static_cast<size_t>((count - k) / 8));
  return faults;
}

template <class Parts>
bool quantize_sparse24_rows(const Sparse24Task& task, int64_t first, int64_t last) {
  const Float8Task& dense = task.dense;
  const Float8Codes plain = plain_float8_codes(dense);
  alignas(32) uint8_t codes[kPartElems];
  for (int64_t row = first; row < last; ++row) {
    const float scale = float8_scale(
        dense,
        float_of_bits(dense.from.dtype, Parts::largest_bits(dense.from.dtype, dense.from.row(row), dense.k)));
    store_scale(dense, row, scale);
    for (int64_t k = 0; k < dense.k; k += kPartElems) {
      const int64_t count = dense.k - k < kPartElems ? dense.k - k : kPartElems, at = row * dense.k + k;
      quantize_float8_part<Parts>(dense, plain, row, k, count, scale, false, codes);
      std::memset(codes + count, 0, static_cast<size_t>(-count & 31));
      const __m256i faults = compress_part(codes, count, task.values + at / 2, task.metadata + at / 8);
      if (_mm256_movemask_epi8(faults) != 0) return false;
    }
  }
  return true;
}

template <const qcts_kernel& kKernel, class Parts>
qcts_status quantize_sparse24_problem(const qcts_problem* p) {
  if (check_run(kKernel, p) != QCTS_OK) return QCTS_INVALID;
  return quantize_sparse24(*p, quantize_sparse24_rows<Parts>);
}

}  // namespace
}  // namespace qcts::avx2
