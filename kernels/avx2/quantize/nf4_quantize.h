// SPDX-License-Identifier: BSD-3-Clause
// Quantizes NF4 for the AVX2 variants, in two passes over some blocks, which stay in cache.
// The first pass computes scalers. The second computes codes by bounds (kernels/avx2/quantize/nf4.h).
// In a block of zeros, or without a finite scaler, quotients are zero or NaN.
#pragma once

#include "kernels/avx2/quantize/blocks.h"
#include "kernels/avx2/quantize/nf4.h"
#include "kernels/avx2/stores.h"

namespace qcts::avx2 {
namespace {

[[maybe_unused]] bool is_plain_scaler(float scaler) { return scaler > 0 && scaler - scaler == 0; }

[[maybe_unused]] [[gnu::noinline]] void quantize_odd_nf4_block(const Nf4Task& task, const char* from,
                                                               float scaler, uint8_t* pairs) {
  const int64_t bytes = dtype_bytes(task.from.dtype);
  const auto code = [&](int64_t i) {
    const float quotient = _mm256_cvtss_f32(load_some(task.from.dtype, from + i * bytes, 1)) / scaler;
    return quotient == 0 ? 7 : 0;
  };
  for (int64_t i = 0; i < kNf4Block; i += 2) pairs[i / 2] = static_cast<uint8_t>(code(i) << 4 | code(i + 1));
}

// Writes the codes of blocks whose scalers are known.
// `encode(i, at, to)` encodes block i if it is an ordinary block.
template <class Encode>
[[gnu::always_inline]] inline void for_each_block(const Nf4Task& task, const char* from, int64_t blocks,
                                                  const float* scalers, uint8_t* pairs,
                                                  const Encode& encode) {
  const int64_t block_bytes = kNf4Block * dtype_bytes(task.from.dtype);
  for (int64_t i = 0; i < blocks; ++i) {
    const char* at = from + i * block_bytes;
    uint8_t* to = pairs + i * (kNf4Block / 2);
    is_plain_scaler(scalers[i]) ? encode(i, at, to) : quantize_odd_nf4_block(task, at, scalers[i], to);
  }
}

[[maybe_unused]] __m256i load_words(const char* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Encodes blocks of a 16-bit dtype. The AVX-512 variant replaces this step.
struct Nf4Narrow {
  // Number of blocks whose scalers and tables are computed together, before the codes.
  // Each block is a chain of operations. One block at a time took 1.4 times as long (bfloat16, EPYC Zen 4).
  static constexpr int64_t kTogether = 16;

  using Ties = Nf4Floats;
  static Ties ties(const float* bounds) { return nf4_ties(bounds); }

  template <uint32_t kDtype>
  static void quantize(const Nf4Task& task, const Ties& ties, const char* from, int64_t blocks,
                       bool past_caches, uint8_t* pairs, float* scalers) {
    alignas(32) uint16_t tables[kTogether][16];
    for (int64_t i = 0; i < blocks; ++i) {
      const char* at = from + i * 2 * kNf4Block;
      const uint32_t bits =
          largest_bits(load_words(at), load_words(at + 32), load_words(at + 64), load_words(at + 96));
      scalers[i] = kDtype == QCTS_F16 ? _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(bits))))
                                      : __builtin_bit_cast(float, bits << 16);
      _mm256_store_si256(reinterpret_cast<__m256i*>(tables[i]), nf4_words<kDtype>(ties, scalers[i]));
    }
    for_each_block(task, from, blocks, scalers, pairs, [&](int64_t i, const char* at, uint8_t* to) {
      const auto* table = reinterpret_cast<const __m128i*>(tables[i]);
      const Nf4Words words = {_mm256_broadcastsi128_si256(_mm_load_si128(table)),
                              _mm256_broadcastsi128_si256(_mm_load_si128(table + 1))};
      const auto codes = [&](int64_t offset) { return nf4_codes16(words, load_words(at + offset)); };
      store_nf4_pairs(codes(0), codes(32), codes(64), codes(96), past_caches, to);
    });
  }
};

[[maybe_unused]] void quantize_nf4_floats(const Nf4Task& task, const Nf4Floats& floats, const char* from,
                                          int64_t blocks, bool past_caches, uint8_t* pairs, float* scalers) {
  for (int64_t i = 0; i < blocks; ++i) {
    const Block low = load_block(QCTS_F32, from + i * 4 * kNf4Block),
                high = load_block(QCTS_F32, from + i * 4 * kNf4Block + 128);
    const __m256i max = _mm256_max_epu32(larger_magnitudes(low, 0), larger_magnitudes(low, 2));
    scalers[i] = largest_of8(
        _mm256_max_epu32(max, _mm256_max_epu32(larger_magnitudes(high, 0), larger_magnitudes(high, 2))));
  }
  for_each_block(task, from, blocks, scalers, pairs, [&](int64_t i, const char* at, uint8_t* to) {
    const __m256 divisor = _mm256_set1_ps(scalers[i]);
    const auto eight = [&](int64_t k) {
      return nf4_codes8(floats, _mm256_div_ps(load8(QCTS_F32, at + 4 * k), divisor));
    };
    const auto sixteen = [&](int64_t k) {
      return _mm256_permute4x64_epi64(_mm256_packs_epi32(eight(k), eight(k + 8)), 0xD8);
    };
    store_nf4_pairs(sixteen(0), sixteen(16), sixteen(32), sixteen(48), past_caches, to);
  });
}

