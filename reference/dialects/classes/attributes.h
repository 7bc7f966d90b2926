// SPDX-License-Identifier: BSD-3-Clause
// Attributes of torchao tensor subclasses in torchao's own JSON encoding
// (torchao 0.18.0, prototype/safetensors/safetensors_utils.py, TensorSubclassAttributeJSONEncoder):
//   torch.dtype            {"_type": "torch.dtype", "_data": "bfloat16"}
//   enum                   {"_type": class, "_data": NAME}            (a pickle holds the value, the name is
//   looked up) dataclass, NamedTuple  {"_type": class, "_data": {field: value}} list, number, string, bool,
//   None  as they are
// Where a pickle holds what that encoder cannot express, these spellings are ours:
//   tuple                  {"_type": "tuple", "_data": [...]}
//   torch.device, layout   {"_type": "torch.device", "_data": "cpu"}
//   function               {"_type": "function", "_data": "module.name"}
//   bytes                  {"_type": "bytes", "_data": hexadecimal}
//   set                    {"_type": "set", "_data": [...]}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/formats/io/read_budget.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

using Json = nlohmann::ordered_json;

// Of a value without tensors in it. `where` ("0.weight: act_quant_kwargs") starts the detail of a refusal:
// SubclassSchema for an unknown enum value, PickleType for what no attribute is made of.
Json attribute_json(const pickle::Ref& node, const std::string& where);

// The same, charged before it is made.
Json attribute_json(const pickle::Ref& node, const std::string& where, ReadBudget& budget);

// The key of a mapping as a tensor's name spells it: text as it is, 7, True, else its JSON.
std::string key_text(const pickle::Ref& key);

// SubclassSchema unless `value`, read from safetensors metadata, holds only what torchao's decoder would
// build: known classes, known enum names, known dtypes. A dtype that names something else in torch is marked
// as a security refusal.
void check_attribute_json(const Json& value, const std::string& where);

// {"_type": "torch.dtype", "_data": ...}
Json dtype_json(DType dtype);
Json dtype_json(std::string_view name);  // "int4" too, which no tensor has

// The value behind an enum member's name: a text for a string enum, otherwise a number.
struct EnumValue {
  std::string_view text;
  int64_t number = 0;
};
std::optional<EnumValue> enum_value(std::string_view cls, std::string_view name);
// Field names of a NamedTuple in order; empty for any other class.
std::vector<std::string_view> named_tuple_fields(std::string_view cls);
// The element type of such an object; nullopt for int1 .. uint7 and for everything else.
std::optional<DType> dtype_of_json(const Json& value);

// "module name" of a global or of the class of a call or new object -> {"torchao.quantization",
// "Int8Tensor"}.
struct GlobalName {
  std::string_view module, name;
};
GlobalName split_global(const pickle::Ref& global);

}  // namespace qcts
