// SPDX-License-Identifier: BSD-3-Clause
// The aten plug-in. It converts the pointers of the C ABI to tensors and back.
// Only this folder includes this header,
// and this folder includes nothing of the project except the ABI header.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "kernels/abi/qcts_kernel.h"

namespace qcts_aten {

at::ScalarType scalar_type(uint32_t dtype);
bool is_float(uint32_t dtype);

// Return views of the caller's memory. Nothing is copied.
at::Tensor plane(const qcts_problem& problem, const char* name);
at::Tensor out_plane(const qcts_problem& problem, const char* name);
at::Tensor x_rows(const qcts_problem& problem);        // [m, k] of x_dtype
at::Tensor float_weight(const qcts_problem& problem);  // QUANTIZE: x as [n, k] of w_dtype
at::Tensor y_rows(const qcts_problem& problem);  // LINEAR: [m, n] of y_dtype; DEQUANTIZE: [n, k] of w_dtype
at::Tensor bias(const qcts_problem& problem);    // undefined if there is no bias

// Returns the reason why ATen's operators do not support the problem, or an empty string if they do.
// Checks dimensions, device, layout of rows, activation policy and dtypes.
// For linear, torchao multiplies in one dtype, so x, y, bias and the weight must share it.
std::string general_refusal(const qcts_problem& problem);
// If planes are given, returns the reason why a plane is missing or has another dtype or shape.
// Otherwise returns an empty string.
std::string plane_refusal(const qcts_problem& problem, const char* name, uint32_t dtype,
                          at::IntArrayRef shape);
// True if one of the [n, 1] bytes is not 0. False if the plane is not given.
bool any_byte(const qcts_problem& problem, const char* name);
qcts_status answer(const std::string& refusal, char* why, size_t why_size);

// Calls body(problem) with autograd off and with problem.threads threads, unless x has no rows.
// Turns an exception into QCTS_FAILED.
qcts_status guarded(const qcts_problem* problem, void (*body)(const qcts_problem& problem));

// Adds the bias to y [m, n], which has the dtype of x, as torchao does. Then stores y to the caller's rows.
void finish_linear(const qcts_problem& problem, at::Tensor y);

// Returns the layout that ATen selected on this machine: "cpu_avx512", "cpu_avx2" or "cpu_default".
const char* int4_layout();

// Load and save TorchScript in this process (program.cc).
// `why` receives the first line of LibTorch's message.
qcts_status load_save(const char* input_path, const char* output_path, char* why, size_t why_size);
qcts_status run_program(const qcts_program_call* call, char* why, size_t why_size);

// The functions of an entry. A packed weight is optional, and there is never a workspace.
struct Calls {
  decltype(qcts_kernel::supports) supports;
  decltype(qcts_kernel::run) run;
  decltype(qcts_kernel::prepared_bytes) prepared_bytes = nullptr;
  decltype(qcts_kernel::prepare) prepare = nullptr;
};
constexpr qcts_kernel entry(qcts_op op, const char* scheme, const char* variant, const char* description,
                            uint32_t claims, const Calls& calls, const qcts_numerics& numerics = {}) {
  return {.struct_size = sizeof(qcts_kernel),
          .op = static_cast<uint32_t>(op),
          .scheme = scheme,
          .variant = variant,
          .description = description,
          .claims = claims,
          .reserved = 0,
          .numerics = numerics,
          .supports = calls.supports,
          .workspace_bytes = nullptr,
          .prepared_bytes = calls.prepared_bytes,
          .prepare = calls.prepare,
          .run = calls.run,
          .fused_sums = {},
          .failure = nullptr,
          .reads_layouts = nullptr,
          .align_bytes = 0,
          .row_align_bytes = 0};
}

extern const qcts_kernel quantize_int8_row, dequantize_int8_row, linear_int8_row, linear_int8_row_pack,
    linear_int8_row_static;
extern const qcts_kernel quantize_fp8_row, dequantize_fp8_row, linear_fp8_row;
extern const qcts_kernel quantize_int4_tinygemm, pack_int4_tinygemm, linear_int4_tinygemm;
extern const qcts_kernel linear_dense;

}  // namespace qcts_aten
