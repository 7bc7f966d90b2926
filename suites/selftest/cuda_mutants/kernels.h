// SPDX-License-Identifier: BSD-3-Clause
// Kernels with a fault in their numbers. They are the frames of kernels/sm80 with a family that differs in
// one function. Without the planted fault, they are the kernels of kernels.inc.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts::cuda_mutants {

extern const qcts_kernel quantize_intx, quantize_mx, quantize_fp8_row, quantize_fp8_sparse24;
extern const qcts_kernel activation_fp8, activation_fp8_row;
extern const qcts_kernel dequantize_fp8_row, pack_mx, unpack_mx;

// Calls run() with the problem as the planted fault describes it to the kernel.
qcts_status run_changed(const qcts_problem& problem, qcts_status (*run)(const qcts_problem*));

}  // namespace qcts::cuda_mutants
