// SPDX-License-Identifier: BSD-3-Clause
// Argument order of the rebuild functions: torch/_utils.py, 2.13.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "reference/formats/torch/storage.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

[[noreturn]] void bad_type(const std::string& what, const Ref& node) {
  refuse(RefusalClass::PickleType, "data.pkl: " + what, node->offset);
}

int64_t integer_of(const Ref& node, const char* what) {
  if (node->kind == Kind::big_integer)
    refuse(RefusalClass::Overflow, std::string("data.pkl: ") + what + " does not fit in 64 bits",
           node->offset);
  if (node->kind != Kind::integer) bad_type(std::string(what) + " is not an integer", node);
  return node->integer;
}

bool can_require_grad(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::float64:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
    case DType::float4_e2m1fn_x2:
    case DType::complex32:
    case DType::complex64:
    case DType::complex128:
      return true;
    default:
      return false;
  }
}

// Checks that offset + sum((size - 1) * stride) is an element of the storage and one of its first `window`
// elements. Empty tensors are exempt: slices of empty tensors are saved with any offset, and torch accepts
// them (aten/src/ATen/native/Resize.h, checkInBoundsForStorage).
void check_bounds(const Tensor& tensor, const Ref& node, int64_t window) {
  const auto outside = [&](const std::string& why) {
    refuse(RefusalClass::TensorBounds, "data.pkl: a tensor over storage " + tensor.storage->key + ": " + why,
           node->offset);
  };
  if (tensor.shape.size() != tensor.stride.size()) outside("size and stride have different lengths");
  if (tensor.offset_elems < 0) outside("negative offset");
  const int64_t numel = numel_of(tensor.shape);
  using Wide = unsigned __int128;
  Wide last = static_cast<Wide>(tensor.offset_elems);
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.stride[d] < 0) outside("negative stride");
    if (numel == 0) continue;
    last += static_cast<Wide>(tensor.shape[d] - 1) * static_cast<Wide>(tensor.stride[d]);
    if (last > INT64_MAX) outside("the last element's index does not fit in 63 bits");
  }
  if (numel == 0) return;
  const Wide end = last + 1;
  if (end * dtype_bytes(tensor.dtype) > tensor.storage->bytes.size() || end > static_cast<Wide>(window)) {
    outside("element " + std::to_string(static_cast<uint64_t>(last)) + " is beyond its " +
            std::to_string(tensor.storage->bytes.size()) + " bytes");
  }
}

// Is this a view that torch conjugates or negates lazily: {"conj": True} or {"neg": True}?
bool is_lazy(const Ref& metadata) {
  if (metadata->kind == Kind::none) return false;
  if (metadata->kind != Kind::dict) bad_type("a tensor's metadata is not a dict", metadata);
  bool lazy = false;
  for (const auto& [key, value] : metadata->pairs) {
    if (key->kind != Kind::string || (key->text != "conj" && key->text != "neg") ||
        value->kind != Kind::boolean) {
      bad_type("a tensor's metadata holds more than conj and neg", key);
    }
    lazy |= value->boolean;
  }
  return lazy;
}

std::optional<Tensor> parameter_data(const TorchObject& object, const Ref& node) {
  const Ref& arguments = node->items.at(1);
  if (arguments->kind != Kind::tuple || arguments->items.empty()) return std::nullopt;
  return tensor_of(object, arguments->items[0]);
}

std::string_view typed_storage_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "FloatStorage";
    case DType::float64:
      return "DoubleStorage";
    case DType::float16:
      return "HalfStorage";
    case DType::bfloat16:
      return "BFloat16Storage";
    case DType::int8:
      return "CharStorage";
    case DType::uint8:
      return "ByteStorage";
    case DType::int16:
      return "ShortStorage";
    case DType::int32:
      return "IntStorage";
    case DType::int64:
      return "LongStorage";
    case DType::boolean:
      return "BoolStorage";
    case DType::complex64:
      return "ComplexFloatStorage";
    case DType::complex128:
      return "ComplexDoubleStorage";
    default:
      return "";
  }
}

Ref integers(std::span<const int64_t> values) {
  pickle::Refs items;
  for (int64_t value : values) items.push_back(pickle::integer(value));
  return pickle::tuple(std::move(items));
}

}  // namespace

std::vector<int64_t> dims_of(const Ref& node, uint64_t max_dims) {
  if (node->kind != Kind::tuple && is_call(node, "torch", "Size"))
    return dims_of(node->items[1]->items.at(0), max_dims);
  if (node->kind != Kind::tuple) bad_type("a size or stride is not a tuple", node);
  if (node->items.size() > max_dims) {
    refuse(RefusalClass::LimitExceeded,
           "data.pkl: a tensor of " + std::to_string(node->items.size()) + " dimensions", node->offset);
  }
  std::vector<int64_t> dims;
  dims.reserve(node->items.size());
  for (const Ref& item : node->items) dims.push_back(integer_of(item, "a dimension"));
  return dims;
}

bool is_empty_hooks(const Ref& node) {
  if (node->kind == Kind::none) return true;
  return is_call(node, "collections", "OrderedDict") && node->pairs.empty() && node->state == nullptr;
}

