// Bands of float8 weights and activations, for the AVX2 variants and for nothing else: every function has
// internal linkage. Two passes over a block that stays in cache. Eight codes cost one division, 5 cycles of
// its own unit, and some 14 operations beside it, about what reading and writing them takes.
#pragma once

#include "kernels/avx2_blocks.h"
#include "kernels/float8_scales.h"

namespace qcts::avx2 {
namespace {

// Scales that are zero or not finite make quotients that are NaN.
[[maybe_unused]] bool is_plain_scale(float scale) { return scale > 0 && scale - scale == 0; }

template <SmallFloat kFormat, uint32_t kDtype>
void float8_codes(const char* from, int64_t count, float plain_scale, uint8_t* codes) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const __m256 scale = _mm256_set1_ps(plain_scale);
  const auto quotients = [&](const Block& x) {
    return Block{{_mm256_div_ps(x.part[0], scale), _mm256_div_ps(x.part[1], scale),
                  _mm256_div_ps(x.part[2], scale), _mm256_div_ps(x.part[3], scale)}};
  };
  int64_t k = 0;
  for (; k + 32 <= count; k += 32)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k),
                        small_codes<kFormat>(quotients(load_block(kDtype, from + k * kBytes))));
  for (; k < count; ++k) {
    const float x = _mm256_cvtss_f32(load_some(kDtype, from + k * kBytes, 1));
    codes[k] = float8_code(kFormat, x, plain_scale);
  }
}

using Float8Codes = void (*)(const char* from, int64_t count, float plain_scale, uint8_t* codes);

template <SmallFloat kFormat>
Float8Codes float8_codes_of(uint32_t dtype) {
  if (dtype == QCTS_F32) return float8_codes<kFormat, QCTS_F32>;
  return dtype == QCTS_F16 ? float8_codes<kFormat, QCTS_F16> : float8_codes<kFormat, QCTS_BF16>;
}

[[maybe_unused]] void quantize_float8_row(const Float8Task& task, Float8Codes plain, int64_t row, int64_t k,
                                          float scale) {
  const int64_t elem_bytes = dtype_bytes(task.from.dtype);
  const char* from = task.from.row(row) + k * elem_bytes;
  uint8_t* codes = task.codes + row * task.k + k;
  if (is_plain_scale(scale)) {
    plain(from, task.block_cols, scale, codes);
    return;
  }
  for (int64_t i = 0; i < task.block_cols; ++i)
    codes[i] = float8_code(task.format,
                           _mm256_cvtss_f32(load_some(task.from.dtype, from + i * elem_bytes, 1)), scale);
}

[[maybe_unused]] void quantize_float8_bands(const Float8Task& task, int64_t first, int64_t last) {
  const Float8Codes plain = task.format == SmallFloat::e4m3
                                ? float8_codes_of<SmallFloat::e4m3>(task.from.dtype)
                                : float8_codes_of<SmallFloat::e5m2>(task.from.dtype);
  const int64_t elem_bytes = dtype_bytes(task.from.dtype);
  if (task.one_scale()) {
    for (int64_t row = first; row < last; ++row)
      quantize_float8_row(task, plain, row, 0, load_scale(task, 0));
    return;
  }
  for (int64_t band = first; band < last; ++band) {
    const int64_t begin = band * task.block_rows, end = begin + task.block_rows;
    for (int64_t k = 0; k < task.k; k += task.block_cols) {
      uint32_t bits = 0;
      for (int64_t row = begin; row < end; ++row) {
        const uint32_t mine =
            largest_magnitude_bits(task.from.dtype, task.from.row(row) + k * elem_bytes, task.block_cols);
        bits = mine > bits ? mine : bits;
      }
      const float scale = float8_scale(task, float_of_bits(task.from.dtype, bits));
      store_scale(task, band * task.across() + k / task.block_cols, scale);
      for (int64_t row = begin; row < end; ++row) quantize_float8_row(task, plain, row, k, scale);
    }
  }
}

[[maybe_unused]] void quantize_float8_problem(const qcts_problem* p) {
  quantize_float8(*p, largest_of, quantize_float8_bands);
}

}  // namespace
}  // namespace qcts::avx2
