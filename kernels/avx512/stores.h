// SPDX-License-Identifier: BSD-3-Clause
// Stores results one cache line at a time, for the AVX-512 variants of quantize and dequantize.
// kernels/avx2/stores.h says which results are streamed.
#pragma once

#include "kernels/avx2/stores.h"

namespace qcts::avx512 {
namespace {

// True if results may be streamed 64 bytes at a time, starting at `to`.
[[gnu::always_inline]] inline bool is_line(const void* to) {
  return reinterpret_cast<uintptr_t>(to) % 64 == 0;
}

[[gnu::always_inline]] inline void store64(void* to, __m512i value, bool streams) {
  streams ? _mm512_stream_si512(static_cast<__m512i*>(to), value) : _mm512_storeu_si512(to, value);
}

}  // namespace
}  // namespace qcts::avx512
