// SPDX-License-Identifier: BSD-3-Clause
// Builds a qcts_problem from a kernel's input. No other code does. The buffers belong to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"

namespace qcts {

struct PlayedRecipe;  // reference/schemes/choices/other_recipes.h

// Returns the ABI's number of an op: QCTS_OP_LINEAR for Op::linear, 0 for Op::file.
uint32_t abi_op(Op op);
// Returns Op::file for 0 and for unknown numbers.
Op op_of(uint32_t abi_op);
// Returns QCTS_NONE for types that the ABI lacks.
uint32_t abi_dtype(DType dtype);
qcts_scheme_params abi_params(const Scheme& scheme);

// The input of an op. As in qcts_kernel.h, the op decides which fields count.
struct KernelInput {
  Op op = Op::linear;
  const Scheme* scheme = nullptr;
  WeightShape weight = {};
  // Layout of the packed planes of pack and unpack, and of the planes that linear reads.
  Layout layout = {};
  int64_t m = 0;  // used by linear and quantize_activation
  // Planes in layout "plain" for dequantize, pack, linear and quantize_activation.
  // For unpack, the planes are in `layout`. The policy's planes follow the weight's.
  // A linear that reads another layout gets packed_planes() instead.
  Planes planes = {};
  DType x_dtype = DType::bfloat16, y_dtype = DType::bfloat16, bias_dtype = DType::bfloat16;
  std::vector<std::byte> x = {};     // linear, quantize_activation: [m, k]; quantize: the float weight [n, k]
  std::vector<std::byte> bias = {};  // [n], or empty
  Policy activation = {};
  // quantize, quantize_activation: of the profile that the provider promises; null: the scheme's own.
  const PlayedRecipe* recipe = nullptr;

  bool has_rows_of_x() const { return op == Op::linear || op == Op::quantize_activation; }
  bool has_no_rows() const { return has_rows_of_x() && m == 0; }
  bool has_x() const { return has_rows_of_x() || op == Op::quantize; }
  bool has_y() const { return op == Op::linear || op == Op::dequantize; }
  int64_t x_rows() const { return has_rows_of_x() ? m : weight.n; }
  int64_t y_rows() const { return op == Op::linear ? m : weight.n; }
  DType y_type() const { return op == Op::linear ? y_dtype : weight.dtype; }
  Matrix x_matrix() const { return {x_dtype, m, weight.k, x}; }
};

// Returns the planes for a linear that reads a layout other than "plain": the weight's, as the reference
// packs them, and the policy's. Returns nullopt if the kernel gets the input's own planes. Throws
// std::invalid_argument if the input lacks a plane of the weight.
std::optional<Planes> packed_planes(const KernelInput& input);

// Owns the text and parameters that a qcts_problem points to.
class ProblemBuilder {
 public:
  // Sets op, scheme and its parameters, layout, policy, m, n, k, group and dtypes.
  // Row strides are unpadded. Sets no data.
  // Without a scheme, as for a dense layer, the family is `kernel_scheme` and there are no parameters.
  ProblemBuilder(const KernelInput& input, uint32_t threads, const char* kernel_scheme = "");
  ProblemBuilder(const ProblemBuilder&) = delete;
  ProblemBuilder& operator=(const ProblemBuilder&) = delete;

  const qcts_problem& problem() const { return problem_; }

 private:
  std::string family_, scheme_name_, layout_, activation_;
  qcts_scheme_params params_{};
  qcts_problem problem_{};
};

// Describes a row-major plane for the ABI. `spec` must outlive the result.
qcts_plane abi_plane(const PlaneSpec& spec, void* data);

}  // namespace qcts
