// SPDX-License-Identifier: BSD-3-Clause
// Checks the numbers of kernels/cuda/device.h, and the C++ arithmetic that kernels use in addition. Each
// thread has one case.
#include "kernels/device_check/frame.h"

namespace qcts::device_check {
namespace {

// A body that computes one word from words in[0] to in[count - 1].
#define QCTS_NUMBER(Name, count, expression)                           \
  struct Name {                                                        \
    static constexpr uint32_t kIn = count, kOut = 1;                   \
    QCTS_DEVICE static void run(const uint8_t* from, uint8_t* to) {    \
      uint32_t in[count];                                              \
      QCTS_UNROLL                                                      \
      for (uint32_t i = 0; i < count; ++i) in[i] = load_word(from, i); \
      store_word(to, 0, expression);                                   \
    }                                                                  \
  };

QCTS_DEVICE uint16_t low(uint32_t word) { return static_cast<uint16_t>(word); }

QCTS_NUMBER(Bf16ToF32, 1, bits_of(bf16_to_f32(low(in[0]))))
QCTS_NUMBER(F16ToF32, 1, bits_of(f16_to_f32(low(in[0]))))
QCTS_NUMBER(F32ToF16, 1, f32_to_f16(float_of(in[0])))
QCTS_NUMBER(F32ToBf16, 1, f32_to_bf16(float_of(in[0])))
QCTS_NUMBER(PackBf16, 2, pack_bf16(float_of(in[0]), float_of(in[1])))
QCTS_NUMBER(PackF16, 2, pack_f16(float_of(in[0]), float_of(in[1])))
QCTS_NUMBER(FmaBf16x2, 3, fma_bf16x2(in[0], in[1], in[2]))
QCTS_NUMBER(FmaF16x2, 3, fma_f16x2(in[0], in[1], in[2]))
QCTS_NUMBER(PermuteBytes, 3, permute_bytes(in[0], in[1], in[2]))
QCTS_NUMBER(AndOr, 3, and_or(in[0], in[1], in[2]))
QCTS_NUMBER(AndXor, 3, and_xor(in[0], in[1], in[2]))
QCTS_NUMBER(DotS8, 3, static_cast<uint32_t>(dot_s8(in[0], in[1], static_cast<int32_t>(in[2]))))

QCTS_NUMBER(Add, 2, bits_of(float_of(in[0]) + float_of(in[1])))
QCTS_NUMBER(Subtract, 2, bits_of(float_of(in[0]) - float_of(in[1])))
QCTS_NUMBER(Multiply, 2, bits_of(float_of(in[0]) * float_of(in[1])))
QCTS_NUMBER(Divide, 2, bits_of(float_of(in[0]) / float_of(in[1])))
QCTS_NUMBER(MultiplyThenAdd, 3, bits_of(float_of(in[0]) * float_of(in[1]) + float_of(in[2])))
QCTS_NUMBER(SquareRoot, 1, bits_of(sqrtf(float_of(in[0]))))
QCTS_NUMBER(FusedMultiplyAdd, 3, bits_of(fmaf(float_of(in[0]), float_of(in[1]), float_of(in[2]))))
QCTS_NUMBER(Magnitude, 1, bits_of(fabsf(float_of(in[0]))))
QCTS_NUMBER(Largest, 2, bits_of(fmaxf(float_of(in[0]), float_of(in[1]))))
QCTS_NUMBER(Smallest, 2, bits_of(fminf(float_of(in[0]), float_of(in[1]))))
QCTS_NUMBER(NearbyInteger, 1, bits_of(nearbyintf(float_of(in[0]))))
QCTS_NUMBER(FloatToInt, 1, static_cast<uint32_t>(static_cast<int32_t>(float_of(in[0]))))
QCTS_NUMBER(IntToFloat, 1, bits_of(static_cast<float>(static_cast<int32_t>(in[0]))))
QCTS_NUMBER(UintToFloat, 1, bits_of(static_cast<float>(in[0])))
QCTS_NUMBER(Compare, 2,
            (float_of(in[0]) < float_of(in[1]) ? 1u : 0u) | (float_of(in[0]) <= float_of(in[1]) ? 2u : 0u) |
                (float_of(in[0]) == float_of(in[1]) ? 4u : 0u) |
                (float_of(in[0]) != float_of(in[0]) ? 8u : 0u))
#undef QCTS_NUMBER

// Inputs.

constexpr int64_t kAllHalves = 1 << 16, kMany = 1 << 22;

void fill_index(Random&, int64_t index, uint32_t* in) { in[0] = static_cast<uint32_t>(index); }
void fill_float(Random& random, int64_t, uint32_t* in) { in[0] = any_float(random); }
void fill_pair(Random& random, int64_t, uint32_t* in) { float_pair(random, in); }
void fill_independent(Random& random, int64_t, uint32_t* in) {
  in[0] = any_float(random);
  in[1] = any_float(random);
}
void fill_triple(Random& random, int64_t, uint32_t* in) { float_triple(random, in); }
template <uint32_t kCount>
void fill_words(Random& random, int64_t, uint32_t* in) {
  for (uint32_t i = 0; i < kCount; ++i) in[i] = random.word();
}
// Fills a number that int32 can hold, because the conversion of a larger one is undefined.
void fill_in_range(Random& random, int64_t, uint32_t* in) {
  do in[0] = any_float(random);
  while ((in[0] & 0x7FFFFFFF) >= 0x4F000000);
}
// Fills integers, some of them near powers of two, where a conversion to float has ties.
void fill_integer(Random& random, int64_t, uint32_t* in) {
  in[0] = random.word() >> random.below(32);
  if (random.one_in(4)) in[0] = (1u << random.below(32)) + random.between(-2, 2);
  if (random.one_in(2)) in[0] = 0u - in[0];
}
// Fills two words of four bytes, and a sum that may wrap around.
void fill_dot(Random& random, int64_t, uint32_t* in) {
  const Style style = any_style(random);
  fill_row(random, style, Operand::s8, true, in, 4);
  fill_row(random, style, Operand::s8, false, in + 1, 4);
  in[2] = any_start(random, style, Operand::s8);
}

// Fills two products per word. Either all numbers are arbitrary, or the third one nearly cancels the product.
template <Operand kType>
void fill_fma(Random& random, int64_t, uint32_t* in) {
  for (uint32_t half = 0; half < 2; ++half) {
    uint32_t words[3];
    const Style style = any_style(random);
    fill_row(random, style, kType, true, words, 4);
    fill_row(random, style, kType, false, words + 1, 4);
    fill_row(random, random.one_in(2) ? style : any_style(random), kType, false, words + 2, 4);
    if (random.one_in(4)) words[2] = words[0] + random.between(-1, 1);
    for (uint32_t i = 0; i < 3; ++i) in[i] = half == 0 ? words[i] & 0xFFFF : in[i] | words[i] << 16;
  }
}

template <class Body>
Check number(const char* name, void (*fill)(Random&, int64_t, uint32_t*), Output output = Output::bits,
             int64_t cases = kMany) {
  return {.name = name,
          .in_words = Body::kIn,
          .out_words = Body::kOut,
          .fill = fill,
          .run = by_thread<Body>,
          .cases = cases,
          .output = output};
}

}  // namespace

std::vector<Check> QCTS_SIDE::checks_of_numbers() {
  return {
      number<Bf16ToF32>("bf16_to_f32", fill_index, Output::f32, kAllHalves),
      number<F16ToF32>("f16_to_f32", fill_index, Output::f32, kAllHalves),
      number<F32ToF16>("f32_to_f16", fill_float, Output::f16x2),
      number<F32ToBf16>("f32_to_bf16", fill_float, Output::bf16x2),
      number<PackBf16>("pack_bf16", fill_independent, Output::bf16x2),
      number<PackF16>("pack_f16", fill_independent, Output::f16x2),
      number<FmaBf16x2>("fma_bf16x2", fill_fma<Operand::bf16>, Output::bf16x2),
      number<FmaF16x2>("fma_f16x2", fill_fma<Operand::f16>, Output::f16x2),
      number<PermuteBytes>("permute_bytes", fill_words<3>),
      number<AndOr>("and_or", fill_words<3>),
      number<AndXor>("and_xor", fill_words<3>),
      number<DotS8>("dot_s8", fill_dot),
      number<Add>("float +", fill_pair, Output::arithmetic),
      number<Subtract>("float -", fill_pair, Output::arithmetic),
      number<Multiply>("float *", fill_pair, Output::arithmetic),
      number<Divide>("float /", fill_pair, Output::arithmetic),
      number<MultiplyThenAdd>("float * +, not fused", fill_triple, Output::arithmetic),
      number<SquareRoot>("sqrtf", fill_float, Output::arithmetic),
      number<FusedMultiplyAdd>("fmaf", fill_triple, Output::arithmetic),
      number<Magnitude>("fabsf", fill_float, Output::arithmetic),
      number<Largest>("fmaxf", fill_pair, Output::arithmetic),
      number<Smallest>("fminf", fill_pair, Output::arithmetic),
      number<NearbyInteger>("nearbyintf", fill_float, Output::arithmetic),
      number<FloatToInt>("float to int32", fill_in_range),
      number<IntToFloat>("int32 to float", fill_integer),
      number<UintToFloat>("uint32 to float", fill_integer),
      number<Compare>("float < <= == !=", fill_pair),
  };
}

}  // namespace qcts::device_check
