// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avxvnni/dots.h"
#include "kernels/avxvnni/fixed.h"

using namespace qcts;

// Layout and limits: kernels/fixed/int8.h, kernels/avx2/dots/word_dots.h; for float32 x
// kernels/avx2/dots/int8_rows.h.
const qcts_kernel qcts_kernel_linear_int8_row_avxvnni =
    avx2::int8_rows_of<qcts_kernel_linear_int8_row_avxvnni, TorchaoRows, avxvnni::WordDots>(
        "int8_row", "avxvnni",
        "64 columns per block; codes widened to words times x in fixed point, by VPDPWSSD; bound by reading "
        "weights, then by the products; for float32 x codes become floats, in a panel for m > 4");

// W8A8, x quantized to int8 at run time: kernels/vnni/int8_linear.h, kernels/vnni/dots.h.
const qcts_kernel qcts_kernel_linear_int8_row_dyn_avxvnni = vnni::int8_linear_of<
    qcts_kernel_linear_int8_row_dyn_avxvnni, avxvnni::Vector, vnni::Int8Row, vnni::Dots<avxvnni::Vector>>(
    vnni::Int8Row::kScheme, "avxvnni",
    "bytes multiplied four at a time into exact integer sums, 6 rows by 16 columns in registers; bound by "
    "reading weights, then by the multiplications");

// 8da4w and its wider and narrower siblings: kernels/vnni/int8_linear.h, kernels/vnni/dots.h.
const qcts_kernel qcts_kernel_linear_intx_dyn_avxvnni =
    vnni::intx_linear_of<qcts_kernel_linear_intx_dyn_avxvnni, avxvnni::Vector, vnni::Dots<avxvnni::Vector>>(
        "avxvnni",
        "nibbles masked to bytes in registers up to m = 6, else to a panel, multiplied four at a time into "
        "exact integer sums; bound by reading weights, then by the scales of small groups");

// Layout and limits: kernels/fixed/int4.h, kernels/vnni/fixed_dots.h; for float32 x kernels/avx2/dots/int4.h.
const qcts_kernel qcts_kernel_linear_int4_tinygemm_avxvnni =
    avx2::int4_linear_of<qcts_kernel_linear_int4_tinygemm_avxvnni, TinygemmPlanes, avxvnni::NibbleDots>(
        "int4_tinygemm", "avxvnni",
        "64 columns per block; nibbles times two bytes of x in fixed point, by VPDPBUSD; bound by reading "
        "weights, then by the products; for float32 x nibbles are looked up, to a panel for m > 4");

const qcts_kernel qcts_kernel_linear_int4_plain_avxvnni =
    avx2::int4_linear_of<qcts_kernel_linear_int4_plain_avxvnni, PlainPlanes, avxvnni::NibbleDots>(
        "int4_plain", "avxvnni",
        "64 columns per block; nibbles times two bytes of x in fixed point, by VPDPBUSD; bound by reading "
        "weights, then by the products; for float32 x nibbles are looked up, to a panel for m > 4");

const qcts_kernel qcts_kernel_linear_tinyq_avxvnni =
    avx2::int8_rows_of<qcts_kernel_linear_tinyq_avxvnni, TinyqRows, avxvnni::WordDots>(
        "tinyq", "avxvnni",
        "64 columns per block; codes widened to words times x in fixed point, by VPDPWSSD; bound by reading "
        "weights, then by the products; for float32 x codes become floats, in a panel for m > 4");
