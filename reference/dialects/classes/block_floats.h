// SPDX-License-Identifier: BSD-3-Clause
// MXTensor and NVFP4Tensor: small floats with one scale per block of elements.
// The elements of a block are consecutive in memory. Parts and attributes have four spellings:
//   torchao 0.7 to 0.12  _data, _scale_e8m0 or _scale_e4m3, _elem_dtype
//   torchao 0.13, 0.14   qdata, the same scales
//   torchao 0.15         qdata, scale, _elem_dtype
//   since then           today's names
#pragma once

#include <optional>
#include <vector>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Returns the element type of MXTensor.elem_dtype, or nullopt if it is unknown.
// torchao has its own names for six-bit types, and until 0.11 for four-bit types too.
std::optional<DType> mx_element(const Json& elem_dtype);

struct BlockFloats {
  DType element = DType::float8_e4m3fn;
  // Row-major in the order of quantization: the axes of a transposed weight are swapped back.
  Tensor qdata;
  std::vector<int64_t> shape;  // shape of the elements, in the order of qdata
  const Tensor* scale = nullptr;
  const Tensor* outer = nullptr;  // NVFP4's per_tensor_scale
  int64_t block = 0;
  bool transposed = false, swizzled = false;
  bool high_first = false;  // four bits: the even element is in the high nibble, as up to torchao 0.14
  bool packed_six = false;  // six bits: four elements in three bytes
  // If true, the outer scale is rounded to the weight's dtype, and so is its product with a scale.
  // torchao did this up to 0.15.
  bool scales_in_dtype = false;

  int64_t blocks() const { return numel_of(shape) / block; }
  std::vector<int64_t> logical_shape() const;  // the shape that the model sees
};

// Reads the parts of either class by any of their names.
// Returns nullopt for other classes, for missing parts, and for blocks that do not divide the elements.
std::optional<BlockFloats> block_floats_of(const NamedTensor& tensor);
// Returns the number of scales that the tensor must store.
int64_t stored_scales(const BlockFloats& floats);

// Dequantizes as the class's dequantize() does, for any block size and number of dimensions.
// Transposed weights, and one outer scale per expert, are supported too.
// Returns nullopt for other classes and for scales that do not fit.
std::optional<Tensor> dense_of_block_floats(const NamedTensor& tensor);

}  // namespace qcts
