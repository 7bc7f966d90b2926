// SPDX-License-Identifier: BSD-3-Clause
// The roundings of a `linear`: those that a kernel declares, and those that a scheme knows of its producer.
// reference/oracle/bound.h gives the cost of each stage.
#pragma once

#include <optional>

#include "reference/formats/tensor.h"

namespace qcts {

// Mirrors qcts_fused_sums of kernels/abi/qcts_kernel.h.
struct FusedSums {
  int terms = 0;          // products that are added at once, in addition to the sum so far
  int fraction_bits = 0;  // bits kept below the largest exponent among them
  int result_bits = 0;    // fraction bits to which each step's result is cut
  int promote_every = 0;  // elements of k after which the partial sum is added in float32; 0: never
};

// Mirrors qcts_numerics of kernels/abi/qcts_kernel.h field by field.
// nullopt means that the stage does not round, which is the strictest claim.
struct LinearStages {
  std::optional<DType> x_cast{};
  std::optional<DType> scale_cast{};
  std::optional<DType> weight_cast{};
  std::optional<DType> product_cast{};
  DType accumulator = DType::float32;   // float32, float64, int32 (exact)
  std::optional<DType> partial_cast{};  // used only with scale_after_sum
  std::optional<DType> output_cast{};
  bool flush_subnormals = false;
  bool scale_after_sum = false;
  bool bias_in_output_cast = false;  // used only with output_cast
  std::optional<FusedSums> fused{};  // used only with a float32 accumulator; nullopt: IEEE additions
};

}  // namespace qcts
