// SPDX-License-Identifier: BSD-3-Clause
// Options of the ledger (choices.h) by which implementations other than torchao quantize to mx.
#pragma once

#include <cstdint>

#include "reference/schemes/scheme.h"

namespace qcts {

enum class MxOption : uint8_t {
  exact_least_scale,  // floor, ceil, even: a scale byte of 0 divides by 2^-127, as it is decoded
  rceil_bits          // rceil: the scale byte from the bits of a float32 product
};

// Quantizes a weight, or rows of x. Throws std::invalid_argument for a scheme that has no such option.
Planes quantize_mx_by(MxOption option, const Scheme& scheme, const Matrix& weight);

}  // namespace qcts
