// SPDX-License-Identifier: BSD-3-Clause
// Values equal the scalar variants'. One byte or half a byte in, two or four out: writing the result is the
// bound.
#include "kernels/avx512/dequantize/dequantize_scaled.h"
#include "kernels/avx512/dequantize/float8_dequantize.h"
#include "kernels/avx512/dequantize/int4_dequantize.h"
#include "kernels/avx512/dequantize/mx_dequantize.h"
#include "kernels/avx512/dequantize/nf4_dequantize.h"
#include "kernels/avx512/dequantize/nvfp4_dequantize.h"
#include "kernels/avx512/dequantize/sparse24_dequantize.h"

using namespace qcts;

const qcts_kernel qcts_kernel_dequantize_int8_row_avx512 =
    exact_rows<qcts_kernel_dequantize_int8_row_avx512,
               avx2::fenced<avx2::dequantize_affine_rows<avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_row", "avx512", "32 elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_avx512 =
    exact_rows<qcts_kernel_dequantize_int4_tinygemm_avx512,
               avx2::dequantize_int4<avx2::TinygemmParams, avx512::WordLookups>>(
        QCTS_OP_DEQUANTIZE, "int4_tinygemm", "avx512",
        "16 values per group, looked up by one permutation per 32 codes; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx512 =
    exact_rows<qcts_kernel_dequantize_fp8_row_avx512,
               avx2::fenced<avx2::dequantize_float8<avx512::Float8Tables>>>(
        QCTS_OP_DEQUANTIZE, "fp8_row", "avx512",
        "128 products per scale, looked up by permutations per 32 codes; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_tensor_avx512 =
    exact_rows<qcts_kernel_dequantize_int8_tensor_avx512,
               avx2::fenced<avx2::dequantize_affine_tensor<avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_tensor", "avx512", "32 elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_row_reduced_avx512 =
    exact_rows<qcts_kernel_dequantize_int8_row_reduced_avx512,
               avx2::fenced<avx2::dequantize_affine_rows<avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_row_reduced", "avx512",
        "32 elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_tensor_reduced_avx512 =
    exact_rows<qcts_kernel_dequantize_int8_tensor_reduced_avx512,
               avx2::fenced<avx2::dequantize_affine_tensor<avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_tensor_reduced", "avx512",
        "32 elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int8_group_avx512 =
    exact_rows<qcts_kernel_dequantize_int8_group_avx512,
               avx2::fenced<avx2::dequantize_affine_groups<avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_group", "avx512", "32 elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_intx_avx512 =
    exact_rows<qcts_kernel_dequantize_intx_avx512,
               avx2::fenced<avx2::dequantize_affine_groups<avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "intx", "avx512", "32 elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int4_plain_avx512 =
    exact_rows<qcts_kernel_dequantize_int4_plain_avx512,
               avx2::dequantize_int4<avx2::PlainParams, avx512::WordLookups>>(
        QCTS_OP_DEQUANTIZE, "int4_plain", "avx512",
        "16 values per group, looked up by one permutation per 32 codes; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_int4_int32_avx512 =
    exact_rows<qcts_kernel_dequantize_int4_int32_avx512,
               avx2::dequantize_int4<avx2::Int32Params, avx512::WordLookups>>(
        QCTS_OP_DEQUANTIZE, "int4_int32", "avx512",
        "16 values per group, looked up by one permutation per 32 codes; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_fp8_avx512 =
    exact_rows<qcts_kernel_dequantize_fp8_avx512,
               avx2::fenced<avx2::dequantize_float8<avx512::Float8Tables>>>(
        QCTS_OP_DEQUANTIZE, "fp8", "avx512",
        "128 products per scale, looked up by permutations per 32 codes; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_avx512 =
    exact_rows<qcts_kernel_dequantize_fp8_sparse24_avx512,
               avx2::fenced<avx2::dequantize_sparse24<avx512::SparseTables>>>(
        QCTS_OP_DEQUANTIZE, "fp8_sparse24", "avx512",
        "values looked up and put in their places by permutations; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_mx_avx512 =
    exact_rows<qcts_kernel_dequantize_mx_avx512, avx2::fenced<avx2::dequantize_mx<avx512::MxWords>>>(
        QCTS_OP_DEQUANTIZE, "mx", "avx512",
        "a table or an exponent per block, or eight elements at a time; bound by writing the result");

const qcts_kernel qcts_kernel_dequantize_nvfp4_avx512 = exact_rows<
    qcts_kernel_dequantize_nvfp4_avx512, avx2::fenced<avx2::dequantize_nvfp4<avx512::Nvfp4Words>>>(
    QCTS_OP_DEQUANTIZE, "nvfp4", "avx512",
    "magnitudes of two blocks of 16 in a table, looked up by one permutation for both; bound by writing the "
    "result");

const qcts_kernel qcts_kernel_dequantize_nf4_avx512 =
    exact_rows<qcts_kernel_dequantize_nf4_avx512, avx2::fenced<avx2::dequantize_nf4<avx512::Nf4Words>>>(
        QCTS_OP_DEQUANTIZE, "nf4", "avx512",
        "16 values per block, looked up by one permutation per 32 codes; bound by writing the result");