// `encode(from, blocks, past_caches, pairs, scalers)` writes the codes and scalers
// of at most kTogether blocks.
template <int64_t kTogether, class Encode>
void for_each_run(const Nf4Task& task, int64_t first, int64_t last, const Encode& encode) {
  const bool past_caches = is_past_caches(task.pairs, task.from.rows * task.k / 2, kNf4Block / 2);
  const int64_t block_bytes = kNf4Block * dtype_bytes(task.from.dtype);
  char gathered[4 * kNf4Block];
  while (first < last) {
    const Nf4Run run = nf4_run(task, first, last, gathered);
    for (int64_t i = 0; i < run.blocks; i += kTogether)
      encode(run.data + i * block_bytes, run.blocks - i < kTogether ? run.blocks - i : kTogether, past_caches,
             task.pairs + (first + i) * (kNf4Block / 2), task.scalers + first + i);
    first += run.blocks;
  }
  _mm_sfence();
}

template <class Narrow, uint32_t kDtype>
void quantize_narrow_nf4(const Nf4Task& task, const float* bounds, int64_t first, int64_t last) {
  const typename Narrow::Ties ties = Narrow::ties(bounds);
  for_each_run<Narrow::kTogether>(
      task, first, last,
      [&](const char* from, int64_t blocks, bool past_caches, uint8_t* pairs, float* scalers) {
        Narrow::template quantize<kDtype>(task, ties, from, blocks, past_caches, pairs, scalers);
      });
}

template <class Narrow>
void quantize_nf4_blocks(const Nf4Task& task, int64_t first, int64_t last) {
  float bounds[15];
  nf4_bounds(task.from.dtype, task.values, bounds);
  if (task.from.dtype == QCTS_F16) return quantize_narrow_nf4<Narrow, QCTS_F16>(task, bounds, first, last);
  if (task.from.dtype == QCTS_BF16) return quantize_narrow_nf4<Narrow, QCTS_BF16>(task, bounds, first, last);
  const Nf4Floats floats = nf4_floats(bounds);
  for_each_run<Nf4Narrow::kTogether>(
      task, first, last,
      [&](const char* from, int64_t blocks, bool past_caches, uint8_t* pairs, float* scalers) {
        quantize_nf4_floats(task, floats, from, blocks, past_caches, pairs, scalers);
      });
}

// Rounds to nearest even; NaN becomes 0.
[[maybe_unused]] __m256i scaler_codes8(__m256 value) {
  const __m256 number = _mm256_cmp_ps(value, value, _CMP_ORD_Q);
  const __m256 kept = _mm256_min_ps(_mm256_max_ps(value, _mm256_set1_ps(-128)), _mm256_set1_ps(127));
  return _mm256_cvtps_epi32(_mm256_and_ps(kept, number));
}

[[maybe_unused]] void quantize_nf4_scalers(const Nf4Task& task, int64_t first, int64_t last) {
  const uint32_t dtype = task.from.dtype;
  const __m256 mean = _mm256_set1_ps(task.mean);
  for (int64_t block = first; block < last; ++block) {
    const float* scalers = task.scalers + block * kNf4Scalers;
    int8_t* codes = task.scaler_codes + block * kNf4Scalers;
    float centred[kNf4Scalers];
    __m256i max = _mm256_setzero_si256();
    for (int64_t i = 0; i < kNf4Scalers; i += kLanes) {
      const __m256 eight = round8(dtype, _mm256_sub_ps(_mm256_loadu_ps(scalers + i), mean));
      _mm256_storeu_ps(centred + i, eight);
      max =
          _mm256_max_epu32(max, _mm256_and_si256(_mm256_castps_si256(eight), _mm256_set1_epi32(0x7FFFFFFF)));
    }
    const float largest = largest_of8(max);
    const float factor = round_once(dtype, round_once(dtype, 1 / round_once(dtype, 2 * largest)) * 256);
    store_some(dtype, task.factors + block * dtype_bytes(dtype), _mm256_set1_ps(factor), 1);
    const auto eight = [&](int64_t i) {
      return scaler_codes8(
          round8(dtype, _mm256_mul_ps(_mm256_loadu_ps(centred + i), _mm256_set1_ps(factor))));
    };
    for (int64_t i = 0; i < kNf4Scalers; i += 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i),
                          narrow_to_bytes(eight(i), eight(i + 8), eight(i + 16), eight(i + 24)));
  }
}

template <class Narrow>
void quantize_nf4_problem(const qcts_problem* p) {
  quantize_nf4(*p, quantize_nf4_blocks<Narrow>, quantize_nf4_scalers);
}

}  // namespace
}  // namespace qcts::avx2
