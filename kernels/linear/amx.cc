// SPDX-License-Identifier: BSD-3-Clause
// Layouts are described in kernels/bf16/<family>.h, limits in kernels/amx/bf16_linear.h.
#include "kernels/amx/bf16_linear.h"
#include "kernels/amx/int8_row.h"
#include "kernels/amx/intx.h"
#include "kernels/bf16/fp8.h"
#include "kernels/bf16/int4.h"
#include "kernels/bf16/int8.h"
#include "kernels/bf16/mx.h"
#include "kernels/bf16/nf4.h"
#include "kernels/bf16/nvfp4.h"

using namespace qcts;

const qcts_kernel qcts_kernel_linear_int8_row_amx =
    bf16::linear_of<qcts_kernel_linear_int8_row_amx, bf16::Int8Row<TorchaoRows>, amx::ExactTiles>(
        "int8_row",
        "bytes decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; bound "
        "by reading weights, then by tile multiplications");

// W8A8, x quantized to int8 at run time: kernels/vnni/int8_linear.h, kernels/amx/tiles.h.
const qcts_kernel qcts_kernel_linear_int8_row_dyn_amx =
    vnni::int8_linear_of<qcts_kernel_linear_int8_row_dyn_amx, avx512::Lanes, vnni::Int8Row, amx::Int8Tiles>(
        vnni::Int8Row::kScheme, "amx",
        "tiles of bytes into exact integer sums, 512 k of 32 columns kept in L1 while rows pass; bound by "
        "reading "
        "weights up to m = 16, then by the tile multiplications");

// 8da4w and its wider and narrower siblings with tiles: kernels/vnni/int8_linear.h, kernels/amx/intx.h.
const qcts_kernel qcts_kernel_linear_intx_dyn_amx =
    vnni::intx_linear_of<qcts_kernel_linear_intx_dyn_amx, avx512::Lanes, amx::IntxTiles, amx::NibbleTiles,
                         amx::ByteTiles>(
        "amx",
        "nibbles unpacked to a panel of bytes in L1 by the first 16 rows, tiles of bytes into exact integer "
        "sums; bound by reading weights up to m = 16, then by the tile multiplications or, in small groups, "
        "the scales");

const qcts_kernel qcts_kernel_linear_int4_tinygemm_amx =
    bf16::linear_of<qcts_kernel_linear_int4_tinygemm_amx, bf16::Int4Linear<TinygemmPlanes>,
                    amx::Bfloat16Tiles>(
        "int4_tinygemm",
        "nibbles decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; bound "
        "by reading weights, then by tile multiplications and scales");

const qcts_kernel qcts_kernel_linear_int4_plain_amx =
    bf16::linear_of<qcts_kernel_linear_int4_plain_amx, bf16::Int4Linear<PlainPlanes>, amx::Bfloat16Tiles>(
        "int4_plain",
        "nibbles decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; bound "
        "by reading weights, then by tile multiplications and scales");

const qcts_kernel qcts_kernel_linear_fp8_row_amx =
    bf16::linear_of<qcts_kernel_linear_fp8_row_amx, bf16::Fp8Row<bf16::ShiftedE4m3>, amx::Bfloat16Tiles>(
        "fp8_row",
        "bytes decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; bound "
        "by reading weights, then by tile multiplications");

const qcts_kernel qcts_kernel_linear_fp8_sparse24_amx =
    bf16::linear_of<qcts_kernel_linear_fp8_sparse24_amx, bf16::Fp8Sparse24<bf16::ShiftedE4m3>,
                    amx::Bfloat16Tiles>(
        "fp8_sparse24",
        "bytes, expanded when packed, decoded to tiles of bfloat16, during the products up to m = 16, else "
        "512 k at a time; bound by reading weights, then by tile multiplications");

const qcts_kernel qcts_kernel_linear_tinyq_amx =
    bf16::linear_of<qcts_kernel_linear_tinyq_amx, bf16::Int8Row<TinyqRows>, amx::ExactTiles>(
        "tinyq",
        "bytes decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; bound "
        "by reading weights, then by tile multiplications");

const qcts_kernel qcts_kernel_linear_mx_amx =
    bf16::mx_linear_of<qcts_kernel_linear_mx_amx, amx::Bfloat16Tiles>(
        "elements decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; "
        "bound by reading weights, then by the scales of 32 elements");

const qcts_kernel qcts_kernel_linear_nvfp4_amx =
    bf16::linear_of<qcts_kernel_linear_nvfp4_amx, bf16::Nvfp4, amx::Bfloat16Tiles>(
        "nvfp4",
        "elements decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; "
        "bound by reading weights, then by the scales of 16 elements");

const qcts_kernel qcts_kernel_linear_nf4_amx =
    bf16::nf4_linear_of<qcts_kernel_linear_nf4_amx, amx::ExactTiles>(
        "nibbles decoded to tiles of bfloat16, during the products up to m = 16, else 512 k at a time; bound "
        "by reading weights, then by tile multiplications and scales");
