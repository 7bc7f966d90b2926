// SPDX-License-Identifier: BSD-3-Clause
// Encodes 16-bit floats as NF4, for the AVX-512 variant of quantize, in 11 operations for 32 elements.
// Like kernels/avx2/quantize/nf4.h, it compares elements with the bounds times the scaler,
// but directly as bits. The eighth of the 15 bounds is the first one that is not negative.
// Elements beyond it are compared with the bounds after it, and all others with the bounds before it.
// As unsigned bits, the bounds before it are ordered by magnitude,
// so a small positive number is beyond none of them.
// In both cases, a place grows by 4, 2 and 1 whenever an element is beyond a bound.
// A place of 8 or more is the code. A place below 8 is 7 minus the code.
#pragma once

#include "kernels/avx2/quantize/nf4_quantize.h"
#include "kernels/avx512/quantize.h"
#include "kernels/avx512/reduce.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

struct WideNf4Ties {
  __m512 at;
  avx2::Nf4Floats halves;
};

[[maybe_unused]] WideNf4Ties wide_nf4_ties(const float* bounds) {
  float at[16] = {};
  for (int i = 0; i < 15; ++i) at[i] = avx2::nf4_tie(bounds[i]);
  return {_mm512_loadu_ps(at), avx2::nf4_ties(bounds)};
}

// The upper half of lane i holds the last element on the near side of bound i.
// An element beyond it has a code on the far side.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m512i wide_nf4_words(const WideNf4Ties& ties, float scaler) {
  if constexpr (kDtype == QCTS_F16) {
    const __m512i ordered = _mm512_castsi256_si512(avx2::nf4_words<kDtype>(ties.halves, scaler));
    const __m512i order =
        _mm512_slli_epi32(_mm512_setr_epi32(8, 0, 9, 1, 10, 2, 11, 3, 12, 4, 13, 5, 14, 6, 15, 7), 16);
    const __m512i negative = _mm512_setr_epi32(-1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_xor_si512(_mm512_permutexvar_epi16(order, ordered),
                            _mm512_and_si512(negative, _mm512_set1_epi16(INT16_MAX)));
  }
  return _mm512_castps_si512(_mm512_mul_ps(ties.at, _mm512_set1_ps(scaler)));
}

// Blocks whose elements go through the steps side by side. Each is a chain of 60 cycles.
// If blocks follow one another,
// they wait for each other in the queues of the processor and take 1.14 times as long (EPYC Zen 5).
constexpr int kNf4AtOnce = 4, kNf4Vectors = 2 * kNf4AtOnce;
constexpr int64_t kNf4Bytes = 2 * kNf4Block;

struct Nf4Places {
  __m512i of[kNf4Vectors];
};

// For the place of an element, `order` gives the bound with which it is compared.
[[gnu::always_inline]] inline void step_beyond(const __m512i* words, __m512i order, int16_t step,
                                               const char* const* from, Nf4Places* places) {
#pragma GCC unroll 8
  for (int i = 0; i < kNf4Vectors; ++i) {
    const __m512i bounds =
                      _mm512_permutexvar_epi16(places->of[i], _mm512_permutexvar_epi16(order, words[i / 2])),
                  x = _mm512_loadu_si512(from[i / 2] + i % 2 * 64);
    const __mmask32 beyond = _mm512_cmpgt_epu16_mask(x, bounds);
    places->of[i] = _mm512_mask_add_epi16(places->of[i], beyond, places->of[i], _mm512_set1_epi16(step));
  }
}

