// SPDX-License-Identifier: BSD-3-Clause
// Multiplies x in fixed point with VPDPBUSD in 512-bit vectors.
#pragma once

#include "kernels/avx512vnni/dots.h"
#include "kernels/fixed/int4.h"
#include "kernels/fixed/int8.h"
#include "kernels/vnni/fixed_dots.h"

namespace qcts::avx512vnni {
namespace {

using NibbleDots = vnni::FixedDots<Vector, 2>;
using ByteDots = vnni::FixedDots<Vector, 1>;

}  // namespace
}  // namespace qcts::avx512vnni