std::optional<DType> dtype_of_global(const Ref& node) {
  if (node->kind != Kind::global || !node->text.starts_with("torch ")) return std::nullopt;
  return dtype_from_name(std::string_view(node->text).substr(6));
}

std::optional<Tensor> rebuild_plain(const TorchObject& object, std::string_view function,
                                    const pickle::Refs& args, uint64_t max_dims) {
  const bool third = function == "_rebuild_tensor_v3";
  const size_t min_arguments = function == "_rebuild_tensor" ? 4 : third ? 7 : 6;
  if (args.size() < min_arguments || args.size() > min_arguments + (min_arguments == 4 ? 0 : 1)) {
    refuse(RefusalClass::PickleCall,
           "data.pkl: " + std::string(function) + " with " + std::to_string(args.size()) + " arguments");
  }
  const StorageId id = storage_id_of(args.at(0), object.id_parts);
  const auto index = object.storage_index.find(id.key.view());
  if (index == object.storage_index.end()) {
    refuse(RefusalClass::StorageRef, "data.pkl: no storage has the key " + id.key, args[0]->offset);
  }
  Tensor tensor;
  tensor.storage = object.storages.at(index->second);
  tensor.offset_elems = integer_of(args.at(1), "a tensor's offset");
  tensor.shape = dims_of(args.at(2), max_dims);
  tensor.stride = dims_of(args.at(3), max_dims);
  const auto dtype = third ? dtype_of_global(args.at(6)) : id.dtype;
  if (!dtype || third == id.dtype.has_value()) {
    refuse(RefusalClass::Dtype,
           "data.pkl: " + std::string(function) + " over a storage of the wrong kind, or without a dtype",
           args[0]->offset);
  }
  tensor.dtype = *dtype;
  check_bounds(tensor, args[2], id.view ? id.view->numel : std::numeric_limits<int64_t>::max());
  if (id.view) tensor.offset_elems += id.view->offset_elems;
  if (args.size() == 4) return tensor;
  if (args.at(4)->kind != Kind::boolean) bad_type("requires_grad is not a bool", args[4]);
  if (args[4]->boolean && !can_require_grad(*dtype))
    bad_type("an integer tensor requires a gradient", args[4]);
  if (!is_empty_hooks(args.at(5))) bad_type("a tensor's hooks are not an empty OrderedDict", args[5]);
  const size_t metadata = third ? 7 : 6;
  if (args.size() > metadata && is_lazy(args[metadata])) return std::nullopt;
  return tensor;
}

std::optional<Tensor> tensor_of(const TorchObject& object, const Ref& node) {
  if (node == nullptr || (node->kind != Kind::call && node->kind != Kind::new_object)) return std::nullopt;
  const Ref& callable = node->items.at(0);
  const Ref& arguments = node->items.at(1);
  if (arguments->kind != Kind::tuple) return std::nullopt;
  const auto& args = arguments->items;
  for (const char* name : {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"}) {
    if (is_global(callable, "torch._utils", name))
      return rebuild_plain(object, name, args, object.limits.dims);
    // A tensor or Parameter with its own attributes: function, type, arguments, state.
    const bool typed =
        is_global(callable, "torch._tensor", "_rebuild_from_type_v2") && args.size() == 4 &&
        is_global(args[0], "torch._utils", name) && args[2]->kind == Kind::tuple &&
        (is_global(args[1], "torch", "Tensor") || is_global(args[1], "torch.nn.parameter", "Parameter"));
    if (typed) return rebuild_plain(object, name, args[2]->items, object.limits.dims);
  }
  const bool parameter = is_global(callable, "torch._utils", "_rebuild_parameter") ||
                         is_global(callable, "torch._utils", "_rebuild_parameter_with_state") ||
                         is_global(callable, "torch.nn.parameter", "Parameter");
  return parameter ? parameter_data(object, node) : std::nullopt;
}

pickle::Ref tensor_node(const Tensor& tensor, const std::string& storage_key, bool requires_grad) {
  using pickle::call;
  using pickle::global;
  const std::string_view type = typed_storage_name(tensor.dtype);
  const bool untyped =
      type.empty();  // torch/storage.py, _new_dtypes: stored as bytes, with the dtype as an argument
  if (dtype_bits(tensor.dtype) % 8 != 0) {
    refuse(RefusalClass::Dtype, "torch has no element type for " + std::string(dtype_name(tensor.dtype)));
  }
  const uint64_t item = untyped ? 1 : dtype_bytes(tensor.dtype);
  const Ref id = pickle::tuple(
      {pickle::string("storage"), untyped ? global("torch.storage", "UntypedStorage") : global("torch", type),
       pickle::string(storage_key),
       pickle::string(tensor.storage->location.empty() ? "cpu" : tensor.storage->location),
       pickle::integer(static_cast<int64_t>(tensor.storage->bytes.size() / item))});
  pickle::Refs args = {pickle::persistent(id),         pickle::integer(tensor.offset_elems),
                       integers(tensor.shape),         integers(tensor.stride),
                       pickle::boolean(requires_grad), call(global("collections", "OrderedDict"), {})};
  if (untyped) args.push_back(global("torch", dtype_name(tensor.dtype)));
  return call(global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2"), std::move(args));
}

}  // namespace qcts
