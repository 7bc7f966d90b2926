// SPDX-License-Identifier: BSD-3-Clause
// How tensor cores sum, after the public model MMA-Sim (arXiv 2511.10909; github.com/microsoft/MMA-Sim,
// commit c785138): the exact products and c are cut, toward zero, below 2^-F of the largest exponent among
// them, added exactly, and the sum is cut, toward zero, to R fraction bits of float32. The exponent of a
// product is the sum of the factors' exponents, without normalization. Subnormals are kept: their exponent is
// that of the smallest normal number. Infinities and NaN add as in IEEE 754; every NaN becomes 0x7FFFFFFF.
//
// In the model the exponent of zero is -126, for c and for factors. Ampere's sums here do so; no Ampere GPU
// has been compared. An H100 (driver 580.159, qcts_device_check, seed 1) differs: where c is 0, sums of
// tiny bfloat16 products keep more bits than a unit of 2^(-126 - F) would leave. The largest exponent is
// never taken below -133, and c = 0 does not raise it: this yields the 240 recorded sums, and exactly the
// number of sums that differ from the model's, 45940 of 51200000 of mma.sync (-132: 45919; -134: 45942), and
// it leaves the vectors of MMA-Sim as they are. Zero factors do not raise it either, and a sum that is cut to
// nothing is +0: with that, all sums of that program are equal, those of zeros beside 2^100 among them.
#pragma once

#include <cstdint>

namespace qcts::simt {

struct SumModel {
  int fraction_bits;         // F
  int result_fraction_bits;  // R, 23 or 13
  int terms;                 // products that are added to c at once; more are added in steps
  int least_exponent;        // below which the largest exponent is not taken
  bool zeros_count;          // a zero factor has exponent -126; otherwise its product has none
};

inline constexpr SumModel kAmpereSums16 = {24, 23, 8, -126, true};       // bf16, f16, mma.sync
inline constexpr SumModel kHopperSums16 = {25, 23, 16, -133, false};     // bf16, f16, mma.sync and wgmma
inline constexpr SumModel kHopperWideSums8 = {13, 13, 32, -133, false};  // e4m3, wgmma

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
