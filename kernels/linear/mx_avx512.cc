// SPDX-License-Identifier: BSD-3-Clause
// y = sum over blocks of 32 of 2^e * sum(x * element), plus bias.
//
// MXFP4 is looked up (kernels/avx512/nibble_lut.h), which is the bound at m = 1. MXFP8 and MXFP6 have one
// byte per element: e4m3 is decoded as in kernels/avx512/fp8.h; e5m2 is the upper half of a binary16; the
// five-bit magnitudes of e2m3 and e3m2 are looked up in two vectors. Scales are stored as bfloat16, which
// holds every e8m0, including 2^-127 and NaN. A block of 64 columns holds, for each 32 k, the codes, then 64
// scales. If an element is an e4m3 NaN, the scale of its 32 becomes NaN.
#include "kernels/avx512/fp8.h"
#include "kernels/avx512/nibble_lut.h"
#include "kernels/avx512/scales.h"

namespace {

using namespace qcts::avx512;
using qcts::SmallFloat;

constexpr int kBlockK = 32;

template <class Element>
struct MxBlocks : NarrowScales {
  static constexpr int64_t kHeaderBytes = 0;
  static int64_t group(const qcts_problem&) { return kBlockK; }
  static float factor(const uint8_t*) { return 1; }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Element>(call, block, first_m, rows);
  }
};

struct Mxfp4 : MxBlocks<Mxfp4> {
  static constexpr int kStep = kWordStep, kBytesPerK = kWordBytesPerK;
  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int i) {
    return look_up_words(kE2m1Floats, at, vector, i);
  }
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    qcts::put_blocks(qcts::Mxfp4Planes(p), first_n, group_bytes<Mxfp4>(p), put_nibbles, out);
  }
};

// The values of five-bit codes with `fraction` bits of fraction.
struct FiveBits {
  alignas(64) float values[32];
};
constexpr FiveBits five_bits(int fraction, float min) {
  FiveBits all = {};
  for (int code = 0; code < 32; ++code) {
    const int exponent = code >> fraction, significand = code & ((1 << fraction) - 1);
    float value = min * static_cast<float>(exponent == 0 ? significand : significand + (1 << fraction));
    for (int i = 1; i < exponent; ++i) value *= 2;
    all.values[code] = value;
  }
  return all;
}
constexpr FiveBits kE2m3 = five_bits(3, 0.125f), kE3m2 = five_bits(2, 0.0625f);

template <SmallFloat kFormat>
struct MxBytes : MxBlocks<MxBytes<kFormat>> {
  static constexpr int kStep = 1, kBytesPerK = kColumns;

  static __m512 decode(const uint8_t*, const uint8_t* group, int vector, int) {
    const uint8_t* at = group + vector * kLanes;
    if constexpr (kFormat == SmallFloat::e4m3) return finite_e4m3(at);
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    if constexpr (kFormat == SmallFloat::e5m2)
      return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 8));
    const float* table = (kFormat == SmallFloat::e2m3 ? kE2m3 : kE3m2).values;
    const __m512i wide = _mm512_cvtepu8_epi32(codes);
    const __m512 magnitudes =
        _mm512_permutex2var_ps(_mm512_loadu_ps(table), wide, _mm512_loadu_ps(table + 16));
    // magnitude | (code << 26 & sign)
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_castps_si512(magnitudes), _mm512_slli_epi32(wide, 26), _mm512_set1_epi32(INT32_MIN), 0xF8));
  }
  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto put = [](uint8_t* group, int64_t column, int64_t k, uint8_t code) {
      group[k * kColumns + column] = code;
      return kFormat == SmallFloat::e4m3 && (code & 0x7F) == 0x7F;
    };
    qcts::put_mx_bytes(p, first_n, group_bytes<MxBytes>(p), put, out);
  }
};

template <class Element>
constexpr qcts_kernel kMxEntry = linear_of<qcts_kernel_linear_mx_avx512, Element>(
    "mx",
    "64 columns per block, elements looked up or moved into floats up to m = 4, else to a panel; bound by "
    "decoding, then by fma");

const qcts_kernel& mx_entry(const qcts_problem& p) {
  switch (qcts::mx_recipe(p).element) {
    case SmallFloat::e4m3:
      return kMxEntry<MxBytes<SmallFloat::e4m3>>;
    case SmallFloat::e5m2:
      return kMxEntry<MxBytes<SmallFloat::e5m2>>;
    case SmallFloat::e2m3:
      return kMxEntry<MxBytes<SmallFloat::e2m3>>;
    case SmallFloat::e3m2:
      return kMxEntry<MxBytes<SmallFloat::e3m2>>;
    default:
      return kMxEntry<Mxfp4>;
  }
}

}  // namespace

const qcts_kernel qcts_kernel_linear_mx_avx512 = qcts::entry_by_member<mx_entry>(kMxEntry<Mxfp4>);
