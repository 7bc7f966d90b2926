// SPDX-License-Identifier: BSD-3-Clause
// x in fixed point by VPDPBUSD of 512 bits.
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
