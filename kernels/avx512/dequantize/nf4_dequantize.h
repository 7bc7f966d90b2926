// SPDX-License-Identifier: BSD-3-Clause
// Converts blocks of NF4 to bfloat16, for the AVX-512 variant of dequantize. 64 elements cost 15 operations.
// kernels/avx2/dequantize/nf4_dequantize.h does the rest.
#pragma once

#include "kernels/avx2/dequantize/nf4_dequantize.h"
#include "kernels/avx512/dequantize/nibbles.h"

namespace qcts::avx512 {
namespace {

struct Nf4Words {
  static void dequantize_blocks(const float* values, const float* scales, int64_t blocks,
                                const uint8_t* pairs, bool past_caches, char* to) {
    const bool streams = past_caches && is_line(to);
    const __m512 codes = _mm512_load_ps(values);
    for (int64_t i = 0; i < blocks; ++i)
      look_up_words<true>(bf16_rounded(_mm512_mul_ps(codes, _mm512_set1_ps(scales[i]))), pairs + 32 * i, 64,
                          streams, to + 128 * i);
  }
};

}  // namespace
}  // namespace qcts::avx512
