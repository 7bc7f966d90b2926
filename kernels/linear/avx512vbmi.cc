// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx512vbmi/e4m3.h"
#include "kernels/bf16/fp8.h"
#include "kernels/bf16/mx.h"

using namespace qcts;

// Layout and limits: kernels/avx512vbmi/e4m3.h, kernels/bf16/fp8.h.
const qcts_kernel qcts_kernel_linear_fp8_row_avx512vbmi =
    bf16::linear_of<qcts_kernel_linear_fp8_row_avx512vbmi, bf16::Fp8Row<avx512vbmi::TableE4m3>,
                    avx512vbmi::Pairs>(
        "fp8_row",
        "64 columns per block, decoded to bfloat16 by tables of bytes, in registers up to m = 6, else to a "
        "panel; bound by reading weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512vbmi =
    bf16::linear_of<qcts_kernel_linear_fp8_sparse24_avx512vbmi, bf16::Fp8Sparse24<avx512vbmi::TableE4m3>,
                    avx512vbmi::Pairs>("fp8_sparse24",
                                       "expanded when packed, then as fp8_row by tables of bytes; bound by "
                                       "reading weights, then by the multiplications");

// Layout and limits: kernels/avx512vbmi/e4m3.h, kernels/bf16/mx.h.
const qcts_kernel qcts_kernel_linear_mx_avx512vbmi = bf16::mx_linear_of<
    qcts_kernel_linear_mx_avx512vbmi, avx512vbmi::Pairs, avx512vbmi::TableE4m3>(
    "64 columns per block, elements decoded to bfloat16 (e4m3 by tables of bytes) in registers up to m = 6, "
    "else to a panel; bound by reading weights, then by the multiplications and the scales of 32 elements");
