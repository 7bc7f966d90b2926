// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/machine/peak.h"

#include <algorithm>
#include <iterator>

#include "kernels/machine/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace qcts {
namespace {

#if defined(__x86_64__)

// Every iteration does kChains independent multiply-adds: more than latency times throughput of any core so
// far (4 cycles, two a cycle). The empty asm keeps the compiler from merging iterations.
constexpr int kChains = 12;
constexpr int kInt4Terms = 8;

__attribute__((target("avx2,fma"))) void fma_avx2(uint64_t turns) {
  __m256 sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(0x1p-20f), y = _mm256_set1_ps(0x1p-20f);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sums[i] = _mm256_fmadd_ps(x, y, sums[i]);
      __asm__ volatile("" : "+x"(sums[i]));
    }
}

__attribute__((target("avx512f"))) void fma_avx512(uint64_t turns) {
  __m512 sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 x = _mm512_set1_ps(0x1p-20f), y = _mm512_set1_ps(0x1p-20f);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sums[i] = _mm512_fmadd_ps(x, y, sums[i]);
      __asm__ volatile("" : "+v"(sums[i]));
    }
}

// Words in pairs, then an addition: for x in 16 bits of fixed point.
__attribute__((target("avx2"))) void int16_avx2(uint64_t turns) {
  __m256i sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_setzero_si256();
  __m256i x = _mm256_set1_epi16(1);
  const __m256i y = _mm256_set1_epi16(1);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      __asm__ volatile("" : "+x"(x));
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(x, y));
      __asm__ volatile("" : "+x"(sums[i]));
    }
}

__attribute__((target("avx512f,avx512bw"))) void int16_avx512(uint64_t turns) {
  __m512i sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_setzero_si512();
  __m512i x = _mm512_set1_epi16(1);
  const __m512i y = _mm512_set1_epi16(1);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      __asm__ volatile("" : "+v"(x));
      sums[i] = _mm512_add_epi32(sums[i], _mm512_madd_epi16(x, y));
      __asm__ volatile("" : "+v"(sums[i]));
    }
}

// Without a dot product of bytes: unsigned times signed in pairs, pairs of pairs, one addition.
__attribute__((target("avx2"))) void int8_avx2(uint64_t turns) {
  constexpr int kPairs = 8;
  __m256i sums[kPairs];
#pragma GCC unroll 16
  for (int i = 0; i < kPairs; ++i) sums[i] = _mm256_setzero_si256();
  __m256i x = _mm256_set1_epi8(1);
  const __m256i y = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kPairs; ++i) {
      __asm__ volatile("" : "+x"(x));
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), ones));
      __asm__ volatile("" : "+x"(sums[i]));
    }
}

// If one factor has four bits, eight sums of pairs fit into 16 bits before they are widened to 32.
__attribute__((target("avx2"))) void int4_avx2(uint64_t turns) {
  constexpr int kSums = 4;
  __m256i sums[kSums];
#pragma GCC unroll 4
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_setzero_si256();
  __m256i x = _mm256_set1_epi8(1);
  const __m256i y = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
  for (uint64_t t = 0; t < turns; ++t) {
    __m256i pairs[kSums];
#pragma GCC unroll 8
    for (int term = 0; term < kInt4Terms; ++term)
#pragma GCC unroll 4
      for (int i = 0; i < kSums; ++i) {
        __asm__ volatile("" : "+x"(x));
        const __m256i products = _mm256_maddubs_epi16(x, y);
        pairs[i] = term == 0 ? products : _mm256_add_epi16(pairs[i], products);
        __m256i kept = pairs[i];
        __asm__ volatile("" : "+x"(kept));
        pairs[i] = kept;
      }
#pragma GCC unroll 4
    for (int i = 0; i < kSums; ++i) {
      __m256i kept = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs[i], ones));
      __asm__ volatile("" : "+x"(kept));
      sums[i] = kept;
    }
  }
}

__attribute__((target("avx2,avxvnni"))) void int8_avxvnni(uint64_t turns) {
  __m256i sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_setzero_si256();
  const __m256i x = _mm256_set1_epi8(1), y = _mm256_set1_epi8(1);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sums[i] = _mm256_dpbusd_avx_epi32(sums[i], x, y);
      __asm__ volatile("" : "+x"(sums[i]));
    }
}

