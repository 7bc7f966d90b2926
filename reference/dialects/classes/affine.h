// SPDX-License-Identifier: BSD-3-Clause
// An affine quantized weight of torchao's first generation, decoded.
// The struct has one code per element, and scales and zero points over a grid of blocks.
// torchao 0.5 and 0.6 have the class and attribute names "layout_tensor" and *AQTLayout.
// Since 0.7 the names are "tensor_impl" and *AQTTensorImpl.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

enum class ZeroPoints : uint8_t {
  integer,    // ZeroPointDomain.INT: (code - zero point) * scale
  none,       // ZeroPointDomain.NONE, or None before 0.9: code * scale
  floating,   // ZeroPointDomain.FLOAT: (code - middle) * scale + zero point
  any_number  // (code - zero point) * scale, with zero point and difference rounded to the weight's dtype
};

struct Affine {
  DType dtype = DType::float32;  // dtype of the weight
  std::vector<int64_t> shape;
  std::vector<int64_t> block;          // block size in each dimension
  std::vector<double> codes;           // row-major, one per element
  const Tensor* scale = nullptr;       // one scale per block, row-major over the grid of blocks
  const Tensor* zero_point = nullptr;  // nullptr: all zero points are 0
  ZeroPoints domain = ZeroPoints::integer;
  double middle = 0;        // (quant_max + quant_min + 1) / 2; used only by `floating`
  std::string impl;         // class of the layout: "PlainAQTTensorImpl"
  bool transposed = false;  // the model sees the last two axes swapped
};

// Returns the values of prepacked small floats, row-major [rows, columns].
// Returns nullopt if the number of bytes is wrong. Defined in floatx.cc.
std::optional<std::vector<double>> floatx_codes(const Tensor& packed, int64_t rows, int64_t columns,
                                                int exponent_bits, int mantissa_bits);
// Decodes sign, exponent and mantissa, from the high bits down. The bias is 2^(e-1) - 1.
// The format has subnormals, but neither infinity nor NaN.
double floatx_value(int code, int exponent_bits, int mantissa_bits);

// Returns the prefix that names the AffineQuantizedTensor's parts in a tensor.
// The prefix is "" or "original_weight_tensor.".
// Returns nullopt if the tensor contains no AffineQuantizedTensor.
std::optional<std::string> affine_prefix(const NamedTensor& tensor);
// Decodes a tensor. Returns nullopt for other classes, unknown layouts and inconsistent parts.
// Returns nullopt for transposed layouts too, except float8 ones.
std::optional<Affine> read_affine(const NamedTensor& tensor);
// Decodes classes that are affine without an AffineQuantizedTensor around a layout (flat_affine.cc).
std::optional<Affine> read_flat_affine(const NamedTensor& tensor);

// Returns the block size that follows from a scale's shape.
// The tensor has one scale, or one scale per block of equal size.
// Returns an empty vector if the scales do not fit the shape.
std::vector<int64_t> blocks_by_scale(const std::vector<int64_t>& shape, const Tensor& scale);
// Returns the number of blocks, or 0 if the blocks do not divide the shape.
int64_t block_count(const Affine& affine);
// Returns true if all elements are integers with a magnitude of at most 256.
bool all_integers(const Tensor& tensor);
Tensor dense_of_affine(const Affine& affine, const std::string& name);

// Dequantizes tensors that no scheme describes, as the producer's own dequantize() does.
// Such tensors are torchao's first-generation subclasses, and subclasses around a plain weight.
// The result is row-major, in the tensor's shape and dtype.
// Returns nullopt for unknown classes, layouts or values, such as a zero point that is not an integer.
// The sources are listed in affine.cc.
std::optional<Tensor> dense_by_dialect(const NamedTensor& tensor);

}  // namespace qcts
