// SPDX-License-Identifier: BSD-3-Clause
// Schemas of torchao's tensor subclasses, for pickles and safetensors.
// A schema has the names of the parts, the encodings of the attributes, and a rule for the shape.
// The rule derives the shape that the model sees from the shapes of the parts.
// The names and their order come from torchao 0.18.0: tensor_data_names and tensor_attribute_names
// list the required ones, optional_tensor_data_names and optional_tensor_attribute_names the others.
#pragma once

#include <string_view>
#include <vector>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

struct Outer {
  std::vector<int64_t> shape;
  DType dtype = DType::float32;
  // Describes parts that contradict each other although the class's own dequantize() allows it.
  std::string note = {};
};

struct ClassSchema {
  std::string_view name;
  std::vector<std::string_view> tensors, optional_tensors;
  std::vector<std::string_view> attributes, optional_attributes;
  // Derives the shape and dtype of the whole tensor from its parts.
  // Throws Refused (SubclassSchema) for inconsistent parts.
  // nullptr means that only the names are known, and the parts are kept unchanged.
  Outer (*outer)(const NamedTensor& tensor);
  // True if torchao's safetensors writer and reader support the class (ALLOWED_TENSORS_SUBCLASSES).
  bool in_safetensors;
  // Attributes of older versions that today's class ignores. They are kept if a file has them.
  std::vector<std::string_view> former_attributes = {};
};

// The schemas of classes that hold no weight for inference (training_schemas.cc). They check only names.
const std::vector<ClassSchema>& training_classes();

// Finds the schema of a class, with the names that torchao 0.18 gives the parts.
// Returns nullptr for an unknown class.
const ClassSchema* find_class(std::string_view name);
// Finds the schema of a tensor's class.
// If the tensor has all part names of an older version, the schema has those names.
const ClassSchema* find_class(const NamedTensor& tensor);

// Returns true if a version of the class has a part or attribute of this name, also if torchao 0.5 to 0.17
// had it, and for an unknown class.
bool is_of_class(std::string_view cls, std::string_view name);

// Sorts the payload in flatten order (required, then optional).
// Sorts the attributes in the order of torchao's encoder (optional, then required).
// A missing optional attribute becomes null, as in TorchAOBaseTensor.__setstate__.
// Throws Refused (SubclassSchema) for missing parts and, unless lenient, for unknown parts.
// If lenient, keeps unknown parts and adds a warning.
void arrange(const ClassSchema& schema, NamedTensor& tensor, bool lenient,
             std::vector<std::string>& warnings);

const Tensor* find_payload(const NamedTensor& tensor, std::string_view name);  // nullptr if there is none

// Sets `scheme` and `layout` of a tensor with checked parts, if one of schemes() describes its bytes.
void recognize_scheme(NamedTensor& tensor);

// Checks the nested implementations of torchao's first generation (torchao 0.7 to 0.15, torchao/dtypes).
// The implementations are Int4CPULayout, TensorCoreTiledLayout, PlainLayout and Float8Layout.
// Payload and attributes have dotted names. Accepts unknown layouts without a check.
void check_affine_quantized(const NamedTensor& tensor);

// Formats a shape: "[32, 64]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace qcts
