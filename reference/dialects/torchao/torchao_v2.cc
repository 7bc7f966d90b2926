// SPDX-License-Identifier: BSD-3-Clause
// Reads pickled tensor subclasses of torchao's second generation (0.13 to 0.18): a wrapper subclass whose
// state is its __dict__, with inner tensors and attributes together. Most classes are in module
// torchao.quantization, prototypes in their own file's.
#include <algorithm>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

std::vector<int64_t> sizes_of(const pickle::Ref& node, const NamedTensor& tensor) {
  const pickle::Ref& list = pickle::is_call(node, "torch", "Size") && node->items[1]->items.size() == 1
                                ? node->items[1]->items[0]
                                : node;
  std::vector<int64_t> sizes;
  for (const pickle::Ref& item : list->items) {
    if (item->kind != pickle::Kind::integer)
      refuse(RefusalClass::PickleType, tensor.name + ": a size that is not an integer", node->offset);
    if (item->integer < 0) refuse(RefusalClass::Overflow, tensor.name + ": a negative size", node->offset);
    sizes.push_back(item->integer);
  }
  numel_of(sizes);
  return sizes;
}

void read_outer(const TensorNode& parts, NamedTensor& tensor) {
  const std::optional<DType> dtype = dtype_of_json(attribute_json(parts.wrapper[1], tensor.name));
  if (!dtype)
    refuse(RefusalClass::Dtype, tensor.name + ": the wrapper's dtype is unknown", parts.wrapper[1]->offset);
  tensor.dtype = *dtype;
  tensor.shape = sizes_of(parts.wrapper[2], tensor);
}

// Is this the state of a class with __slots__: a __dict__ and its slots (torch/_utils.py, _get_obj_state)?
// An empty one is None.
bool is_state_with_slots(const pickle::Ref& state) {
  const auto fits = [](const pickle::Ref& half) {
    return half->kind == pickle::Kind::dict || half->kind == pickle::Kind::none;
  };
  return state->kind == pickle::Kind::tuple && state->items.size() == 2 && fits(state->items[0]) &&
         fits(state->items[1]);
}

// Limit of one tensor: states may be shared, and attributes are searched linearly.
constexpr size_t kMaxNames = 1024;
constexpr uint64_t kPartBytes = 144 + sizeof(InnerTensor);

// `further` receives what is not of the class.
void read_state(const TorchObject& object, const pickle::Ref& state, const std::string& prefix,
                NamedTensor& tensor, NamedTensor& further, ReadBudget& budget) {
  if (is_state_with_slots(state)) {
    for (const pickle::Ref& half : state->items)
      if (half->kind == pickle::Kind::dict) read_state(object, half, prefix, tensor, further, budget);
    return;
  }
  if (state->kind == pickle::Kind::none) return;  // an object without attributes, since Python 3.11
  if (state->kind != pickle::Kind::dict)
    refuse(RefusalClass::SubclassSchema, tensor.name + ": the state of " + tensor.type + " is not a dict",
           state->offset);
  for (const auto& [key, value] : state->pairs) {
    if (key->kind != pickle::Kind::string)
      refuse(RefusalClass::SubclassSchema,
             tensor.name + ": the state of " + tensor.type + " has a key that is not a string", key->offset);
    budget.take_bytes(kPartBytes + prefix.size() + key->text.size());
    if (tensor.attributes.size() + tensor.payload.size() >= kMaxNames)
      refuse(RefusalClass::LimitExceeded, tensor.name + ": more than " + std::to_string(kMaxNames) + " parts",
             key->offset);
    const std::string name = prefix + key->text;
    if (prefix.empty() && !is_of_class(tensor.type, name)) {
      read_parts(object, value, std::string(kFurther) + name, further, budget);
      continue;
    }
    if (!is_tensor_node(value)) {
      if (holds_tensor(value, budget))
        read_parts(object, value, name, tensor, budget);
      else
        tensor.attributes[name] = attribute_json(value, tensor.name + ": " + name, budget);
      continue;
    }
    const TensorNode inner = decode_tensor_node(value);
    if (!inner.wrapper.empty()) {
      tensor.attributes[name] = Json{{"_type", split_global(inner.cls).name}};
      read_state(object, inner.state, name + ".", tensor, further, budget);
    } else if (const std::optional<Tensor> view = tensor_of(object, inner.plain)) {
      tensor.payload.push_back({name, *view});
    } else {
      refuse(RefusalClass::SubclassSchema, tensor.name + ": " + name + " is not a strided tensor",
             value->offset);
    }
  }
}

}  // namespace

