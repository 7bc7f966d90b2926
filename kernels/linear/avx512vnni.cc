// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx512vnni/dots.h"
#include "kernels/avx512vnni/fixed.h"

using namespace qcts;

// Layout and limits: kernels/fixed/int8.h, kernels/vnni/fixed_dots.h.
const qcts_kernel qcts_kernel_linear_int8_row_avx512vnni =
    fixed::linear_of<qcts_kernel_linear_int8_row_avx512vnni,
                     fixed::Int8Rows<TorchaoRows, avx512vnni::ByteDots>>(
        "int8_row", "avx512vnni",
        "64 columns per block; codes times two or four bytes of x in fixed point, by VPDPBUSD; bound by "
        "reading weights, then by the products");

// W8A8, x quantized to int8 at run time: kernels/vnni/int8_linear.h, kernels/vnni/dots.h.
const qcts_kernel qcts_kernel_linear_int8_row_dyn_avx512vnni = vnni::int8_linear_of<
    qcts_kernel_linear_int8_row_dyn_avx512vnni, avx512vnni::Vector, vnni::Int8Row,
    vnni::Dots<avx512vnni::Vector>>(
    vnni::Int8Row::kScheme, "avx512vnni",
    "bytes multiplied four at a time into exact integer sums, 6 rows by 64 columns in registers; bound by "
    "reading weights up to m = 16, then by the multiplications");

// 8da4w and its wider and narrower siblings: kernels/vnni/int8_linear.h, kernels/vnni/dots.h. A load, a shift
// and two masks decode 64 bytes to 128 weights.
const qcts_kernel qcts_kernel_linear_intx_dyn_avx512vnni =
    vnni::intx_linear_of<qcts_kernel_linear_intx_dyn_avx512vnni, avx512vnni::Vector,
                         vnni::Dots<avx512vnni::Vector>>(
        "avx512vnni",
        "nibbles masked to bytes in registers up to m = 6, else to a panel, multiplied four at a time into "
        "exact integer sums; bound by reading weights, then by the scales of small groups");

// Layout and limits: kernels/fixed/int4.h, kernels/vnni/fixed_dots.h.
const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx512vnni =
    fixed::linear_of<qcts_kernel_linear_int4_tinygemm_avx512vnni,
                     fixed::Int4Groups<TinygemmPlanes, avx512vnni::NibbleDots>>(
        "int4_tinygemm", "avx512vnni",
        "64 columns per block; nibbles times two or four bytes of x in fixed point, by VPDPBUSD; bound by "
        "reading weights, then by the products");

const qcts_kernel qcts_kernel_linear_int4_plain_avx512vnni =
    fixed::linear_of<qcts_kernel_linear_int4_plain_avx512vnni,
                     fixed::Int4Groups<PlainPlanes, avx512vnni::NibbleDots>>(
        "int4_plain", "avx512vnni",
        "64 columns per block; nibbles times two or four bytes of x in fixed point, by VPDPBUSD; bound by "
        "reading weights, then by the products");

const qcts_kernel qcts_kernel_linear_tinyq_avx512vnni =
    fixed::linear_of<qcts_kernel_linear_tinyq_avx512vnni, fixed::Int8Rows<TinyqRows, avx512vnni::ByteDots>>(
        "tinyq", "avx512vnni",
        "64 columns per block; codes times two or four bytes of x in fixed point, by VPDPBUSD; bound by "
        "reading weights, then by the products");
