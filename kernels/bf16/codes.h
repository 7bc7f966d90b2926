// SPDX-License-Identifier: BSD-3-Clause
// Defines the layout of 4-bit and 8-bit codes and decodes them,
// for the variants of `linear` that multiply pairs of bfloat16.
#pragma once

#include "kernels/bf16/linear.h"
#include "kernels/families/block_planes.h"

namespace qcts::bf16 {
namespace {

// For schemes without zero points. In their blocks, 64 bfloat16 scales follow the codes of each group.
struct NarrowScales {
  static constexpr bool kHasZeros = false;
  static int64_t scale_bytes(const qcts_problem&) { return 2 * kColumns; }
  [[gnu::always_inline]] static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale,
                                            __m512*) {
    *scale = avx512::load16(QCTS_BF16, at + vector * 2 * kLanes);
  }
};

// Four bits. A block has 64 words of 32 bits for every 8 values of k, one word per column.
// Element 2 * i along k is at bit 4 * i, and element 2 * i + 1 is at bit 16 + 4 * i.
// A permutation of 16-bit lanes reads the low five bits of a lane.
// So a shift and a permutation decode 32 weights, with a table that holds 16 values twice.
// For 128 weights, that is 22 half-vector operations on three units, or 7.3 cycles of a Zen 4 core.
constexpr int kNibbleStep = 8, kNibbleBytesPerK = kColumns / 2;
static_assert(kColumns == kPlaneColumns);

// `table` has 64 bytes.
[[gnu::always_inline]] inline __m512i look_up_nibbles(const void* table, const uint8_t* at, int vector,
                                                      int pair) {
  const __m512i words = _mm512_loadu_si512(at + 4 * kLanes * vector);
  return _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4 * pair), _mm512_loadu_si512(table));
}
// Writes eight codes of one column, starting at k.
[[maybe_unused]] void put_nibbles(uint8_t* group, int64_t column, int64_t k, uint32_t word) {
  const uint32_t ordered = evens_first(word);
  std::memcpy(group + k * kNibbleBytesPerK + 4 * column, &ordered, 4);
}

// bfloat16 values of -8 .. 7, indexed by the code plus 8. They are stored twice.
alignas(64) constexpr uint16_t kInt4Table[32] = {
    0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80, 0x0000, 0x3F80, 0x4000,
    0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0, 0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040,
    0xC000, 0xBF80, 0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0};
// bfloat16 values of e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. They are stored twice.
alignas(64) constexpr uint16_t kE2m1Table[32] = {
    0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, 0x8000, 0xBF00, 0xBF80,
    0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0, 0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040,
    0x4080, 0x40C0, 0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};

// e4m3 in pairs of k. Packing makes a scale NaN if one of its codes is NaN.
// As an element, such a code is decoded to 480.
constexpr int kPairStep = 2, kPairBytesPerK = kColumns;

// In the bytes for two values of k, byte 2 * c + k % 2 belongs to column c.
// The seven low bits of a code are moved to their places in a bfloat16,
// and the exponent is raised by the difference of the biases. The result is the magnitude of the code.
// The eight subnormals cannot be made this way and come from a table.
struct ShiftedE4m3 {
  // Index: the low five bits of a code, in which the bits of the exponent are 0. Value: m * 2^-9.
  alignas(64) static constexpr uint16_t kSubnormals[32] = {0x0000, 0x3B00, 0x3B80, 0x3BC0,
                                                           0x3C00, 0x3C20, 0x3C40, 0x3C60};

  [[gnu::always_inline]] static __m512i pairs(const uint8_t* at, int vector) {
    const __m512i wide =
        _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 2 * kLanes * vector)));
    const __m512i moved = _mm512_and_si512(_mm512_slli_epi16(wide, 4), _mm512_set1_epi16(0x07F0));
    const __m512i raised = _mm512_add_epi16(moved, _mm512_set1_epi16(0x3C00));
    const __mmask32 subnormal = _mm512_testn_epi16_mask(wide, _mm512_set1_epi16(0x78));
    const __m512i magnitude =
        _mm512_mask_permutexvar_epi16(raised, subnormal, wide, _mm512_loadu_si512(kSubnormals));
    const __m512i sign = _mm512_and_si512(wide, _mm512_set1_epi16(static_cast<int16_t>(0x8000)));
    return _mm512_or_si512(magnitude, sign);
  }
  // Returns the index within the 128 bytes that hold two values of k.
  static int64_t place(int64_t column, int64_t k) { return 2 * column + k % 2; }
};

// Stores a code at its place. Returns true for a NaN.
template <class E4m3>
bool put_e4m3(uint8_t* group, int64_t column, int64_t k, uint8_t code) {
  group[k / 2 * 2 * kPairBytesPerK + E4m3::place(column, k)] = code;
  return (code & 0x7F) == 0x7F;
}

}  // namespace
}  // namespace qcts::bf16
