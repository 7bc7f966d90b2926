// SPDX-License-Identifier: BSD-3-Clause
// Decoders turn codes of weights into operands of matrix instructions, pairs of bfloat16 or float16. Both
// types hold every code exactly. (The difference of an int8 code and its zero point has nine bits with its
// sign, so its magnitude is at most 255.) For this reason scales act on the sums, and no weight is rounded.
//
// Three or four instructions make a pair. So decoding a word for one tile of 16 rows costs about as much as
// multiplying it. An integer is put into the fraction of a float whose last bit is worth 1, and that float is
// subtracted. A small float is moved to the fields of T, and a multiplication by a power of two corrects the
// bias, also for subnormals.
//
// A Decoder has
//   kBits, kXBytes              bits of a code: 4 or 8; bytes of an element of x in shared memory
//   kScalesSums                 true: parameters.word[0] is a float32 that acts on the sum of a group;
//                               false: the decoder has used the parameters, and only Weight::finish() acts
//                               on the sum
//   kHasZero                    parameters.word[1] is a float32 that acts on the sum of x
//   kReadsParameters            operands() uses the parameters
//   kTwoLevels                  scales have two levels (nf4)
//   kMinGroup                   the smallest group that the matrix frame takes
//   Decoder(weight)             called in the kernel
//   operands<T>(word, parameters, pairs)   turns 32 bits of codes, consecutive along k, into pairs along k
//   kReadsTiles                 only if codes are in tile_packed_4d: then a word has 8 of 32 k, and pair i is
//   at
//                               8 * i + 2 * (lane % 4)
// If kernels/sm80/decode.h takes it (kSpreadsPairs), it also has
//   kPairsOfParameters          scales and zeros are in one plane, in pairs
//   spread_pairs<T>(word, pairs)   turns 32 bits of codes into pairs of k = i ^ kFirstOfPair and that + 4;
//                               with kReadsTiles as operands() does
// If bfloat16 does not hold its weights, it also has floats(words, w), which decodes eight of them.
#pragma once

#include "kernels/cuda/matrix.h"
#include "kernels/sm80/linear_weight.h"

namespace qcts::sm80 {
namespace {

// The fields of T, and its arithmetic on two numbers at once.
template <class T>
struct Pair;
template <>
struct Pair<BF16> {
  static constexpr int kFractionBits = 7, kExponentBits = 8, kBias = 127;
  static QCTS_DEVICE uint32_t fma(uint32_t a, uint32_t b, uint32_t c) { return fma_bf16x2(a, b, c); }
  static QCTS_DEVICE uint32_t pack(float low, float high) { return pack_bf16(low, high); }
  static QCTS_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_bf16(d, a, b);
  }
};
template <>
struct Pair<F16> {
  static constexpr int kFractionBits = 10, kExponentBits = 5, kBias = 15;
  static QCTS_DEVICE uint32_t fma(uint32_t a, uint32_t b, uint32_t c) { return fma_f16x2(a, b, c); }
  static QCTS_DEVICE uint32_t pack(float low, float high) { return pack_f16(low, high); }
  static QCTS_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_f16(d, a, b);
  }
};
QCTS_DEVICE constexpr uint32_t twice(uint32_t bits) { return bits | bits << 16; }
// Returns the bits of 2^exponent.
template <class T>
QCTS_DEVICE constexpr uint32_t power(int exponent) {
  return static_cast<uint32_t>(exponent + Pair<T>::kBias) << Pair<T>::kFractionBits;
}
constexpr uint32_t kMinusZeros = 0x80008000;

// Moves bit `from` to bit `to`.
QCTS_DEVICE uint32_t moved(uint32_t word, int from, int to) {
  return from > to ? word >> (from - to) : word << (to - from);
}

// Puts the nibbles of byte i, masked, at bit `at` of each half. If kHighFirst, the even element is in the
// high nibble.
template <bool kHighFirst>
QCTS_DEVICE uint32_t nibble_pair(uint32_t word, int i, int at, uint32_t others) {
  const int low = 8 * i + (kHighFirst ? 4 : 0), high = 8 * i + (kHighFirst ? 0 : 4);
  return and_or(moved(word, high, 16 + at), 15u << (16 + at),
                and_or(moved(word, low, at), 15u << at, others));
}

// Integers.

