// SPDX-License-Identifier: BSD-3-Clause
// The decoders of single blocks, and what they share.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "reference/numerics/soft_float.h"

namespace qcts {

// Decodes a block of the type's block_bytes to its block_elements.
using BlockDecoder = void (*)(const uint8_t* block, float* out);

struct BlockDecoderRow {
  uint32_t type;  // GgufType::id
  BlockDecoder decode;
};
std::span<const BlockDecoderRow> simple_decoders();  // 32 elements share a scale, or ternary codes
std::span<const BlockDecoderRow> super_decoders();   // 256 elements with scales of scales
std::span<const BlockDecoderRow> grid_decoders();    // IQ1, IQ2, IQ3: codes name points of a grid

template <typename Word>
Word word_of_block(const uint8_t* at) {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline float half_of_block(const uint8_t* at) {
  return static_cast<float>(decode_float(DType::float16, word_of_block<uint16_t>(at)));
}

// Returns the scale of a block of IQ1_M, whose four nibbles are in four words.
float half_of_iq1_m(const uint8_t* block);

// Scales as MXFP4 and NVFP4 of ggml store them. Their codes count halves, so these return half of the scale.
// e8m0_half: 2^(e - 128) for every e, also 255.
float e8m0_half(uint8_t exponent);
// ue4m3_half: the sign bit is ignored, and 0x7F is 0.
float ue4m3_half(uint8_t byte);

// The values of four-bit codes: doubled e2m1 without a negative zero, and the table of IQ4.
inline constexpr std::array<int8_t, 16> kDoubledE2m1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace qcts
