// SPDX-License-Identifier: BSD-3-Clause
// Measures how far quantized weights are from the weights that they were made from.
// A weight is what its layer applies to x: scales of x belong to it (reference/dialects/input_scale.h).
// The result is information, never a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Sums over the elements that are finite in both checkpoints.
// w is the original weight, v the dequantized one.
struct ErrorSums {
  double signal = 0;        // sum of w^2
  double noise = 0;         // sum of (v - w)^2
  double max_error = 0;     // max |v - w|
  uint64_t elements = 0;    // number of elements that are finite in both
  uint64_t non_finite = 0;  // number of elements that are NaN or infinite in one of them

  // Returns 10 log10(signal / noise) in dB, or nullopt if nothing differs or nothing is finite.
  std::optional<double> sqnr_db() const;
  void add(const ErrorSums& other);
};

struct LayerError {
  std::string name, scheme;  // `scheme` is empty if the weight belongs to none
  std::vector<int64_t> shape;
  ErrorSums sums;
  int64_t max_row = 0, max_column = 0;  // place of the first element with the largest error
  bool scales_input = false;            // the layer scales x: the dequantized weight is times that scale

  // The next three counts need a scheme with a finite set of codes.
  bool has_codes = false;
  uint64_t codes = 0;
  uint64_t saturated = 0;  // codes with the smallest or the largest value of the set
  uint64_t clipped = 0;    // saturated codes whose weight is more than half a step beyond the value

  uint64_t groups = 0;       // groups of elements that share a scale; 0 if the weight belongs to no scheme
  uint64_t zero_groups = 0;  // groups whose weights all dequantize to 0
  uint64_t lost_groups = 0;  // zero groups whose original has a weight that is not 0
};

struct QuantizationErrors {
  std::vector<LayerError> layers;         // quantized weights, in the order of the quantized checkpoint
  std::vector<LayerError> unquantized;    // plain tensors that differ from the original's
  uint64_t same = 0;                      // number of plain tensors that are the original's, bit for bit
  std::vector<std::string> missing;       // names that only the original has
  std::vector<std::string> not_compared;  // "NAME: reason" for tensors of the quantized checkpoint
  ErrorSums all;                          // over `layers`

  bool is_complete() const { return missing.empty() && not_compared.empty(); }
};

// Compares every tensor with the tensor of the same name, or the one that it is tied to (ties.h).
// The CPU layouts are assumed for CPU int4 weights whose file does not record the pack.
QuantizationErrors quantization_errors(const Checkpoint& dense, const Checkpoint& quantized,
                                       const std::string& dense_cpu_layout,
                                       const std::string& quantized_cpu_layout);

}  // namespace qcts
