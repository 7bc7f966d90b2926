// SPDX-License-Identifier: BSD-3-Clause
// Converts groups of float8 codes to 16-bit dtypes by tables, for the AVX-512 variants of dequantize.
// kernels/avx2/dequantize/float8_dequantize.h does the rest.
#pragma once

#include "kernels/avx2/dequantize/float8_dequantize.h"
#include "kernels/avx512/dequantize/float8_table.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

struct Float8Tables {
  template <Float8 kFormat>
  static void scale_groups(uint32_t dtype, const uint8_t* codes, int64_t groups, int64_t length,
                           const void* scales, bool past_caches, char* to) {
    constexpr int64_t kWorthATable = 128;  // min. number of codes with one scale; a table takes 80 operations
    if (dtype == QCTS_F32 || length < kWorthATable)
      return avx2::scale_float_groups<kFormat>(dtype, codes, groups, length, scales, past_caches, to);
    const bool streams = past_caches && is_line(to);
    for (int64_t g = 0; g < groups; ++g, codes += length, to += 2 * length) {
      const Float8Words words = float8_words<kFormat>(dtype, avx2::one_element(QCTS_F32, scales, g));
      int64_t k = 0;
      for (; k + 32 <= length; k += 32) store64(to + 2 * k, look_up_float8(words, codes + k), streams);
      if (k == length) continue;
      uint8_t rest[32] = {};
      char values[64];
      std::memcpy(rest, codes + k, static_cast<size_t>(length - k));
      store64(values, look_up_float8(words, rest), false);
      std::memcpy(to + 2 * k, values, static_cast<size_t>(2 * (length - k)));
    }
  }
};

}  // namespace
}  // namespace qcts::avx512
