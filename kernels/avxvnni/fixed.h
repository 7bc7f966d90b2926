// SPDX-License-Identifier: BSD-3-Clause
// Multiplies x in fixed point with VPDPBUSD in 256-bit vectors. Wider x is multiplied as floats.
#pragma once

#include "kernels/avx2/dots/int4.h"
#include "kernels/avx2/dots/int8_rows.h"
#include "kernels/avx2/dots/word_dots.h"
#include "kernels/avxvnni/dots.h"
#include "kernels/vnni/fixed_dots.h"

namespace qcts::avxvnni {
namespace {

using NibbleDots = vnni::FixedDots<Vector, 2>;
using WordDots = avx2::WordDotsOf<Vector>;

}  // namespace
}  // namespace qcts::avxvnni
