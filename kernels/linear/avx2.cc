// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx2/dots/fixed_dots.h"
#include "kernels/avx2/dots/int4.h"
#include "kernels/avx2/dots/int8_rows.h"
#include "kernels/avx2/dots/word_dots.h"
#include "kernels/avx2/fp8_linear.h"

using namespace qcts;

// Layout and limits: kernels/fixed/int8.h, kernels/avx2/dots/word_dots.h; for float32 x
// kernels/avx2/dots/int8_rows.h.
const qcts_kernel qcts_kernel_linear_int8_row_avx2 =
    avx2::int8_rows_of<qcts_kernel_linear_int8_row_avx2, TorchaoRows, avx2::WordDots>(
        "int8_row", "avx2",
        "64 columns per block; codes widened to words times x in fixed point, bound by reading weights, then "
        "by integer multiply-adds; for float32 x codes become floats, in a panel for m > 4");

const qcts_kernel qcts_kernel_linear_int8_tensor_avx2 =
    avx2::int8_rows_of<qcts_kernel_linear_int8_tensor_avx2, TorchaoTensor, avx2::WordDots>(
        "int8_tensor", "avx2",
        "64 columns per block; codes widened to words times x in fixed point, bound by reading weights, then "
        "by integer multiply-adds; for float32 x codes become floats, in a panel for m > 4");

const qcts_kernel qcts_kernel_linear_int8_row_reduced_avx2 =
    avx2::int8_rows_of<qcts_kernel_linear_int8_row_reduced_avx2, TorchaoRows, avx2::WordDots>(
        "int8_row_reduced", "avx2",
        "64 columns per block; codes widened to words times x in fixed point, bound by reading weights, then "
        "by integer multiply-adds; for float32 x codes become floats, in a panel for m > 4");

const qcts_kernel qcts_kernel_linear_int8_tensor_reduced_avx2 =
    avx2::int8_rows_of<qcts_kernel_linear_int8_tensor_reduced_avx2, TorchaoTensor, avx2::WordDots>(
        "int8_tensor_reduced", "avx2",
        "64 columns per block; codes widened to words times x in fixed point, bound by reading weights, then "
        "by integer multiply-adds; for float32 x codes become floats, in a panel for m > 4");

// Layout and limits: kernels/fixed/int4.h, kernels/avx2/dots/fixed_dots.h; for float32 x
// kernels/avx2/dots/int4.h.
const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx2 = avx2::int4_linear_of<
    qcts_kernel_linear_int4_tinygemm_avx2, TinygemmPlanes, avx2::FixedNibbleDots>(
    "int4_tinygemm", "avx2",
    "64 columns per block; nibbles times two bytes of x in fixed point, bound by the products; for float32 "
    "x nibbles are looked up, to a panel for m > 4");

const qcts_kernel qcts_kernel_linear_int4_plain_avx2 = avx2::int4_linear_of<
    qcts_kernel_linear_int4_plain_avx2, PlainPlanes, avx2::FixedNibbleDots>(
    "int4_plain", "avx2",
    "64 columns per block; nibbles times two bytes of x in fixed point, bound by the products; for float32 "
    "x nibbles are looked up, to a panel for m > 4");

// Layout and limits: kernels/avx2/fp8_linear.h.
const qcts_kernel qcts_kernel_linear_fp8_row_avx2 =
    avx2::linear_of<qcts_kernel_linear_fp8_row_avx2, avx2::Fp8Row>(
        "fp8_row",
        "64 columns per block, decoded in registers up to m = 4, else to a panel; bound by reading weights, "
        "then by fma",
        supports_problem<qcts_kernel_linear_fp8_row_avx2>);

const qcts_kernel qcts_kernel_linear_tinyq_avx2 =
    avx2::int8_rows_of<qcts_kernel_linear_tinyq_avx2, TinyqRows, avx2::WordDots>(
        "tinyq", "avx2",
        "64 columns per block; codes widened to words times x in fixed point, bound by reading weights, then "
        "by integer multiply-adds; for float32 x codes become floats, in a panel for m > 4");
