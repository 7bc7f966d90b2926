// SPDX-License-Identifier: BSD-3-Clause
// A kernel's input in the terms of the ABI: the one place that fills a qcts_problem. Buffers are the
// caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"

namespace qcts {

// QCTS_OP_LINEAR for Op::linear; 0 for Op::file.
uint32_t abi_op(Op op);
// Op::file for 0 and for numbers that no operation has.
Op op_of(uint32_t abi_op);
// QCTS_NONE for types that the ABI does not have.
uint32_t abi_dtype(DType dtype);
qcts_scheme_params abi_params(const Scheme& scheme);

// What an op reads. Which fields count depends on the op, as in qcts_kernel.h.
struct KernelInput {
  Op op = Op::linear;
  const Scheme* scheme = nullptr;
  WeightShape weight;
  Layout layout;  // of the packed planes of pack and unpack
  int64_t m = 0;  // linear, quantize_activation
  // dequantize, pack, linear, quantize_activation: plain; unpack: in `layout`. The policy's own planes follow
  // the weight's.
  Planes planes;
  DType x_dtype = DType::bfloat16, y_dtype = DType::bfloat16, bias_dtype = DType::bfloat16;
  std::vector<std::byte> x;     // linear, quantize_activation: [m, k]; quantize: the float weight [n, k]
  std::vector<std::byte> bias;  // [n], or empty
  Policy activation;

  bool has_rows_of_x() const { return op == Op::linear || op == Op::quantize_activation; }
  bool has_x() const { return has_rows_of_x() || op == Op::quantize; }
  bool has_y() const { return op == Op::linear || op == Op::dequantize; }
  int64_t x_rows() const { return has_rows_of_x() ? m : weight.n; }
  int64_t y_rows() const { return op == Op::linear ? m : weight.n; }
  DType y_type() const { return op == Op::linear ? y_dtype : weight.dtype; }
  Matrix x_matrix() const { return {x_dtype, m, weight.k, x}; }
};

// Owns the text and the parameters that a qcts_problem points to.
class ProblemBuilder {
 public:
  // op, scheme and its parameters, layout, policy, m, n, k, group, dtypes and unpadded distances between
  // rows; no data. Without a scheme the family is `kernel_scheme`, that of a dense layer, and there are no
  // parameters.
  ProblemBuilder(const KernelInput& input, uint32_t threads, const char* kernel_scheme = "");
  ProblemBuilder(const ProblemBuilder&) = delete;
  ProblemBuilder& operator=(const ProblemBuilder&) = delete;

  const qcts_problem& problem() const { return problem_; }

 private:
  std::string family_, scheme_name_, layout_, activation_;
  qcts_scheme_params params_{};
  qcts_problem problem_{};
};

// A row-major plane as the ABI sees it. `spec` outlives the result.
qcts_plane abi_plane(const PlaneSpec& spec, void* data);

}  // namespace qcts
