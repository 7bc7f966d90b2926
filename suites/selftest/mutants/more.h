// SPDX-License-Identifier: BSD-3-Clause
// The kernels of all schemes and policies except the first three.
// The header also has the terms of one weight of those schemes.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts::mutants {

extern const qcts_kernel quantize_mx, quantize_nvfp4, quantize_nf4, quantize_intx, quantize_int4_plain,
    quantize_tinyq, quantize_fp8_sparse24;
extern const qcts_kernel activation_int8_row, activation_intx, activation_fp8_row, activation_mx,
    activation_nvfp4;
extern const qcts_kernel dequantize_mx, dequantize_nvfp4, dequantize_nf4, dequantize_intx,
    dequantize_int4_plain, dequantize_tinyq, dequantize_fp8_sparse24;
extern const qcts_kernel linear_mx, linear_nvfp4, linear_nf4, linear_intx, linear_int4_plain, linear_tinyq,
    linear_fp8_sparse24;
extern const qcts_kernel linear_int8_row_dyn, linear_intx_dyn, linear_fp8_row_dyn, linear_mx_dyn,
    linear_nvfp4_dyn;
extern const qcts_kernel pack_mx, unpack_mx, pack_nvfp4, unpack_nvfp4, pack_int4_plain, unpack_int4_plain;

// Weight (n, k) is code * scale + zero, with the faults of the calling operation.
struct Term {
  double code, scale, zero;
};
Term mx_term(const qcts_problem& p, int64_t n, int64_t k);
Term nvfp4_term(const qcts_problem& p, int64_t n, int64_t k);
Term nf4_term(const qcts_problem& p, int64_t n, int64_t k);
Term intx_term(const qcts_problem& p, int64_t n, int64_t k);
Term int4_plain_term(const qcts_problem& p, int64_t n, int64_t k);
Term tinyq_term(const qcts_problem& p, int64_t n, int64_t k);
Term fp8_row_term(const qcts_problem& p, int64_t n, int64_t k);
Term fp8_sparse24_term(const qcts_problem& p, int64_t n, int64_t k);

}  // namespace qcts::mutants
