// SPDX-License-Identifier: BSD-3-Clause
// Layouts and limits are described in kernels/bf16/<family>.h.
#include "kernels/avx512bf16/gemm_tall.h"
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/fp8.h"
#include "kernels/bf16/int4.h"
#include "kernels/bf16/int8.h"
#include "kernels/bf16/mx.h"
#include "kernels/bf16/nf4.h"
#include "kernels/bf16/nvfp4.h"

using namespace qcts;

// For 7 to 12 rows int8 codes use a tall tile, kernels/avx512bf16/gemm_tall.h.
const qcts_kernel qcts_kernel_linear_int8_row_avx512bf16 =
    bf16::linear_of<qcts_kernel_linear_int8_row_avx512bf16, bf16::Int8Row<TorchaoRows>,
                    avx512bf16::TallPairs>(
        "int8_row",
        "64 columns per block, decoded to bfloat16 in registers up to m = 12, else to a panel; bound by "
        "reading weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx512bf16 = bf16::linear_of<
    qcts_kernel_linear_int4_tinygemm_avx512bf16, bf16::Int4Linear<TinygemmPlanes>, avx512bf16::Pairs>(
    "int4_tinygemm",
    "64 columns per block, nibbles looked up in registers up to m = 6, else to a panel of bfloat16; bound "
    "by reading weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_int4_plain_avx512bf16 = bf16::linear_of<
    qcts_kernel_linear_int4_plain_avx512bf16, bf16::Int4Linear<PlainPlanes>, avx512bf16::Pairs>(
    "int4_plain",
    "64 columns per block, nibbles looked up in registers up to m = 6, else to a panel of bfloat16; bound "
    "by reading weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_fp8_row_avx512bf16 = bf16::linear_of<
    qcts_kernel_linear_fp8_row_avx512bf16, bf16::Fp8Row<bf16::ShiftedE4m3>, avx512bf16::Pairs>(
    "fp8_row",
    "64 columns per block, decoded to bfloat16 in registers up to m = 6, else to a panel; bound by reading "
    "weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512bf16 =
    bf16::linear_of<qcts_kernel_linear_fp8_sparse24_avx512bf16, bf16::Fp8Sparse24<bf16::ShiftedE4m3>,
                    avx512bf16::Pairs>(
        "fp8_sparse24",
        "expanded when packed, then as fp8_row; bound by reading weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_tinyq_avx512bf16 =
    bf16::linear_of<qcts_kernel_linear_tinyq_avx512bf16, bf16::Int8Row<TinyqRows>, avx512bf16::TallPairs>(
        "tinyq",
        "64 columns per block, decoded to bfloat16 in registers up to m = 12, else to a panel; bound by "
        "reading weights, then by the multiplications");

const qcts_kernel qcts_kernel_linear_mx_avx512bf16 =
    bf16::mx_linear_of<qcts_kernel_linear_mx_avx512bf16, avx512bf16::Pairs>(
        "64 columns per block, elements decoded to bfloat16 in registers up to m = 6, else to a panel; bound "
        "by reading weights, then by the multiplications and the scales of 32 elements");

const qcts_kernel qcts_kernel_linear_nvfp4_avx512bf16 = bf16::linear_of<qcts_kernel_linear_nvfp4_avx512bf16,
                                                                        bf16::Nvfp4, avx512bf16::Pairs>(
    "nvfp4",
    "64 columns per block, elements looked up in registers up to m = 6, else to a panel of bfloat16; bound "
    "by decoding, then by the multiplications and the scales of 16 elements");

const qcts_kernel qcts_kernel_linear_nf4_avx512bf16 = bf16::nf4_linear_of<qcts_kernel_linear_nf4_avx512bf16,
                                                                          avx512bf16::Pairs>(
    "64 columns per block, the file's table looked up in registers up to m = 6, else to a panel; bound by "
    "reading weights, then by the multiplications");