// Nibbles i and i + 4 become pair i, less 8. If kSigned, they are signed, so their sign is turned first.
template <class T, bool kSigned>
QCTS_DEVICE void spread_nibbles(uint32_t word, uint32_t (&pairs)[4]) {
  constexpr uint32_t kUnit = power<T>(Pair<T>::kFractionBits);  // its last bit is worth 1
  constexpr uint32_t kEight = 1u << 15 | kUnit | 8;
  QCTS_UNROLL
  for (int i = 0; i < 4; ++i)
    pairs[i] = Pair<T>::fma(and_xor(word >> 4 * i, twice(15), twice(kUnit | (kSigned ? 8 : 0))),
                            twice(power<T>(0)), twice(kEight));
}

// With kHighFirst, a weight is code - 8, and the even k is in the high nibble (int4_tinygemm). Otherwise
// codes are signed, and the even k is in the low nibble (int4_plain).
template <bool kHighFirst>
struct Int4Decoder {
  static constexpr int kBits = 4, kXBytes = 2, kMinGroup = 32;
  static constexpr bool kScalesSums = true, kHasZero = true, kReadsParameters = false, kTwoLevels = false,
                        kPairsOfParameters = kHighFirst;
  QCTS_DEVICE explicit Int4Decoder(const Weight&) {}

  template <class T>
  static QCTS_DEVICE void operands(uint32_t word, const Words2&, uint32_t (&pairs)[4]) {
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) pairs[i] = pair<T>(word, i);
  }
  // Turns a word into pairs whose elements are four apart: pair i has k = i ^ kFirstOfPair and the fourth
  // after it.
  static constexpr int kFirstOfPair = kHighFirst ? 1 : 0;
  template <class T>
  static QCTS_DEVICE void spread_pairs(uint32_t word, uint32_t (&pairs)[4]) {
    spread_nibbles<T, !kHighFirst>(word, pairs);
  }
  // Returns the pair of byte i.
  template <class T>
  static QCTS_DEVICE uint32_t pair(uint32_t word, int i) {
    constexpr uint32_t kUnit = power<T>(Pair<T>::kFractionBits);  // its last bit is worth 1
    constexpr uint32_t kEight = 1u << 15 | kUnit | 8;
    if (!kHighFirst) word ^= 0x88888888;
    return Pair<T>::fma(nibble_pair<kHighFirst>(word, i, 0, twice(kUnit)), twice(power<T>(0)), twice(kEight));
  }
};

// A weight is code - 8. Nibbles i and i + 4 of a word are pair i: the operands of b as mma.m16n8k16 takes
// them, which is the layout's purpose. So one and_or() makes both halves of a pair.
struct TilePackedDecoder {
  static constexpr int kBits = 4, kXBytes = 2, kMinGroup = 32;
  static constexpr bool kScalesSums = true, kHasZero = true, kReadsParameters = false, kTwoLevels = false,
                        kReadsTiles = true, kPairsOfParameters = true;
  QCTS_DEVICE explicit TilePackedDecoder(const Weight&) {}

  template <class T>
  static QCTS_DEVICE void operands(uint32_t word, const Words2&, uint32_t (&pairs)[4]) {
    spread_nibbles<T, false>(word, pairs);
  }
  template <class T>
  static QCTS_DEVICE void spread_pairs(uint32_t word, uint32_t (&pairs)[4]) {
    spread_nibbles<T, false>(word, pairs);
  }
};
template <class Decoder>
constexpr bool kReadsTiles = requires { Decoder::kReadsTiles; };
template <class Decoder>
constexpr bool kSpreadsPairs = requires { Decoder::kPairsOfParameters; };

// A weight is code - zero point.
struct Int8Decoder {
  static constexpr int kBits = 8, kXBytes = 2, kMinGroup = 16;
  static constexpr bool kScalesSums = true, kHasZero = false, kReadsParameters = true, kTwoLevels = false;
  QCTS_DEVICE explicit Int8Decoder(const Weight&) {}

  template <class T>
  static QCTS_DEVICE void operands(uint32_t word, const Words2& parameters, uint32_t (&pairs)[2]) {
    const uint32_t unsigned_codes = word ^ 0x80808080, zero = parameters.word[1] + 128;  // 0 .. 255
    QCTS_UNROLL
    for (int i = 0; i < 2; ++i) {
      if constexpr (Pair<T>::kFractionBits == 10) {
        const uint32_t codes =
            permute_bytes(unsigned_codes, 0x64646464, i == 0 ? 0x4140 : 0x4342);  // 1024 + code
        pairs[i] = F16Pair::fma(codes, twice(power<F16>(0)), twice(0xE400) + zero * 0x10001);
      } else {
        // Nine bits do not fit after the leading one of a bfloat16. So the code goes through float32, as
        // 2^23 + code.
        const float offset = 8388608.0f + static_cast<float>(zero);
        const auto value = [&](uint32_t byte) {
          return float_of(permute_bytes(unsigned_codes, 0x4B000000, 0x7540 | byte)) - offset;
        };
        pairs[i] = pack_bf16(value(2 * i), value(2 * i + 1));
      }
    }
  }

