// SPDX-License-Identifier: BSD-3-Clause
// Decodes e4m3 by tables,
// for the variants of `linear` that multiply pairs of bfloat16, on processors with VPERMI2B.
// The instruction reads the low seven bits of a code.
// So two tables of 128 bytes hold the halves of all magnitudes; the sign is added to the high half.
// 64 codes take 5 operations. In kernels/bf16/codes.h, they take 14.
// One thread of an EPYC Zen 4 took these times for 1024 x 4096 in cache, first with shifts, then with tables:
//   float8: m = 1: 170 and 93 us; m = 2: 196 and 137 us; m = 4: 250 and 157 us
//   MXFP8: m = 1: 173 and 101 us; m = 4: 270 and 195 us
//   more rows, which share decoded weights: m = 8: 444 and 391 us; m = 16: 718 and 665 us
#pragma once

#include <array>

#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/codes.h"

namespace qcts::avx512vbmi {
namespace {

using bf16::kLanes;

constexpr uint16_t bf16_of_e4m3(int magnitude) {
  return magnitude < 8 ? bf16::ShiftedE4m3::kSubnormals[magnitude]
                       : static_cast<uint16_t>((magnitude << 4) + 0x3C00);
}
struct Halves {
  alignas(64) std::array<uint8_t, 128> low, high;
};
constexpr Halves kHalves = [] {
  Halves halves = {};
  for (int i = 0; i < 128; ++i) halves.low[i] = bf16_of_e4m3(i) & 255, halves.high[i] = bf16_of_e4m3(i) >> 8;
  return halves;
}();

struct TableE4m3 {
  // Returns the high halves of the 64 codes of two vectors, interleaved with their low halves.
  // Every 16 bytes hold 8 bytes of each.
  [[gnu::always_inline]] static __m512i pairs(const uint8_t* at, int vector) {
    const __m512i codes = _mm512_loadu_si512(at + vector / 2 * 64);
    const __m512i low = look_up(kHalves.low, codes), high = look_up(kHalves.high, codes);
    // high | (codes & sign)
    const __m512i whole = _mm512_ternarylogic_epi32(high, codes, _mm512_set1_epi8(-128), 0xF8);
    return vector % 2 == 0 ? _mm512_unpacklo_epi8(low, whole) : _mm512_unpackhi_epi8(low, whole);
  }
  static int64_t place(int64_t column, int64_t k) {
    const int64_t vector = column / kLanes, word = 2 * (column % kLanes) + k % 2;
    return vector / 2 * 64 + word / 8 * 16 + vector % 2 * 8 + word % 8;
  }

 private:
  [[gnu::always_inline]] static __m512i look_up(const std::array<uint8_t, 128>& table, __m512i codes) {
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(table.data()), codes,
                                    _mm512_loadu_si512(table.data() + 64));
  }
};

struct Pairs : avx512bf16::Pairs {
  static constexpr const char* kVariant = "avx512vbmi";
};

}  // namespace
}  // namespace qcts::avx512vbmi
