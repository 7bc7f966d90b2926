// Rows of fp8_sparse24 for the AVX-512 variant of quantize and for nothing else:
// kernels/avx2/sparse24_quantize.h with codes as float8_quantize.h makes them.
#pragma once

#include "kernels/avx2/sparse24_quantize.h"
#include "kernels/avx512/float8_quantize.h"
