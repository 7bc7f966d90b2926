// SPDX-License-Identifier: BSD-3-Clause
// Reads pickled tensor subclasses of torchao's first generation (0.5 to 0.17, torchao/dtypes; deleted in
// 0.18): AffineQuantizedTensor around a tensor_impl, and wrappers around that. Inner tensors and attributes
// get dotted names ("tensor_impl.packed_weight", "tensor_impl._layout"). Shape and dtype come from the
// wrapper and are listed after the class's own attributes. In 0.5 and 0.6 "tensor_impl" is "layout_tensor",
// "_layout" "layout_type", and a class *AQTTensorImpl is *AQTLayout.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

// The tensor inside an AffineQuantizedTensor: the name of its attribute, and what is common to its parts.
struct Inner {
  const NamedTensor& owner;
  std::string name = owner.attributes.contains("layout_tensor") ? "layout_tensor" : "tensor_impl";

  std::string at(std::string_view part) const { return name + "." + std::string(part); }
  Json attribute(std::string_view part) const { return owner.attributes.value(at(part), Json()); }
  void require(std::string_view part, std::initializer_list<DType> dtypes,
               const std::vector<int64_t>& shape) const {
    require_shape(owner, at(part), require_payload(owner, at(part), dtypes), shape);
  }
  // The class's name without what it shares with the others: "Plain", "Int4CPU". Empty if it is another.
  std::string kind() const {
    const Json object = owner.attributes.value(name, Json());
    const std::string type = object.is_object() ? object.value("_type", "") : "";
    const size_t end = type.find(name == "layout_tensor" ? "AQTLayout" : "AQTTensorImpl");
    return end == std::string::npos ? "" : type.substr(0, end);
  }
};

int64_t group_of(const NamedTensor& tensor) {
  const std::vector<int64_t> blocks = require_positive_list(tensor, "block_size");
  if (blocks.size() != 2 || blocks[0] != 1 || tensor.shape.size() != 2)
    contradict(tensor, "block_size " + shape_text(blocks) + " is not one group along K for shape " +
                           shape_text(tensor.shape));
  return blocks[1];
}

// dtypes/uintx/int4_cpu_layout.py: two codes per byte in the CPU's order, pairs [K/g, N, 2].
void check_int4_cpu(const Inner& inner) {
  const NamedTensor& t = inner.owner;
  const int64_t group = group_of(t);
  if (t.shape[1] % group || t.shape[1] % 2)
    contradict(t, "groups of " + std::to_string(group) + " do not divide " + shape_text(t.shape));
  inner.require("packed_weight", {DType::uint8}, {t.shape[0], t.shape[1] / 2});
  inner.require("scale_and_zero", {t.dtype}, {t.shape[1] / group, t.shape[0], 2});
}

// dtypes/uintx/tensor_core_tiled_layout.py: words [n/8][k/(16 t)][32][t/2], t = _layout.inner_k_tiles.
void check_tensor_core_tiled(const Inner& inner) {
  const NamedTensor& t = inner.owner;
  const int64_t group = group_of(t);
  const Tensor& words = require_payload(t, inner.at("packed_weight"), {DType::int32});
  const Json layout = inner.attribute(inner.name == "layout_tensor" ? "layout_type" : "_layout");
  const Json fields = layout.is_object() ? layout.value("_data", Json()) : Json();
  const Json tiles = fields.is_object() ? fields.value("inner_k_tiles", Json(8)) : Json(8);
  if (!tiles.is_number_integer()) contradict(t, "inner_k_tiles " + tiles.dump() + " is not an integer");
  const Padded padded = padded_tile(t, words, t.shape, tiles.get<int64_t>());
  if (padded.k % group) contradict(t, "groups of " + std::to_string(group) + " do not divide the padded K");
  inner.require("scale_and_zero", {DType::bfloat16}, {padded.k / group, padded.n, 2});
}

// A function that is a class's method is pickled as getattr(CLASS, NAME), which only --allow reads.
void name_function(Json& function) {
  if (!function.is_object() || function.value("_type", "") != "function") return;
  if (Json& path = function["_data"]; path.is_string()) path = canonical_function(path.get<std::string>());
}

}  // namespace

void check_affine_quantized(const NamedTensor& tensor) {
  const Inner inner{tensor};
  if (tensor.type != "AffineQuantizedTensor" || inner.attribute("transposed") == Json(true)) return;
  for (std::string_view name : {"block_size", "quant_min", "quant_max"})
    if (tensor.attributes.contains(inner.name) && !tensor.attributes.contains(name))
      contradict(tensor, "no attribute " + std::string(name));
  const std::string kind = inner.kind();
  if (kind == "Int4CPU") check_int4_cpu(inner);
  if (kind == "TensorCoreTiled") check_tensor_core_tiled(inner);
  if (kind == "Plain") inner.require("int_data", {}, tensor.shape);
  if (kind == "Float8") inner.require("float8_data", {}, tensor.shape);
}

NamedTensor read_torchao_v1(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget) {
  const TensorNode parts = decode_tensor_node(leaf.node);
  NamedTensor tensor;
  tensor.name = leaf.name;
  tensor.type = split_global(parts.cls).name;
  NamedTensor further = read_subclass_state(object, parts, tensor, budget);
  if (const auto function = tensor.attributes.find("input_quant_func"); function != tensor.attributes.end())
    name_function(*function);
  tensor.attributes["shape"] = tensor.shape;
  tensor.attributes["dtype"] = dtype_json(tensor.dtype);
  check_affine_quantized(tensor);
  recognize_scheme(tensor);
  add_further(tensor, std::move(further));
  return tensor;
}

}  // namespace qcts
