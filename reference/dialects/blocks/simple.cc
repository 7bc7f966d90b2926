// SPDX-License-Identifier: BSD-3-Clause
// Types whose blocks have one scale, and NVFP4, whose blocks have four.
#include <cmath>

#include "reference/dialects/blocks/decoders.h"

namespace qcts {
namespace {

constexpr int kHalf = 16;  // low nibbles are elements 0..15 of a block of 32, high ones 16..31

// d, codes: w = d * (code - 8)
void decode_q4_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = d * static_cast<float>((block[2 + i] & 15) - 8);
    out[i + kHalf] = d * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

// d, m, codes: w = d * code + m
void decode_q4_1(const uint8_t* block, float* out) {
  const float d = half_of_block(block), m = half_of_block(block + 2);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = d * static_cast<float>(block[4 + i] & 15) + m;
    out[i + kHalf] = d * static_cast<float>(block[4 + i] >> 4) + m;
  }
}

// The fifth bits of element i and i + 16 are bits i and i + 16 of a word.
int low_five(uint32_t high, const uint8_t* codes, int i) {
  return (codes[i] & 15) | static_cast<int>(high >> i & 1) << 4;
}
int high_five(uint32_t high, const uint8_t* codes, int i) {
  return codes[i] >> 4 | static_cast<int>(high >> (i + kHalf) & 1) << 4;
}

// d, fifth bits, codes: w = d * (code - 16)
void decode_q5_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  const auto high = word_of_block<uint32_t>(block + 2);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = d * static_cast<float>(low_five(high, block + 6, i) - 16);
    out[i + kHalf] = d * static_cast<float>(high_five(high, block + 6, i) - 16);
  }
}

// d, m, fifth bits, codes: w = d * code + m
void decode_q5_1(const uint8_t* block, float* out) {
  const float d = half_of_block(block), m = half_of_block(block + 2);
  const auto high = word_of_block<uint32_t>(block + 4);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = d * static_cast<float>(low_five(high, block + 8, i)) + m;
    out[i + kHalf] = d * static_cast<float>(high_five(high, block + 8, i)) + m;
  }
}

// d, signed codes: w = d * code
void decode_q8_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// d, codes: w = d * table[code]
void decode_iq4_nl(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = d * static_cast<float>(kIq4Values[block[2 + i] & 15]);
    out[i + kHalf] = d * static_cast<float>(kIq4Values[block[2 + i] >> 4]);
  }
}

// exponent, codes: w = 2^(exponent - 128) * doubled e2m1
void decode_mxfp4(const uint8_t* block, float* out) {
  const float d = e8m0_half(block[0]);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = d * static_cast<float>(kDoubledE2m1[block[1 + i] & 15]);
    out[i + kHalf] = d * static_cast<float>(kDoubledE2m1[block[1 + i] >> 4]);
  }
}

// Four scales, then four runs of eight bytes: low nibbles are elements 0..7 of a run of 16, high ones 8..15.
void decode_nvfp4(const uint8_t* block, float* out) {
  constexpr int kRuns = 4, kBytes = 8;
  for (int run = 0; run < kRuns; ++run) {
    const float d = ue4m3_half(block[run]);
    const uint8_t* codes = block + kRuns + run * kBytes;
    float* to = out + run * 2 * kBytes;
    for (int i = 0; i < kBytes; ++i) {
      to[i] = d * static_cast<float>(kDoubledE2m1[codes[i] & 15]);
      to[i + kBytes] = d * static_cast<float>(kDoubledE2m1[codes[i] >> 4]);
    }
  }
}

// A byte is a fraction of 256 that holds base-3 digits: digit n is the integer part of 3 * (byte * 3^n mod
// 256).
void decode_digits(const uint8_t* bytes, int count, int digits, float d, float* out) {
  uint8_t power = 1;
  for (int digit = 0; digit < digits; ++digit, power = static_cast<uint8_t>(power * 3))
    for (int i = 0; i < count; ++i) {
      const auto fraction = static_cast<uint8_t>(bytes[i] * power);
      out[digit * count + i] = d * static_cast<float>((fraction * 3 >> 8) - 1);
    }
}

// Five digits in each of 32 and of 16 bytes, four in each of 4 bytes, d: w = d * (digit - 1)
void decode_tq1_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block + 52);
  decode_digits(block, 32, 5, d, out);
  decode_digits(block + 32, 16, 5, d, out + 160);
  decode_digits(block + 48, 4, 4, d, out + 240);
}

// Codes of two bits, d: w = d * (code - 1). 32 bytes hold 128 elements, 32 for each pair of bits.
void decode_tq2_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block + 64);
  for (int i = 0; i < 256; ++i) {
    const int code = block[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
    out[i] = d * static_cast<float>(code - 1);
  }
}

// d, signs: w = d for a bit that is set, -d for one that is not
void decode_q1_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int i = 0; i < 128; ++i) out[i] = block[2 + i / 8] >> (i % 8) & 1 ? d : -d;
}

// d, codes of two bits in the order of the elements: w = d * (code - 1)
void decode_q2_0(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int i = 0; i < 64; ++i) out[i] = d * static_cast<float>((block[2 + i / 4] >> (i % 4 * 2) & 3) - 1);
}

constexpr BlockDecoderRow kSimple[] = {
    {2, decode_q4_0},   {3, decode_q4_1},    {6, decode_q5_0},   {7, decode_q5_1},
    {8, decode_q8_0},   {20, decode_iq4_nl}, {34, decode_tq1_0}, {35, decode_tq2_0},
    {39, decode_mxfp4}, {40, decode_nvfp4},  {41, decode_q1_0},  {42, decode_q2_0},
};

}  // namespace

std::span<const BlockDecoderRow> simple_decoders() { return kSimple; }

float e8m0_half(uint8_t exponent) { return std::ldexp(1.0f, static_cast<int>(exponent) - 128); }

float ue4m3_half(uint8_t byte) {
  if (byte == 0x7F) return 0;
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

}  // namespace qcts
