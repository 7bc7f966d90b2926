// SPDX-License-Identifier: BSD-3-Clause
// Stores results, for the AVX2 variants of quantize, dequantize, pack and unpack.
// A result larger than the caches of a core is streamed.
// Such a result is not read soon, and its cache lines need not be fetched before they are written.
// On one thread of an EPYC Zen 4, this makes dequantize of 4096 x 4096 1.07 to 1.27 times as fast,
// quantize 1.11 to 1.17 times, pack 1.8 to 2.5 times and unpack 3 times.
#pragma once

#include <immintrin.h>

#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kPastCachesBytes = 2 << 20;

// True if `bytes` bytes at `to` should be streamed.
// The bytes are written 32 at a time, in steps of step_bytes. Streaming needs alignment.
[[maybe_unused]] bool is_past_caches(const void* to, int64_t bytes, int64_t step_bytes) {
  return bytes > kPastCachesBytes && step_bytes % 32 == 0 && reinterpret_cast<uintptr_t>(to) % 32 == 0;
}
// Does the same for dequantize, where each parameter serves `group` elements of a row.
[[maybe_unused]] bool is_past_caches(const qcts_problem& p, int64_t group) {
  const int64_t elem_bytes = dtype_bytes(p.w_dtype);
  return is_past_caches(p.y, p.n * p.k * elem_bytes, group * elem_bytes) && p.ldy_bytes % 32 == 0;
}

[[gnu::always_inline]] inline void store32(void* to, __m256i value, bool past_caches) {
  auto* at = static_cast<__m256i*>(to);
  past_caches ? _mm256_stream_si256(at, value) : _mm256_storeu_si256(at, value);
}

// Calls kRows, then makes the streamed lines visible to other threads.
template <Rows kRows>
void fenced(const qcts_problem& p, int64_t first, int64_t last) {
  kRows(p, first, last);
  _mm_sfence();
}

}  // namespace
}  // namespace qcts::avx2