NamedTensor read_subclass_state(const TorchObject& object, const TensorNode& parts, NamedTensor& tensor,
                                ReadBudget& budget) {
  read_outer(parts, tensor);
  NamedTensor further;
  further.name = tensor.name;
  read_state(object, parts.state, "", tensor, further, budget);
  for (const pickle::Ref& state : parts.parameter_states) read_attributes(object, state, further, budget);
  budget.take_bytes(heap_bytes_of(tensor) + heap_bytes_of(further));
  return further;
}

void add_further(NamedTensor& tensor, NamedTensor further) {
  for (InnerTensor& inner : further.payload) tensor.payload.push_back(std::move(inner));
  for (auto& [name, value] : further.attributes.items()) tensor.attributes[name] = std::move(value);
}

std::string_view dialect_of_class(const pickle::Ref& cls) {
  const GlobalName name = split_global(cls);
  if (!name.module.starts_with("torchao")) return "plain";
  // Modules of 0.7 to 0.15; 0.16 moved the rest of torchao.dtypes to torchao.prototype.dtypes.
  if (name.module.starts_with("torchao.dtypes") || name.module.starts_with("torchao.prototype.dtypes") ||
      name.module == "torchao.quantization.linear_activation_quantized_tensor" ||
      name.module == "torchao.quantization.linear_activation_scale" ||
      name.module == "torchao.quantization.linear_activation_weight_observed_tensor" ||
      name.module == "torchao.quantization.weight_tensor_linear_activation_quantization")
    return "torchao_v1";
  return "torchao_v2";
}

NamedTensor read_torchao_v2(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                            std::vector<std::string>& warnings, ReadBudget& budget) {
  const TensorNode parts = decode_tensor_node(leaf.node);
  NamedTensor tensor;
  tensor.name = leaf.name;
  tensor.type = split_global(parts.cls).name;
  NamedTensor further = read_subclass_state(object, parts, tensor, budget);
  if (const ClassSchema* named = find_class(tensor.type)) {
    // Dtype and shape come from the wrapper; the class's encoding lists them as attributes.
    for (const auto* names : {&named->attributes, &named->optional_attributes})
      for (std::string_view name : *names) {
        if (name == "shape") tensor.attributes["shape"] = tensor.shape;
        if (name == "dtype") tensor.attributes["dtype"] = dtype_json(tensor.dtype);
      }
  }
  const ClassSchema* schema = find_class(tensor);
  if (!schema) {
    warnings.push_back(tensor.name + ": class " + tensor.type +
                       " has no schema here; its parts are shown as they are");
    add_further(tensor, std::move(further));
    return tensor;
  }
  // A weight that is trained may be quantized itself: its parts then have longer names.
  const auto is_nested = [](const InnerTensor& part) { return part.name.find('.') != std::string::npos; };
  if (schema->outer == nullptr && std::ranges::any_of(tensor.payload, is_nested)) return tensor;
  arrange(*schema, tensor, lenient, warnings);
  if (schema->outer) {
    const Outer outer = schema->outer(tensor);
    if (!outer.note.empty()) warnings.push_back(tensor.name + ": " + outer.note);
    if (outer.shape != tensor.shape)
      contradict(tensor, "the outer shape is " + shape_text(tensor.shape) + ", its parts make " +
                             shape_text(outer.shape));
    if (outer.dtype != tensor.dtype)
      contradict(tensor, "the outer dtype is " + std::string(dtype_name(tensor.dtype)) + ", its parts make " +
                             std::string(dtype_name(outer.dtype)));
  }
  recognize_scheme(tensor);
  add_further(tensor, std::move(further));
  return tensor;
}

}  // namespace qcts