__attribute__((target("avx512f,avx512vnni"))) void int8_avx512vnni(uint64_t turns) {
  __m512i sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi8(1), y = _mm512_set1_epi8(1);
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sums[i] = _mm512_dpbusd_epi32(sums[i], x, y);
      __asm__ volatile("" : "+v"(sums[i]));
    }
}

__attribute__((target("avx512f,avx512bf16"))) void bf16_avx512bf16(uint64_t turns) {
  __m512 sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512bh x = {}, y = {};
  for (uint64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], x, y);
      __asm__ volatile("" : "+v"(sums[i]));
    }
}

// Palette 1, eight tiles of 16 rows by 64 bytes: tiles 0 to 3 hold sums, 4 to 7 are zero factors. The
// compiler takes the configuration to be 8 bytes long and must not drop stores to the rest.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

__attribute__((target("amx-tile"))) void open_tiles() {
  static const TileConfig config;
  __asm__ volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
}

__attribute__((target("amx-tile,amx-int8"))) void int8_amx(uint64_t turns) {
  open_tiles();
  for (uint64_t t = 0; t < turns; ++t) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("amx-tile,amx-bf16"))) void bf16_amx(uint64_t turns) {
  open_tiles();
  for (uint64_t t = 0; t < turns; ++t) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

// Newest first.
constexpr PeakLoop kLoops[] = {
    {"int8_amx", "amx", Arithmetic::int8, 4 * 2 * 16 * 16 * 64, int8_amx},
    {"bf16_amx", "amx", Arithmetic::bfloat16, 4 * 2 * 16 * 16 * 32, bf16_amx},
    {"int8_avx512vnni", "avx512vnni", Arithmetic::int8, kChains * 2 * 64, int8_avx512vnni},
    {"bf16_avx512bf16", "avx512bf16", Arithmetic::bfloat16, kChains * 2 * 32, bf16_avx512bf16},
    {"int16_avx512", "avx512", Arithmetic::int16, kChains * 2 * 32, int16_avx512},
    {"fma_avx512", "avx512", Arithmetic::float32, kChains * 2 * 16, fma_avx512},
    {"int8_avxvnni", "avxvnni", Arithmetic::int8, kChains * 2 * 32, int8_avxvnni},
    {"int8_avx2", "avx2", Arithmetic::int8, 8 * 2 * 32, int8_avx2},
    {"int4_avx2", "avx2", Arithmetic::int8_by_int4, 4 * kInt4Terms * 2 * 32, int4_avx2},
    {"int16_avx2", "avx2", Arithmetic::int16, kChains * 2 * 16, int16_avx2},
    {"fma_avx2", "avx2", Arithmetic::float32, kChains * 2 * 8, fma_avx2},
};

bool runs_here(const PeakLoop& loop) { return missing_feature(loop.variant) == nullptr; }

#else
constexpr PeakLoop kLoops[] = {{"none", "none", Arithmetic::float32, 1, nullptr}};
bool runs_here(const PeakLoop&) { return false; }
#endif

// Age of a variant: a variant may use what older ones have. -1 if it is not one of ours.
int generation(std::string_view variant) {
  constexpr std::pair<std::string_view, int> kGenerations[] = {
      {"scalar", 0},     {"avx2", 1},       {"avxvnni", 2},    {"avx512", 3}, {"avx512vnni", 4},
      {"avx512bf16", 4}, {"avx512vbmi", 4}, {"avx512fp16", 4}, {"amx", 5}};
  for (const auto& [name, number] : kGenerations)
    if (name == variant) return number;
  return -1;
}

}  // namespace

std::vector<const PeakLoop*> peak_loops(std::string_view variant) {
  const int asked = generation(variant);
  std::vector<const PeakLoop*> found;
  for (const PeakLoop& loop : kLoops) {
    if (asked >= 0 && generation(loop.variant) > asked) continue;
    const bool have = std::any_of(found.begin(), found.end(), [&](const PeakLoop* other) {
      return other->arithmetic == loop.arithmetic;
    });
    if (!have && runs_here(loop)) found.push_back(&loop);
  }
  return found;
}

}  // namespace qcts
