// SPDX-License-Identifier: BSD-3-Clause
// Computes sums as tensor cores do, after the public model MMA-Sim (arXiv 2511.10909;
// github.com/microsoft/MMA-Sim, commit c785138). The exact products and c are cut, toward zero, below 2^-F of
// the largest exponent among them. They are then added exactly, and the sum is cut, toward zero, to R
// fraction bits of float32. The exponent of a product is the sum of the factors' exponents, without
// normalization. Subnormals are kept: their exponent is that of the smallest normal number. Infinities and
// NaN add as in IEEE 754. Every NaN becomes 0x7FFFFFFF.
//
// In the model, the exponent of zero is -126, for c and for factors. Ampere's sums here follow the model; no
// Ampere GPU has been compared. An H100 (driver 580.159, qcts_device_check, seed 1) differs: where c is 0,
// sums of tiny bfloat16 products keep more bits than a unit of 2^(-126 - F) would leave. Hopper's sums here
// therefore never take the largest exponent below -133, and c = 0 does not raise it. This yields the 240
// recorded sums. It also yields exactly the number of sums that differ from the model's, 45940 of 51200000 of
// mma.sync (-132 gives 45919, -134 gives 45942). The vectors of MMA-Sim stay as they are. Zero factors do not
// raise the largest exponent either, and a sum that is cut to nothing is +0. With these two rules, all sums
// of that program are equal, including the sums of zeros next to 2^100.
#pragma once

#include <cstdint>

namespace qcts::simt {

struct SumModel {
  int fraction_bits;         // F
  int result_fraction_bits;  // R, 23 or 13
  int terms;                 // products that are added to c at once; more products are added in steps
  int least_exponent;        // the largest exponent is never taken below this
  bool zeros_count;          // true: a zero factor has exponent -126; false: its product has no exponent
};

inline constexpr SumModel kAmpereSums16 = {24, 23, 8, -126, true};       // bf16, f16, mma.sync
inline constexpr SumModel kHopperSums16 = {25, 23, 16, -133, false};     // bf16, f16, mma.sync and wgmma
inline constexpr SumModel kHopperWideSums8 = {13, 13, 32, -133, false};  // e4m3, wgmma

// The factor is significand * 2^(exponent - fraction bits of the type).
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

// Returns c plus the sum of a[i] * b[i] for all i < count.
float fused_dot(const SumModel& model, const FactorType& type, const Factor* a, const Factor* b, int count,
                float c);

}  // namespace qcts::simt
