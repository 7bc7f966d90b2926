// SPDX-License-Identifier: BSD-3-Clause
// What torchao's tensor subclasses are made of, for both containers: names of their parts, encodings of their
// attributes, and the algebra that binds the shapes of the parts to the shape that the model sees. Names and
// order: the class attributes tensor_data_names, optional_tensor_data_names, tensor_attribute_names,
// optional_tensor_attribute_names of torchao 0.18.0.
#pragma once

#include <string_view>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

struct Outer {
  std::vector<int64_t> shape;
  DType dtype = DType::float32;
};

struct ClassSchema {
  std::string_view name;
  std::vector<std::string_view> tensors, optional_tensors;
  std::vector<std::string_view> attributes, optional_attributes;
  // Shape and dtype of the whole from its parts; refuses SubclassSchema where the parts contradict each
  // other. nullptr: the class is known by its names alone, its parts are kept as they are.
  Outer (*outer)(const NamedTensor& tensor);
  // torchao's safetensors writer and reader take it (ALLOWED_TENSORS_SUBCLASSES).
  bool in_safetensors;
  // Attributes of older versions that today's class ignores; kept where a file has them.
  std::vector<std::string_view> former_attributes = {};
};

const ClassSchema* find_class(std::string_view name);  // nullptr when unknown

// Payload in flatten order (required, then optional), attributes in the order of torchao's encoder (optional,
// then required); a missing optional attribute becomes null, as TorchAOBaseTensor.__setstate__ does.
// SubclassSchema for a missing or, unless lenient, an additional part (lenient: kept, named in `warnings`).
void arrange(const ClassSchema& schema, NamedTensor& tensor, bool lenient,
             std::vector<std::string>& warnings);

const Tensor* find_payload(const NamedTensor& tensor, std::string_view name);  // nullptr when absent

// Scheme and layout of a tensor whose parts are checked: sets `scheme` and `layout` where one of schemes()
// means these bytes.
void recognize_scheme(NamedTensor& tensor);

// Checks of v1 nested implementations (torchao 0.7 to 0.15, torchao/dtypes): Int4CPULayout,
// TensorCoreTiledLayout, PlainLayout, Float8Layout. Payload and attributes under dotted names. Unknown
// layouts pass as they are.
void check_affine_quantized(const NamedTensor& tensor);

// "[32, 64]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace qcts
