// SPDX-License-Identifier: BSD-3-Clause
// Values equal the scalar variants'. One byte or half a byte in, two or four out: writing the result is the
// bound.
#include "kernels/avx2/dequantize/dequantize_scaled.h"
#include "kernels/avx2/dequantize/float8_dequantize.h"
#include "kernels/avx2/dequantize/int4_params.h"
#include "kernels/avx2/dequantize/mx_dequantize.h"
#include "kernels/avx2/dequantize/nf4_dequantize.h"
#include "kernels/avx2/dequantize/nvfp4_dequantize.h"
#include "kernels/avx2/dequantize/sparse24_dequantize.h"

using namespace qcts;

const qcts_kernel qcts_kernel_dequantize_int8_row_avx2 =
    exact_rows<qcts_kernel_dequantize_int8_row_avx2,
               avx2::fenced<avx2::dequantize_affine_rows<avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "int8_row", "avx2", "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_avx2 =
    exact_rows<qcts_kernel_dequantize_int4_tinygemm_avx2,
               avx2::dequantize_int4<avx2::TinygemmParams, avx2::ByteShuffles>>(
        QCTS_OP_DEQUANTIZE, "int4_tinygemm", "avx2",
        "16 values per group, looked up by byte shuffles; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx2 =
    exact_rows<qcts_kernel_dequantize_fp8_row_avx2,
               avx2::fenced<avx2::dequantize_float8<avx2::Float8Groups>>>(
        QCTS_OP_DEQUANTIZE, "fp8_row", "avx2", "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_tensor_avx2 =
    exact_rows<qcts_kernel_dequantize_int8_tensor_avx2,
               avx2::fenced<avx2::dequantize_affine_tensor<avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "int8_tensor", "avx2", "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_row_reduced_avx2 =
    exact_rows<qcts_kernel_dequantize_int8_row_reduced_avx2,
               avx2::fenced<avx2::dequantize_affine_rows<avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "int8_row_reduced", "avx2",
        "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_tensor_reduced_avx2 =
    exact_rows<qcts_kernel_dequantize_int8_tensor_reduced_avx2,
               avx2::fenced<avx2::dequantize_affine_tensor<avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "int8_tensor_reduced", "avx2",
        "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_group_avx2 =
    exact_rows<qcts_kernel_dequantize_int8_group_avx2,
               avx2::fenced<avx2::dequantize_affine_groups<avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "int8_group", "avx2", "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_intx_avx2 =
    exact_rows<qcts_kernel_dequantize_intx_avx2,
               avx2::fenced<avx2::dequantize_affine_groups<avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "intx", "avx2", "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int4_plain_avx2 =
    exact_rows<qcts_kernel_dequantize_int4_plain_avx2,
               avx2::dequantize_int4<avx2::PlainParams, avx2::ByteShuffles>>(
        QCTS_OP_DEQUANTIZE, "int4_plain", "avx2",
        "16 values per group, looked up by byte shuffles; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int4_int32_avx2 =
    exact_rows<qcts_kernel_dequantize_int4_int32_avx2,
               avx2::dequantize_int4<avx2::Int32Params, avx2::ByteShuffles>>(
        QCTS_OP_DEQUANTIZE, "int4_int32", "avx2",
        "16 values per group, looked up by byte shuffles; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_fp8_avx2 =
    exact_rows<qcts_kernel_dequantize_fp8_avx2, avx2::fenced<avx2::dequantize_float8<avx2::Float8Groups>>>(
        QCTS_OP_DEQUANTIZE, "fp8", "avx2", "eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_avx2 =
    exact_rows<qcts_kernel_dequantize_fp8_sparse24_avx2,
               avx2::fenced<avx2::dequantize_sparse24<avx2::SparseRows>>>(
        QCTS_OP_DEQUANTIZE, "fp8_sparse24", "avx2",
        "expanded to a byte per code by byte shuffles, then as fp8_row; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_mx_avx2 =
    exact_rows<qcts_kernel_dequantize_mx_avx2, avx2::fenced<avx2::dequantize_mx<avx2::MxBlocks>>>(
        QCTS_OP_DEQUANTIZE, "mx", "avx2",
        "a table or an exponent per block, or eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_nvfp4_avx2 = exact_rows<
    qcts_kernel_dequantize_nvfp4_avx2, avx2::fenced<avx2::dequantize_nvfp4<avx2::Nvfp4Fractions>>>(
    QCTS_OP_DEQUANTIZE, "nvfp4", "avx2",
    "two fractions per block of 16, exponents added, looked up by byte shuffles; bound by making the tables");

const qcts_kernel qcts_kernel_dequantize_nf4_avx2 =
    exact_rows<qcts_kernel_dequantize_nf4_avx2, avx2::fenced<avx2::dequantize_nf4<avx2::Nf4Bytes>>>(
        QCTS_OP_DEQUANTIZE, "nf4", "avx2",
        "16 values per group, looked up by byte shuffles; bound by writing the result");
