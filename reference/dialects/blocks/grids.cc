// SPDX-License-Identifier: BSD-3-Clause
// Types whose codes name points of a grid in 8 or 4 dimensions.
#include <array>
#include <bit>

#include "reference/dialects/blocks/decoders.h"

namespace qcts {
namespace {

#include "reference/dialects/blocks/grids.inc"

constexpr std::array<float, 4> kIq2Map = {8, 25, 43, 0}, kIq1Map = {-1, 0, 1, 0};
constexpr std::array<float, 8> kIq3XxsMap = {4, 12, 20, 28, 36, 44, 52, 62},
                               kIq3SMap = {1, 3, 5, 7, 9, 11, 13, 15};

// Seven signs, and an eighth that makes the number of negative ones even.
int eight_signs(uint32_t seven) {
  return static_cast<int>(seven | static_cast<uint32_t>(std::popcount(seven) & 1) << 7);
}

float sign_of(int signs, int i) { return signs >> i & 1 ? -1.0f : 1.0f; }

void put_eight(uint16_t point, float scale, int signs, float* out) {
  for (int i = 0; i < 8; ++i) out[i] = scale * kIq2Map[point >> (2 * i) & 3] * sign_of(signs, i);
}

// Two points of four dimensions.
void put_fours(uint16_t first, uint16_t second, const std::array<float, 8>& map, float scale, int signs,
               float* out) {
  for (int i = 0; i < 8; ++i)
    out[i] = scale * map[(i < 4 ? first : second) >> (3 * (i % 4)) & 7] * sign_of(signs, i);
}

// d, then for each 32 elements: four points, and a word of four times seven signs and a scale.
void decode_iq2_xxs(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int run = 0; run < 8; ++run) {
    const uint8_t* points = block + 2 + run * 8;
    const auto word = word_of_block<uint32_t>(points + 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i)
      put_eight(kIq2XxsGrid[points[i]], scale, eight_signs(word >> (7 * i) & 127), out + run * 32 + i * 8);
  }
}

// The scale of IQ2_XS and IQ2_S: a nibble per 16 elements.
float scale_of_nibble(float d, const uint8_t* scales, int point) {
  const int nibble = scales[point / 4] >> (point / 2 % 2 * 4) & 15;
  return d * (0.5f + static_cast<float>(nibble)) * 0.25f;
}

// d, points of nine bits with seven signs, scales
void decode_iq2_xs(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int point = 0; point < 32; ++point) {
    const auto word = word_of_block<uint16_t>(block + 2 + point * 2);
    put_eight(kIq2XsGrid[word & 511], scale_of_nibble(d, block + 66, point), eight_signs(word >> 9),
              out + point * 8);
  }
}

// d, lower eight bits of the points, signs, upper two bits, scales
void decode_iq2_s(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int point = 0; point < 32; ++point) {
    const int upper = block[66 + point / 4] >> (point % 4 * 2) & 3;
    put_eight(kIq2SGrid[static_cast<size_t>(block[2 + point] | upper << 8)],
              scale_of_nibble(d, block + 74, point), block[34 + point], out + point * 8);
  }
}

// d, points, then for each 32 elements a word of four times seven signs and a scale
void decode_iq3_xxs(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int run = 0; run < 8; ++run) {
    const auto word = word_of_block<uint32_t>(block + 66 + run * 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int i = 0; i < 4; ++i) {
      const uint8_t* points = block + 2 + run * 8 + i * 2;
      put_fours(kIq3XxsGrid[points[0]], kIq3XxsGrid[points[1]], kIq3XxsMap, scale,
                eight_signs(word >> (7 * i) & 127), out + run * 32 + i * 8);
    }
  }
}

// d, lower eight bits of the points, ninth bits, signs, a nibble of scale per 32 elements
void decode_iq3_s(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  const auto point = [&](int i) {
    return kIq3SGrid[static_cast<size_t>(block[2 + i] | (block[66 + i / 8] >> (i % 8) & 1) << 8)];
  };
  for (int i = 0; i < 32; ++i) {
    const int nibble = block[106 + i / 8] >> (i / 4 % 2 * 4) & 15;
    put_fours(point(2 * i), point(2 * i + 1), kIq3SMap, d * static_cast<float>(1 + 2 * nibble), block[74 + i],
              out + i * 8);
  }
}

// w = scale * (coordinate +- 1/8)
void put_ternary(size_t point, float scale, bool below, float* out) {
  for (int i = 0; i < 8; ++i)
    out[i] = scale * (kIq1Map[kIq1Grid[point] >> (2 * i) & 3] + (below ? -0.125f : 0.125f));
}

// d, lower eight bits of the points, then for each 32 elements a word: upper three bits, a scale, the shift
void decode_iq1_s(const uint8_t* block, float* out) {
  const float d = half_of_block(block);
  for (int point = 0; point < 32; ++point) {
    const auto word = word_of_block<uint16_t>(block + 34 + point / 4 * 2);
    const int upper = word >> (3 * (point % 4)) & 7;
    put_ternary(static_cast<size_t>(block[point + 2] | upper << 8),
                d * static_cast<float>(2 * (word >> 12 & 7) + 1), (word & 0x8000) != 0, out + point * 8);
  }
}

// Lower eight bits of the points, a nibble each of upper three bits and the shift, then four words: the upper
// nibbles are d, the other bits four scales of three bits.
void decode_iq1_m(const uint8_t* block, float* out) {
  const auto word = [&](int i) { return word_of_block<uint16_t>(block + 48 + i * 2); };
  const float d = half_of_iq1_m(block);
  for (int point = 0; point < 32; ++point) {
    const int nibble = block[32 + point / 2] >> (point % 2 * 4) & 15;
    const int scale = word(point / 8) >> (3 * (point / 2 % 4)) & 7;
    put_ternary(static_cast<size_t>(block[point] | (nibble & 7) << 8), d * static_cast<float>(2 * scale + 1),
                (nibble & 8) != 0, out + point * 8);
  }
}

constexpr BlockDecoderRow kGrids[] = {
    {16, decode_iq2_xxs}, {17, decode_iq2_xs}, {18, decode_iq3_xxs}, {19, decode_iq1_s},
    {21, decode_iq3_s},   {22, decode_iq2_s},  {29, decode_iq1_m},
};

}  // namespace

std::span<const BlockDecoderRow> grid_decoders() { return kGrids; }

float half_of_iq1_m(const uint8_t* block) {
  int bits = 0;
  for (int i = 0; i < 4; ++i) bits |= block[49 + i * 2] >> 4 << (4 * i);
  return static_cast<float>(decode_float(DType::float16, static_cast<uint64_t>(bits)));
}

}  // namespace qcts
