// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx512/quantize/groups.h"

using namespace qcts;

// In a separate file: together with the headers of quantize_activation/avx512.cc, GCC 12 compiles the loops
// over bfloat16 differently.
const qcts_kernel qcts_kernel_quantize_activation_intx_avx512 =
    activation_rows<qcts_kernel_quantize_activation_intx_avx512,
                    avx2::quantize_affine_groups<avx512::WideAffine, intx_recipe>>(
        "intx:dyn_token_asym", "avx512",
        "ranges, parameters and codes in three passes over 16 groups; bound by all three and by memory");
