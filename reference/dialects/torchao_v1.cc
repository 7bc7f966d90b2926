// SPDX-License-Identifier: BSD-3-Clause
// Reads pickled tensor subclasses of torchao's first generation (0.7 to 0.15, torchao/dtypes; deleted in
// 0.18): AffineQuantizedTensor around a tensor_impl, and wrappers around that. Inner tensors and attributes
// get dotted names ("tensor_impl.packed_weight", "tensor_impl._layout"). Shape and dtype come from the
// wrapper and are listed after the class's own attributes.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

std::string impl_class(const NamedTensor& tensor) {
  const auto impl = tensor.attributes.find("tensor_impl");
  return impl != tensor.attributes.end() && impl->is_object() ? impl->value("_type", "") : "";
}

int64_t group_of(const NamedTensor& tensor) {
  const std::vector<int64_t> blocks = require_positive_list(tensor, "block_size");
  if (blocks.size() != 2 || blocks[0] != 1 || tensor.shape.size() != 2)
    contradict(tensor,
               "block_size " + shape_text(blocks) + " is not a group along K of " + shape_text(tensor.shape));
  return blocks[1];
}

// dtypes/uintx/int4_cpu_layout.py: two codes per byte in the CPU's order, pairs [K/g, N, 2].
void check_int4_cpu(const NamedTensor& t) {
  const int64_t group = group_of(t);
  if (t.shape[1] % group || t.shape[1] % 2)
    contradict(t, "groups of " + std::to_string(group) + " do not divide " + shape_text(t.shape));
  require_shape(t, "tensor_impl.packed_weight",
                require_payload(t, "tensor_impl.packed_weight", {DType::uint8}),
                {t.shape[0], t.shape[1] / 2});
  require_shape(t, "tensor_impl.scale_and_zero", require_payload(t, "tensor_impl.scale_and_zero", {t.dtype}),
                {t.shape[1] / group, t.shape[0], 2});
}

// dtypes/uintx/tensor_core_tiled_layout.py: words [n/8][k/(16 t)][32][t/2], t = _layout.inner_k_tiles.
void check_tensor_core_tiled(const NamedTensor& t) {
  const int64_t group = group_of(t);
  const Tensor& words = require_payload(t, "tensor_impl.packed_weight", {DType::int32});
  const Json& layout = t.attributes["tensor_impl._layout"];
  const Json tiles = layout.is_object() && layout.contains("_data")
                         ? layout["_data"].value("inner_k_tiles", Json(8))
                         : Json(8);
  if (!tiles.is_number_integer()) contradict(t, "inner_k_tiles " + tiles.dump() + " is not an integer");
  const Padded padded = padded_tile(t, words, t.shape, tiles.get<int64_t>());
  if (padded.k % group) contradict(t, "groups of " + std::to_string(group) + " do not divide the padded K");
  require_shape(t, "tensor_impl.scale_and_zero",
                require_payload(t, "tensor_impl.scale_and_zero", {DType::bfloat16}),
                {padded.k / group, padded.n, 2});
}

// A function that is a class's method is pickled as getattr(CLASS, NAME), which only --allow reads.
void name_function(Json& function) {
  if (!function.is_object() || function.value("_type", "") != "function") return;
  if (Json& path = function["_data"]; path.is_string()) path = canonical_function(path.get<std::string>());
}

void check_plain(const NamedTensor& t) {
  const Tensor& codes = require_payload(t, "tensor_impl.int_data", {});
  require_shape(t, "tensor_impl.int_data", codes, t.shape);
}

void check_float8(const NamedTensor& t) {
  require_shape(t, "tensor_impl.float8_data", require_payload(t, "tensor_impl.float8_data", {}), t.shape);
}

}  // namespace

void check_affine_quantized(const NamedTensor& tensor) {
  const bool transposed = tensor.attributes.value("tensor_impl.transposed", Json(false)) == Json(true);
  if (tensor.type != "AffineQuantizedTensor" || transposed) return;
  const std::string impl = impl_class(tensor);
  for (std::string_view name : {"block_size", "quant_min", "quant_max"})
    if (!impl.empty() && !tensor.attributes.contains(name))
      contradict(tensor, "no attribute " + std::string(name));
  if (impl == "Int4CPUAQTTensorImpl") check_int4_cpu(tensor);
  if (impl == "TensorCoreTiledAQTTensorImpl") check_tensor_core_tiled(tensor);
  if (impl == "PlainAQTTensorImpl") check_plain(tensor);
  if (impl == "Float8AQTTensorImpl") check_float8(tensor);
}

NamedTensor read_torchao_v1(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget) {
  const TensorNode parts = decode_tensor_node(leaf.node);
  NamedTensor tensor;
  tensor.name = leaf.name;
  tensor.type = split_global(parts.cls).name;
  read_subclass_state(object, parts, tensor, budget);
  if (const auto function = tensor.attributes.find("input_quant_func"); function != tensor.attributes.end())
    name_function(*function);
  tensor.attributes["shape"] = tensor.shape;
  tensor.attributes["dtype"] = dtype_json(tensor.dtype);
  check_affine_quantized(tensor);
  recognize_scheme(tensor);
  return tensor;
}

}  // namespace qcts
