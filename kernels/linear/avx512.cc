// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx512/fp8.h"
#include "kernels/avx512/int4.h"
#include "kernels/avx512/int8_rows.h"

using namespace qcts;

// Layout and limits: kernels/avx512/int8_rows.h.
const qcts_kernel qcts_kernel_linear_int8_row_avx512 =
    avx512::linear_of<qcts_kernel_linear_int8_row_avx512, avx512::Int8Row<TorchaoRows>>(
        "int8_row",
        "64 columns per block, decoded in registers up to m = 4, else to a panel; bound by reading weights, "
        "then by fma");

// Layout and limits: kernels/avx512/int4.h, kernels/avx512/nibble_lut.h.
const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx512 = avx512::linear_of<
    qcts_kernel_linear_int4_tinygemm_avx512, avx512::Int4Words<TinygemmPlanes>>(
    "int4_tinygemm",
    "64 columns per block, nibbles looked up in registers up to m = 4, else to a panel; bound by decoding, "
    "then by fma");

const qcts_kernel qcts_kernel_linear_int4_plain_avx512 = avx512::linear_of<
    qcts_kernel_linear_int4_plain_avx512, avx512::Int4Words<PlainPlanes>>(
    "int4_plain",
    "64 columns per block, nibbles looked up in registers up to m = 4, else to a panel; bound by decoding, "
    "then by fma");

// Layout and limits: kernels/avx512/fp8.h.
const qcts_kernel qcts_kernel_linear_fp8_row_avx512 =
    avx512::linear_of<qcts_kernel_linear_fp8_row_avx512, avx512::Fp8Row>(
        "fp8_row",
        "64 columns per block, decoded in registers up to m = 4, else to a panel; bound by reading weights, "
        "then by fma");

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512 =
    avx512::linear_of<qcts_kernel_linear_fp8_sparse24_avx512, avx512::Fp8Sparse24>(
        "fp8_sparse24", "expanded when packed, then as fp8_row; bound by reading weights, then by fma");

const qcts_kernel qcts_kernel_linear_tinyq_avx512 =
    avx512::linear_of<qcts_kernel_linear_tinyq_avx512, avx512::Int8Row<TinyqRows>>(
        "tinyq",
        "64 columns per block, decoded in registers up to m = 4, else to a panel; bound by reading weights, "
        "then by fma");
