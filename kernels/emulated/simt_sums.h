// SPDX-License-Identifier: BSD-3-Clause
// How tensor cores sum, after the public model MMA-Sim (arXiv 2511.10909; github.com/microsoft/MMA-Sim,
// commit c785138): the exact products and c are cut, toward zero, below 2^-F of the largest exponent among
// them, added exactly, and the sum is cut, toward zero, to R fraction bits of float32. The exponent of a
// product is the sum of the factors' exponents, without normalization; that of zero is -126. Subnormals are
// kept. Infinities and NaN add as in IEEE 754; every NaN becomes 0x7FFFFFFF.
#pragma once

#include <cstdint>

namespace qcts::simt {

struct SumModel {
  int fraction_bits;         // F
  int result_fraction_bits;  // R, 23 or 13
  int terms;                 // products that are added to c at once; more are added in steps
};

inline constexpr SumModel kAmpereSums16 = {24, 23, 8};      // bf16, f16, mma.sync
inline constexpr SumModel kHopperSums16 = {25, 23, 16};     // bf16, f16, mma.sync and wgmma
inline constexpr SumModel kHopperWideSums8 = {13, 13, 32};  // e4m3, wgmma

// significand * 2^(exponent - fraction bits of the type)
struct Factor {
  int32_t significand;
  int32_t exponent;
  float value;
};
struct FactorType {
  int fraction_bits;
  Factor (*decode)(uint32_t bits);
};
extern const FactorType kBf16, kF16, kE4m3;

// c + sum of a[i] * b[i], i < count.
float fused_dot(const SumModel& model, const FactorType& type, const Factor* a, const Factor* b, int count,
                float c);

}  // namespace qcts::simt