[[gnu::always_inline]] inline Nf4Places nf4_places(const __m512i* words, const char* const* from) {
  constexpr auto upper = [](int bound) { return 2 * bound + 1; };
  const __m512i eighth = _mm512_set1_epi16(static_cast<int16_t>(upper(7)));
  Nf4Places places;
#pragma GCC unroll 8
  for (int i = 0; i < kNf4Vectors; ++i) {
    const __m512i bound = _mm512_permutexvar_epi16(eighth, words[i / 2]),
                  x = _mm512_loadu_si512(from[i / 2] + i % 2 * 64);
    places.of[i] = _mm512_maskz_mov_epi16(_mm512_cmpgt_epi16_mask(x, bound), _mm512_set1_epi16(8));
  }
  const __m512i by_8 = _mm512_setr_epi32(upper(3), 0, 0, 0, upper(11), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i by_4 =
      _mm512_setr_epi32(upper(5), 0, upper(1), 0, upper(9), 0, upper(13), 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i by_2 = _mm512_setr_epi32(upper(6), upper(4), upper(2), upper(0), upper(8), upper(10),
                                         upper(12), upper(14), 0, 0, 0, 0, 0, 0, 0, 0);
  step_beyond(words, by_8, 4, from, &places);
  step_beyond(words, by_4, 2, from, &places);
  step_beyond(words, by_2, 1, from, &places);
  return places;
}

// Returns the codes of two blocks, two per byte. The even code is in the high nibble.
[[gnu::always_inline]] inline __m512i nf4_pairs(const __m512i* places) {
  const auto joined = [](__m512i a, __m512i b) {
    const __m512i codes = _mm512_set4_epi32(0x0F0E0D0C, 0x0B0A0908, 0x00010203, 0x04050607);
    return _mm512_maddubs_epi16(_mm512_shuffle_epi8(codes, _mm512_packus_epi16(a, b)),
                                _mm512_set1_epi16(0x0110));
  };
  return in_order_of_packs(_mm512_packus_epi16(joined(places[0], places[1]), joined(places[2], places[3])));
}

struct WideNf4 {
  // With 16 blocks, it takes 1.13 times as long,
  // because their scalers are a chain of operations before the first codes.
  static constexpr int64_t kTogether = 64;

  using Ties = WideNf4Ties;
  static Ties ties(const float* bounds) { return wide_nf4_ties(bounds); }

  // Returns one bit for each block, set if the scaler of the block is finite and not 0.
  template <uint32_t kDtype>
  static uint64_t find_scalers(const char* from, int64_t blocks, float* largest) {
    uint64_t plain = 0;
    for (int64_t first = 0; first < blocks; first += kLanes) {
      __m512i max[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        const char* at = from + (first + i < blocks ? first + i : first) * kNf4Bytes;
        max[i] = UnsignedMax()(magnitudes(at), magnitudes(at + 64));
      }
      const __m512 sixteen = max_of_sixteen<kDtype>(max, UnsignedMax());
      _mm512_store_ps(largest + first, sixteen);
      const __mmask16 finite = _mm512_cmp_ps_mask(sixteen, _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ),
                      above = _mm512_cmp_ps_mask(sixteen, _mm512_setzero_ps(), _CMP_GT_OQ);
      plain |= uint64_t{static_cast<uint16_t>(finite & above)} << first;
    }
    return plain;
  }

  template <uint32_t kDtype>
  static void quantize(const Nf4Task& task, const Ties& ties, const char* from, int64_t blocks,
                       bool past_caches, uint8_t* pairs, float* scalers) {
    alignas(64) float largest[kTogether];
    const uint64_t plain = find_scalers<kDtype>(from, blocks, largest);
    for (int64_t i = 0; i < blocks; i += kNf4AtOnce) {
      const char* at[kNf4AtOnce];
      __m512i words[kNf4AtOnce];
#pragma GCC unroll 4
      for (int64_t j = 0; j < kNf4AtOnce; ++j) {
        const int64_t block = i + j < blocks ? i + j : i;
        at[j] = from + block * kNf4Bytes;
        words[j] = wide_nf4_words<kDtype>(ties, largest[block]);
      }
      avx2::fetch_rows<kNf4AtOnce * kNf4Bytes>(from + i * kNf4Bytes, kTogether * kNf4Bytes);
      const Nf4Places places = nf4_places(words, at);
      uint8_t* to = pairs + i * (kNf4Block / 2);
      const bool streams = past_caches && is_line(to);
      if (i + kNf4AtOnce <= blocks) {
        store64(to, nf4_pairs(places.of), streams);
        store64(to + 64, nf4_pairs(places.of + 4), streams);
      } else {
        char some[128];
        _mm512_storeu_si512(some, nf4_pairs(places.of));
        _mm512_storeu_si512(some + 64, nf4_pairs(places.of + 4));
        std::memcpy(to, some, static_cast<size_t>((blocks - i) * (kNf4Block / 2)));
      }
    }
    std::memcpy(scalers, largest, static_cast<size_t>(blocks) * sizeof(float));
    const uint64_t all = ~uint64_t{0} >> (kTogether - blocks);
    for (uint64_t odd = ~plain & all; odd != 0; odd &= odd - 1) {
      const int i = __builtin_ctzll(odd);
      avx2::quantize_odd_nf4_block(task, from + i * kNf4Bytes, largest[i], pairs + i * (kNf4Block / 2));
    }
  }
};

}  // namespace
}  // namespace qcts::avx512
