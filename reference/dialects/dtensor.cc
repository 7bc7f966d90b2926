// SPDX-License-Identifier: BSD-3-Clause
// Reads DTensors: what FSDP2 and tensor parallelism leave in a state dict. A file holds the local tensor of
// the rank that saved it, and a spec (torch/distributed/tensor/_dtensor_spec.py, 2.13): the mesh with the
// ranks, and a placement for each dimension of the mesh.
#include <algorithm>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

// The dicts of attributes in a state: with __slots__ a pair, either half of which may be None.
pickle::Refs dicts_of(const Ref& state) {
  pickle::Refs dicts;
  if (state == nullptr) return dicts;
  if (state->kind == Kind::dict) dicts.push_back(state);
  if (state->kind == Kind::tuple)
    for (const Ref& half : state->items)
      if (half->kind == Kind::dict) dicts.push_back(half);
  return dicts;
}

Ref part_of(const Ref& state, const char* name, const TensorLeaf& leaf) {
  for (const Ref& dict : dicts_of(state))
    if (const Ref part = pickle::find(dict, name); part != nullptr) return part;
  refuse(RefusalClass::SubclassSchema, leaf.name + ": a DTensor without " + name, leaf.node->offset);
}

// "Shard(0)", "Replicate()", "Partial(sum)": the values of its attributes.
std::string placement_text(const Ref& placement) {
  std::string values;
  if (placement->state != nullptr)
    for (const auto& [name, value] : placement->state->pairs)
      values += (values.empty() ? "" : ", ") + key_text(value);
  const bool object = placement->kind == Kind::new_object || placement->kind == Kind::call;
  return std::string(object ? split_global(placement->items[0]).name : "a value of no class") + "(" + values +
         ")";
}

// Returns the number of ranks in a mesh: the elements of its tensor `_rank_map`, up to 2.8 `mesh`.
int64_t rank_count(const TorchObject& object, const Ref& mesh, const TensorLeaf& leaf) {
  const Ref state = mesh->kind == Kind::new_object || mesh->kind == Kind::call ? mesh->state : nullptr;
  for (const char* name : {"_rank_map", "mesh"}) {
    const Ref ranks = state != nullptr ? pickle::find(state, name) : nullptr;
    if (ranks == nullptr) continue;
    if (const auto tensor = tensor_of(object, ranks)) return tensor->numel();
  }
  refuse(RefusalClass::SubclassSchema, leaf.name + ": a DTensor whose mesh has no ranks", leaf.node->offset);
}

NamedTensor read_local(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                       std::vector<std::string>& warnings, ReadBudget& budget) {
  if (!is_tensor_node(leaf.node))
    refuse(RefusalClass::SubclassSchema, leaf.name + ": a DTensor whose _local_tensor is not a tensor",
           leaf.node->offset);
  const TensorNode parts = decode_tensor_node(leaf.node);
  if (is_dtensor(parts))
    refuse(RefusalClass::SubclassSchema, leaf.name + ": a DTensor inside a DTensor", leaf.node->offset);
  if (parts.wrapper.empty()) return read_plain(object, leaf, budget);
  return dialect_of_class(parts.cls) == "torchao_v1"
             ? read_torchao_v1(object, leaf, budget)
             : read_torchao_v2(object, leaf, lenient, warnings, budget);
}

}  // namespace

bool is_dtensor(const TensorNode& parts) {
  const GlobalName name = split_global(parts.cls);
  return name.name == "DTensor" && name.module.starts_with("torch.distributed.");
}

NamedTensor read_dtensor(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                         std::vector<std::string>& warnings, ReadBudget& budget) {
  const TensorNode parts = decode_tensor_node(leaf.node);
  const Ref local = part_of(parts.state, "_local_tensor", leaf), spec = part_of(parts.state, "_spec", leaf);
  const bool object_spec = spec->kind == Kind::new_object || spec->kind == Kind::call;
  const Ref spec_state = object_spec ? spec->state : nullptr;
  const Ref placements = part_of(spec_state, "placements", leaf), mesh = part_of(spec_state, "mesh", leaf);
  NamedTensor tensor = read_local(object, {leaf.name, local, {}}, lenient, warnings, budget);
  const std::vector<int64_t> held = tensor.shape;
  tensor.shape = dims_of(parts.wrapper[2], object.limits.dims);
  if (held.size() != tensor.shape.size() ||
      !std::ranges::equal(held, tensor.shape, [](int64_t a, int64_t b) { return a <= b; }))
    refuse(RefusalClass::SubclassSchema,
           leaf.name + ": the local tensor " + shape_text(held) + " is not a part of " +
               shape_text(tensor.shape),
           leaf.node->offset);
  const bool alone = rank_count(object, mesh, leaf) == 1;
  bool whole = held == tensor.shape;
  Json words = Json::array();
  for (const Ref& placement : placements->items) {
    words.push_back(placement_text(placement));
    whole &= alone || words.back().get_ref<const std::string&>().find("Partial") == std::string::npos;
  }
  tensor.attributes["dtensor.placements"] = std::move(words);
  for (const Ref& state : {parts.state, spec_state})
    for (const Ref& dict : dicts_of(state))
      for (const auto& [key, value] : dict->pairs)
        if (value != local && value != spec && value != placements)
          read_parts(object, value, "dtensor." + key_text(key), tensor, budget);
  if (tensor.type == "Tensor" || tensor.type == "Parameter") tensor.type = "DTensor";
  if (whole) return tensor;
  tensor.type = "DTensor";
  tensor.attributes["dtensor.local_shape"] = held;
  tensor.scheme.clear();
  tensor.layout.reset();
  tensor.activation = {};
  for (InnerTensor& inner : tensor.payload)
    if (!inner.name.starts_with("dtensor."))
      inner.name = inner.name == "data" ? "_local_tensor" : "_local_tensor." + inner.name;
  return tensor;
}

}  // namespace qcts
