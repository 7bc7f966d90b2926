// SPDX-License-Identifier: BSD-3-Clause
// The conversions and the 16-bit arithmetic of a GPU in plain C++.
#include "kernels/cuda/executor.h"
#include "kernels/families/elements.h"

namespace qcts::simt {
namespace {

constexpr uint16_t kNan16 = 0x7FFF;

template <float (*kDecode)(uint16_t), uint16_t (*kEncode)(float)>
uint16_t fma_16(uint16_t a, uint16_t b, uint16_t c) {
  // The product is exact in double. The sum and the narrowing round to odd, so that only the encoding rounds.
  const double product = static_cast<double>(kDecode(a)) * kDecode(b);
  return kEncode(scalar::round_to_odd(scalar::add_to_odd(product, kDecode(c))));
}
template <float (*kDecode)(uint16_t), uint16_t (*kEncode)(float)>
uint32_t fma_16x2(uint32_t a, uint32_t b, uint32_t c) {
  const uint16_t low = fma_16<kDecode, kEncode>(static_cast<uint16_t>(a), static_cast<uint16_t>(b),
                                                static_cast<uint16_t>(c)),
                 high =
                     fma_16<kDecode, kEncode>(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16),
                                              static_cast<uint16_t>(c >> 16));
  return low | static_cast<uint32_t>(high) << 16;
}

}  // namespace

float f16_to_f32(uint16_t value) {
  return (value & 0x7FFF) > 0x7C00 ? __builtin_bit_cast(float, 0x7FFFFFFFu) : scalar::f16_to_f32(value);
}
uint16_t f32_to_f16(float value) { return value != value ? kNan16 : scalar::f32_to_f16(value); }
uint16_t f32_to_bf16(float value) { return value != value ? kNan16 : scalar::f32_to_bf16(value); }

uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  return fma_16x2<scalar::bf16_to_f32, f32_to_bf16>(a, b, c);
}
uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
  return fma_16x2<scalar::f16_to_f32, f32_to_f16>(a, b, c);
}

}  // namespace qcts::simt
