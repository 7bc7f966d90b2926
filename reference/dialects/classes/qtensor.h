// SPDX-License-Identifier: BSD-3-Clause
// torch's own quantized tensors (torch._utils._rebuild_qtensor), as torch 2.13.0 dequantizes them on a CPU
// (ATen/native/quantized/cpu/kernels/QuantizedOpKernels.cpp; the same bits with AVX2, AVX-512 and without):
//   per tensor, quint8, qint8, qint32  float32(int32(q - zero point)) * float32(scale)
//   per tensor, quint4x2, quint2x4     (float32(q) - float32(zero point)) * float32(scale)
//   per channel                        float32(float64(float32(q) - float32(zero point)) * scale), scales
//   float64 per channel, float zero points     (float32(q) - zero point) * float32(scale)
// Packed codes begin in the low bits of a byte. The weight is float32.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

bool is_qtensor(const NamedTensor& tensor);
// Returns "torch_qint8_tensor", "torch_quint8_channel" or "torch_quint4x2_float_channel".
std::string qtensor_scheme(const NamedTensor& tensor);
// Returns the zero points, one or one per channel, and the range that torch accepts; nullopt if they
// are floats.
struct ZeroPointRange {
  std::vector<double> zero_points;
  double least = 0, greatest = 0;
};
std::optional<ZeroPointRange> qtensor_zero_points(const NamedTensor& tensor);
// Returns nullopt for any other tensor, and for one that torch does not dequantize: zero points out of range,
// packed codes with integer zero points per channel, or packed codes that are a view.
std::optional<Tensor> dense_of_qtensor(const NamedTensor& tensor);

}  // namespace qcts