 private:
  using F16Pair = Pair<F16>;
};

// Small floats.

// Converts floats of 1 + E + M bits to T. They are at the top of each half, and the rest is zero.
template <class T, int kExponent, int kFraction>
QCTS_DEVICE uint32_t small_floats(uint32_t halves) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1, kShift = Pair<T>::kExponentBits - kExponent;
  constexpr uint32_t kMagnitude = ((1u << (kExponent + kFraction)) - 1) << (15 - kExponent - kFraction);
  const uint32_t fields = and_or(halves, 0x80008000, (halves & twice(kMagnitude)) >> kShift);
  if constexpr (kBias == Pair<T>::kBias) return fields;
  return Pair<T>::fma(fields, twice(power<T>(Pair<T>::kBias - kBias)), kMinusZeros);
}

// Each code is in the low bits of a byte: e4m3, e5m2 (infinities and NaN as in their specifications), e2m3 or
// e3m2.
template <int kExponent, int kFraction>
struct FloatDecoder {
  static constexpr int kBits = 8, kXBytes = 2, kMinGroup = 16;
  static constexpr bool kScalesSums = true, kHasZero = false, kReadsParameters = false, kTwoLevels = false;
  QCTS_DEVICE explicit FloatDecoder(const Weight&) {}

  template <class T>
  static QCTS_DEVICE void operands(uint32_t word, const Words2&, uint32_t (&pairs)[2]) {
    constexpr int kCodeBits = 1 + kExponent + kFraction;
    QCTS_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t halves = permute_bytes(word, 0, i == 0 ? 0x1404 : 0x3424);
      pairs[i] = small_floats<T, kExponent, kFraction>(halves << (8 - kCodeBits));
    }
    if constexpr (kCodeBits == 8) put_specials<T>(word, pairs);
  }

 private:
  // The first magnitude that is not finite. Weights rarely have one, so a branch costs less than moving every
  // code correctly.
  static constexpr uint32_t kFirst = kExponent == 4 ? 0x7F : 0x7C;
  template <class T>
  static QCTS_DEVICE void put_specials(uint32_t word, uint32_t (&pairs)[2]) {
    constexpr uint32_t kBytes = 0x01010101;
    if ((((word & 0x7F * kBytes) + (0x80 - kFirst) * kBytes) & 0x80 * kBytes) == 0) return;
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) {
      const uint32_t code = word >> 8 * i & 0xFF, magnitude = code & 0x7F;
      const uint32_t infinity = power<T>(Pair<T>::kBias + 1) | (code & 0x80) << 8;
      const uint32_t value = kExponent == 5 && magnitude == kFirst ? infinity : 0x7FFF;
      const uint32_t put =
          i % 2 == 0 ? (pairs[i / 2] & 0xFFFF0000) | value : (pairs[i / 2] & 0xFFFF) | value << 16;
      pairs[i / 2] = magnitude < kFirst ? pairs[i / 2] : put;
    }
  }
};

// e2m1, with the even k in the low nibble. With kScaled (nvfp4), elements are multiplied by the e4m3 scale of
// 16 elements, parameters.word[0]. The product has six significant bits, so it is exact, and the sum runs
// over the whole row. Scaling sums of 16 would take as many float32 operations as tensor cores leave time
// for.
template <bool kScaled>
struct E2m1Decoder {
  static constexpr int kBits = 4, kXBytes = 2, kMinGroup = kScaled ? 16 : 32;
  static constexpr bool kScalesSums = !kScaled, kHasZero = false, kReadsParameters = kScaled,
                        kTwoLevels = false;
  QCTS_DEVICE explicit E2m1Decoder(const Weight&) {}

  template <class T>
  static QCTS_DEVICE void operands(uint32_t word, const Words2& parameters, uint32_t (&pairs)[4]) {
    const float scale = float_of(parameters.word[0]);
    const uint32_t scales = kScaled ? Pair<T>::pack(scale, scale) : 0;
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) {
      pairs[i] = small_floats<T, 2, 1>(nibble_pair<false>(word, i, 12, 0));
      if (kScaled) pairs[i] = Pair<T>::fma(pairs[i], scales, kMinusZeros);
    }
  }
};

// Tables and gaps.

