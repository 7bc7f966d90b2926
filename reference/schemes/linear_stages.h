// SPDX-License-Identifier: BSD-3-Clause
// The roundings of a `linear`: those that a kernel declares, and those that a scheme knows of its producer.
// reference/oracle/bound.h gives the cost of each stage.
#pragma once

#include <optional>

#include "reference/formats/tensor.h"

namespace qcts {

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
};

}  // namespace qcts
