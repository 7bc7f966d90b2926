// SPDX-License-Identifier: BSD-3-Clause
// An affine quantized weight of torchao's first generation, taken apart: one code an element, scales and zero
// points over a grid of blocks. The spellings of 0.5 and 0.6 ("layout_tensor", *AQTLayout) and those since
// 0.7 ("tensor_impl", *AQTTensorImpl) are one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

enum class ZeroPoints : uint8_t {
  integer,  // ZeroPointDomain.INT: (code - zero point) * scale
  none,     // ZeroPointDomain.NONE, None before 0.9: code * scale
  floating  // ZeroPointDomain.FLOAT: (code - middle) * scale + zero point
};

struct Affine {
  DType dtype = DType::float32;  // of the weight
  std::vector<int64_t> shape;
  std::vector<int64_t> block;          // elements a block, one number a dimension
  std::vector<double> codes;           // row-major, one an element
  const Tensor* scale = nullptr;       // one a block, row-major over the grid of blocks
  const Tensor* zero_point = nullptr;  // nullptr: zeros
  ZeroPoints domain = ZeroPoints::integer;
  double middle = 0;  // (quant_max + quant_min + 1) / 2, of `floating`
  std::string impl;   // class of the layout: "PlainAQTTensorImpl"
};

// Values of prepacked small floats, row-major [rows, columns]; nullopt where the bytes do not fit. floatx.cc.
std::optional<std::vector<double>> floatx_codes(const Tensor& packed, int64_t rows, int64_t columns,
                                                int exponent_bits, int mantissa_bits);
// Sign, exponent, mantissa, from the high bits; bias 2^(e-1) - 1, subnormals, no infinity and no NaN.
double floatx_value(int code, int exponent_bits, int mantissa_bits);

// Row-major; NaN for elements that are neither floats nor integers of up to 64 bits.
std::vector<double> numbers_of(const Tensor& tensor);

// Prefix of the parts of the AffineQuantizedTensor in a tensor: "" or "original_weight_tensor."; nullopt when
// there is none.
std::optional<std::string> affine_prefix(const NamedTensor& tensor);
// nullopt for another class, an unknown or transposed layout, or parts that contradict each other.
std::optional<Affine> read_affine(const NamedTensor& tensor);

// What a tensor means as plain numbers by its producer's own dequantize(), for tensors that no scheme of the
// list has: the first generation of torchao's subclasses, and subclasses around a plain weight. Row-major, of
// the tensor's own shape and dtype. nullopt where nothing here knows the class, its layout, or the values in
// it (a zero point that is no integer). Sources: affine.cc.
std::optional<Tensor> dense_by_dialect(const NamedTensor& tensor);

}  // namespace qcts