// A table of 16 values in the weight's dtype, with the even k in the high nibble. If x has that dtype, four
// codes become the selectors of byte permutations, and the low and the high bytes are looked up apart. So no
// lookup goes to memory.
struct Nf4Decoder {
  static constexpr int kBits = 4, kXBytes = 2, kMinGroup = 32;
  static constexpr bool kScalesSums = true, kHasZero = false, kReadsParameters = false, kTwoLevels = true;
  uint32_t low[4] = {}, high[4] = {};  // the bytes of the 16 values
  const uint8_t* table;
  uint32_t dtype;
  QCTS_DEVICE explicit Nf4Decoder(const Weight& weight) : table(weight.table), dtype(weight.scale_type) {
    if (dtype == QCTS_F32) return;
    QCTS_UNROLL
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = load_global<uint16_t>(table + 2 * i);
      low[i / 4] |= (bits & 0xFF) << 8 * (i % 4);
      high[i / 4] |= bits >> 8 << 8 * (i % 4);
    }
  }

  template <class T>
  QCTS_DEVICE void operands(uint32_t word, const Words2&, uint32_t (&pairs)[4]) const {
    QCTS_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t codes = word >> 16 * i & 0x7777,
                     is_upper = permute_bytes(0, 0xFF, word >> 16 * i >> 1 & 0x4444);
      const uint32_t lows = looked_up(low, codes, is_upper), highs = looked_up(high, codes, is_upper);
      pairs[2 * i] = permute_bytes(lows, highs, 0x4051);
      pairs[2 * i + 1] = permute_bytes(lows, highs, 0x6273);
    }
  }
  QCTS_DEVICE void floats(const uint32_t* words, float (&w)[8]) const {
    QCTS_UNROLL
    for (int i = 0; i < 8; ++i)
      w[i] = load_float(dtype, table, words[0] >> (8 * (i / 2) + (i % 2 == 0 ? 4 : 0)) & 15);
  }

 private:
  static QCTS_DEVICE uint32_t looked_up(const uint32_t (&bytes)[4], uint32_t codes, uint32_t is_upper) {
    return and_or(permute_bytes(bytes[2], bytes[3], codes), is_upper,
                  permute_bytes(bytes[0], bytes[1], codes) & ~is_upper);
  }
};

// 2:4 sparse e4m3. A word has the four codes of eight k. parameters.word[1] is the byte of their places, with
// a nibble for two of four. If both codes have the same place, the second counts. Places of 0 mean that
// nothing is stored. The decoder fills in the zeros. Sparse matrix instructions of sm_80 would save half of
// the products, but not of the bytes, which limit few rows. They also take their places in another order.
struct SparseDecoder {
  static constexpr int kBits = 4, kXBytes = 2, kMinGroup = 8;
  static constexpr bool kScalesSums = false, kHasZero = false, kReadsParameters = true, kTwoLevels = false;
  QCTS_DEVICE explicit SparseDecoder(const Weight&) {}

  template <class T>
  static QCTS_DEVICE void operands(uint32_t word, const Words2& parameters, uint32_t (&pairs)[4]) {
    QCTS_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t places = parameters.word[1] >> 4 * i & 15, first = places & 3, second = places >> 2;
      const uint32_t codes = word >> 16 * i, one = first == second ? 0 : (codes & 0xFF) << 8 * first;
      uint32_t four[2];
      FloatDecoder<4, 3>::operands<T>(places == 0 ? 0 : one | (codes >> 8 & 0xFF) << 8 * second, parameters,
                                      four);
      pairs[2 * i] = four[0];
      pairs[2 * i + 1] = four[1];
    }
  }
};

// Decodes eight weights to floats, from kBits / 4 words.
template <class Decoder>
QCTS_DEVICE void decode_floats(const Decoder& decoder, const uint32_t* words, const Words2& parameters,
                               float (&w)[8]) {
  if constexpr (requires { decoder.floats(words, w); }) {
    decoder.floats(words, w);
  } else {
    constexpr int kPairs = 16 / Decoder::kBits;
    QCTS_UNROLL
    for (int word = 0; word < Decoder::kBits / 4; ++word) {
      uint32_t pairs[kPairs];
      decoder.template operands<BF16>(words[word], parameters, pairs);
      QCTS_UNROLL
      for (int i = 0; i < kPairs; ++i) {
        w[2 * (word * kPairs + i)] = float_of(pairs[i] << 16);
        w[2 * (word * kPairs + i) + 1] = float_of(pairs[i] & 0xFFFF0000);
      }
    }
  }
}

}  // namespace
}  // namespace qcts::sm80
