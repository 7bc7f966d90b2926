// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8, for the AVX-512 variant of quantize_activation.
// kernels/avx2/quantize/int8_activation.h does the work, with the two passes of kernels/avx512/int8.h.
#pragma once

#include "kernels/avx2/quantize/int8_activation.h"
#include "kernels/avx512/int8.h"
