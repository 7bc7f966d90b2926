// SPDX-License-Identifier: BSD-3-Clause
// Types whose blocks of 256 elements have scales that are codes themselves, times one scale of float16.
#include "reference/dialects/blocks/decoders.h"

namespace qcts {
namespace {

constexpr int kElements = 256;

// Codes of two bits: 32 bytes hold 128 elements, 32 for each pair of bits.
int two_bits(const uint8_t* codes, int i) { return codes[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3; }

// Sixteen bytes of a scale and a minimum, codes, d, dmin: w = d * scale * code - dmin * minimum
void decode_q2_k(const uint8_t* block, float* out) {
  const float d = half_of_block(block + 80), dmin = half_of_block(block + 82);
  for (int i = 0; i < kElements; ++i) {
    const int packed = block[i / 16];
    const float scale = d * static_cast<float>(packed & 15), minimum = dmin * static_cast<float>(packed >> 4);
    out[i] = scale * static_cast<float>(two_bits(block + 16, i)) - minimum;
  }
}

// Sixteen scales of six bits: low nibbles in eight bytes, the upper two bits in four.
int scale_q3_k(const uint8_t* packed, int i) {
  const int low = packed[i % 8] >> (4 * (i / 8)) & 15, high = packed[8 + i % 4] >> (2 * (i / 4)) & 3;
  return (low | high << 4) - 32;
}

// Third bits, two bits, scales, d: w = d * scale * (code - 4), where the third bit is set for code >= 4
void decode_q3_k(const uint8_t* block, float* out) {
  const float d = half_of_block(block + 108);
  for (int i = 0; i < kElements; ++i) {
    const int third = block[i % 32] >> (i / 32) & 1;
    const float scale = d * static_cast<float>(scale_q3_k(block + 96, i / 16));
    out[i] = scale * static_cast<float>(two_bits(block + 32, i) - (third ? 0 : 4));
  }
}

// Eight scales and eight minima of six bits in twelve bytes.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum scales_of_twelve(const uint8_t* packed, int i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | packed[i - 4] >> 6 << 4, packed[i + 4] >> 4 | packed[i] >> 6 << 4};
}

// Codes of four bits in runs of 32 bytes: low nibbles are 32 elements, high ones the next 32.
int four_bits(const uint8_t* codes, int i) { return codes[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15; }

// d, dmin, scales, codes: w = d * scale * code - dmin * minimum
void decode_q4_k(const uint8_t* block, float* out) {
  const float d = half_of_block(block), dmin = half_of_block(block + 2);
  for (int i = 0; i < kElements; ++i) {
    const auto [scale, minimum] = scales_of_twelve(block + 4, i / 32);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(four_bits(block + 16, i)) -
             dmin * static_cast<float>(minimum);
  }
}

// As Q4_K, with fifth bits before the codes: bit j of a byte belongs to run j of 32 elements.
void decode_q5_k(const uint8_t* block, float* out) {
  const float d = half_of_block(block), dmin = half_of_block(block + 2);
  for (int i = 0; i < kElements; ++i) {
    const auto [scale, minimum] = scales_of_twelve(block + 4, i / 32);
    const int code = four_bits(block + 48, i) | (block[16 + i % 32] >> (i / 32) & 1) << 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code) - dmin * static_cast<float>(minimum);
  }
}

// Four lower bits, two upper bits, signed scales, d: w = d * scale * (code - 32)
void decode_q6_k(const uint8_t* block, float* out) {
  const float d = half_of_block(block + 208);
  for (int i = 0; i < kElements; ++i) {
    const int half = i / 128, within = i % 128;
    const int low = block[half * 64 + within % 64] >> (within / 64 * 4) & 15;
    const int high = block[128 + half * 32 + within % 32] >> (within / 32 * 2) & 3;
    const float scale = d * static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

// d, upper two bits of the scales, lower four, codes: w = d * (scale - 32) * table[code]
void decode_iq4_xs(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  const auto upper = word_of_block<uint16_t>(block + 2);
  for (int run = 0; run < kElements / 32; ++run) {
    const int low = block[4 + run / 2] >> (run % 2 * 4) & 15, high = upper >> (2 * run) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const uint8_t* codes = block + 8 + run * 16;
    for (int i = 0; i < 32; ++i)
      out[run * 32 + i] = scale * static_cast<float>(kIq4Values[codes[i % 16] >> (i / 16 * 4) & 15]);
  }
}

constexpr BlockDecoderRow kSuper[] = {
    {10, decode_q2_k}, {11, decode_q3_k}, {12, decode_q4_k},
    {13, decode_q5_k}, {14, decode_q6_k}, {23, decode_iq4_xs},
};

}  // namespace

std::span<const BlockDecoderRow> super_decoders() { return kSuper; }

}  // namespace qcts
