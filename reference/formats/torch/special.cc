// SPDX-License-Identifier: BSD-3-Clause
// Checks tensors that are not plain views of one storage. Their parts are plain tensors; the parts must be
// consistent, so that no reader of the values can be led outside them. Argument order: torch/_utils.py, 2.13.
#include <algorithm>
#include <array>
#include <cstring>

#include "reference/formats/torch/check.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

class Checker {
 public:
  Checker(const TorchObject& object, std::string_view function, const pickle::Refs& args,
          const Limits& limits, uint64_t offset)
      : object_(object), function_(function), args_(args), limits_(limits), offset_(offset) {}

  void meta();
  void wrapper();
  void device_copy();
  void device_array();
  void sparse();
  void nested();
  void jagged();
  void quantized();

 private:
  [[noreturn]] void fail(RefusalClass cls, const std::string& what) const {
    refuse(cls, "data.pkl: " + function_ + ": " + what, offset_);
  }
  void type_is(bool right, const char* what) const {
    if (!right) fail(RefusalClass::PickleType, what);
  }
  std::vector<int64_t> shape_of(const Ref& node) const;
  Tensor part(const Ref& node, const char* what) const;
  std::vector<int64_t> integers(const Ref& node, const char* what) const;
  std::optional<Tensor> codes() const;
  void coo(const pickle::Refs& data) const;
  void compressed(const pickle::Refs& data, bool by_column, bool blocked) const;

  const TorchObject& object_;
  std::string function_;
  const pickle::Refs& args_;
  const Limits& limits_;
  uint64_t offset_;
};

std::vector<int64_t> Checker::shape_of(const Ref& node) const {
  std::vector<int64_t> shape = dims_of(node, limits_.dims);
  numel_of(shape);
  return shape;
}

Tensor Checker::part(const Ref& node, const char* what) const {
  auto tensor = tensor_of(object_, node);
  if (!tensor) fail(RefusalClass::PickleType, std::string(what) + " is not a plain tensor");
  return *tensor;
}

std::vector<int64_t> Checker::integers(const Ref& node, const char* what) const {
  const Tensor tensor = part(node, what);
  const bool narrow = tensor.dtype == DType::int32;
  if (!narrow && tensor.dtype != DType::int64)
    fail(RefusalClass::Dtype, std::string(what) + " is not an integer tensor");
  if (bytes_of(tensor.dtype, tensor.shape) > tensor.storage->bytes.size()) {
    fail(RefusalClass::LimitExceeded, std::string(what) + " is an expanded view");
  }
  std::vector<std::byte> scratch;
  const auto bytes = row_major_view(tensor, scratch);
  std::vector<int64_t> values(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (narrow) {
      int32_t value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values[i] = value;
    } else {
      std::memcpy(&values[i], bytes.data() + 8 * i, 8);
    }
  }
  return values;
}

// (dtype, size, stride, requires_grad)
void Checker::meta() {
  if (!dtype_of_global(args_[0])) fail(RefusalClass::Dtype, "no dtype");
  const auto shape = shape_of(args_[1]);
  type_is(dims_of(args_[2], limits_.dims).size() == shape.size(), "size and stride have different lengths");
  type_is(args_[3]->kind == Kind::boolean, "requires_grad is not a bool");
}

// (class, dtype, size, stride, offset, layout, device, requires_grad); the parts are in the state, which
// reference/dialects checks
void Checker::wrapper() {
  type_is(args_[0]->kind == Kind::global, "no class");
  if (!dtype_of_global(args_[1])) fail(RefusalClass::Dtype, "no dtype");
  const auto shape = shape_of(args_[2]);
  const auto stride = dims_of(args_[3], limits_.dims);
  if (stride.size() != shape.size() || std::ranges::any_of(stride, [](int64_t step) { return step < 0; })) {
    fail(RefusalClass::TensorBounds, "size and stride are inconsistent");
  }
  type_is(args_[4]->kind == Kind::integer || args_[4]->kind == Kind::none, "the offset is not an integer");
  if (args_[4]->integer < 0) fail(RefusalClass::TensorBounds, "negative offset");
  type_is(is_call(args_[5], "torch.serialization", "_get_layout"), "no layout");
  type_is(is_call(args_[6], "torch", "device"), "no device");
  type_is(args_[7]->kind == Kind::boolean, "requires_grad is not a bool");
}

// (data, dtype, device, requires_grad)
void Checker::device_copy() {
  type_is(args_[0]->kind == Kind::call, "its data is not a tensor");
  if (!dtype_of_global(args_[1])) fail(RefusalClass::Dtype, "no dtype");
  type_is(args_[2]->kind == Kind::string || is_call(args_[2], "torch", "device"), "no device");
  type_is(args_[3]->kind == Kind::boolean, "requires_grad is not a bool");
}

// (array, dtype, device, requires_grad); decode_arrays has checked the array
void Checker::device_array() {
  if (!dtype_of_global(args_[1])) fail(RefusalClass::Dtype, "no dtype");
  type_is(args_[2]->kind == Kind::string || is_call(args_[2], "torch", "device"), "no device");
  type_is(args_[3]->kind == Kind::boolean, "requires_grad is not a bool");
}

// (layout, parts)
void Checker::sparse() {
  type_is(is_call(args_[0], "torch.serialization", "_get_layout"), "no layout");
  type_is(args_[1]->kind == Kind::tuple, "the parts are not a tuple");
  const std::string& layout = args_[0]->items[1]->items[0]->text;
  const auto& data = args_[1]->items;
  const size_t wanted = layout == "torch.sparse_coo" ? 3 : 4;
  type_is(data.size() == wanted || (wanted == 3 && data.size() == 4), "wrong number of parts for the layout");
  if (layout == "torch.sparse_coo") return coo(data);
  const bool csr = layout == "torch.sparse_csr", csc = layout == "torch.sparse_csc";
  const bool bsr = layout == "torch.sparse_bsr", bsc = layout == "torch.sparse_bsc";
  type_is(csr || csc || bsr || bsc, "the layout is not sparse");
  compressed(data, csc || bsc, bsr || bsc);
}

// (indices [sparse dims, nnz], values [nnz, dense dims...], size)
void Checker::coo(const pickle::Refs& data) const {
  const Tensor indices = part(data[0], "indices"), values = part(data[1], "values");
  const auto shape = shape_of(data[2]);
  const auto outside = [&](const char* what) { fail(RefusalClass::TensorBounds, what); };
  if (indices.shape.size() != 2 || values.shape.empty()) outside("indices or values have the wrong rank");
  const auto sparse_dims = static_cast<size_t>(indices.shape[0]);
  if (sparse_dims > shape.size() || values.shape.size() != 1 + shape.size() - sparse_dims ||
      values.shape[0] != indices.shape[1] ||
      !std::equal(values.shape.begin() + 1, values.shape.end(),
                  shape.begin() + static_cast<ptrdiff_t>(sparse_dims))) {
    outside("indices, values and size are inconsistent");
  }
  const auto flat = integers(data[0], "indices");
  for (size_t i = 0; i < flat.size(); ++i) {
    const size_t dim = i / static_cast<size_t>(indices.shape[1]);
    if (flat[i] < 0 || flat[i] >= shape[dim]) outside("an index is outside the size");
  }
}

// (compressed [..., lines + 1], plain [..., nnz], values [..., nnz, block...], size); lines are rows, or
// columns for csc and bsc
void Checker::compressed(const pickle::Refs& data, bool by_column, bool blocked) const {
  const Tensor outer = part(data[0], "compressed indices"), inner = part(data[1], "plain indices");
  const Tensor values = part(data[2], "values");
  const auto shape = shape_of(data[3]);
  const auto outside = [&](const char* what) { fail(RefusalClass::TensorBounds, what); };
  const size_t batch = outer.shape.empty() ? 0 : outer.shape.size() - 1;
  if (outer.shape.empty() || inner.shape.size() != batch + 1 || shape.size() < batch + 2 ||
      values.shape.size() < batch + 1 + (blocked ? 2 : 0)) {
    outside("the parts have the wrong ranks");
  }
  for (size_t d = 0; d < batch; ++d) {
    if (outer.shape[d] != shape[d] || inner.shape[d] != shape[d] || values.shape[d] != shape[d]) {
      outside("the parts have different batches");
    }
  }
  const int64_t row_block = blocked ? values.shape[batch + 1] : 1,
                column_block = blocked ? values.shape[batch + 2] : 1;
  if (row_block < 1 || column_block < 1 || shape[batch] % row_block != 0 ||
      shape[batch + 1] % column_block != 0) {
    outside("the blocks do not tile the size");
  }
  const int64_t rows = shape[batch] / row_block, columns = shape[batch + 1] / column_block;
  const int64_t lines = by_column ? columns : rows, across = by_column ? rows : columns;
  const int64_t count = inner.shape[batch];
  if (outer.shape[batch] != lines + 1 || values.shape[batch] != count)
    outside("the parts do not match the size");
  const auto ends = integers(data[0], "compressed indices"), places = integers(data[1], "plain indices");
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t line = i % static_cast<size_t>(lines + 1);
    const bool right = line == 0 ? ends[i] == 0 : ends[i] >= ends[i - 1];
    if (!right || (line == static_cast<size_t>(lines) && ends[i] != count))
      outside("the compressed indices are inconsistent");
  }
  if (std::ranges::any_of(places, [&](int64_t place) { return place < 0 || place >= across; })) {
    outside("an index is outside the size");
  }
}

// (buffer, sizes [n, dims], strides [n, dims], offsets [n])
void Checker::nested() {
  const Tensor buffer = part(args_[0], "buffer");
  const Tensor sizes = part(args_[1], "sizes"), strides = part(args_[2], "strides");
  const auto outside = [&](const char* what) { fail(RefusalClass::TensorBounds, what); };
  if (sizes.shape.size() != 2 || sizes.shape != strides.shape) outside("sizes and strides are inconsistent");
  const auto size = integers(args_[1], "sizes"), stride = integers(args_[2], "strides");
  const auto offset = integers(args_[3], "offsets");
  if (offset.size() != static_cast<size_t>(sizes.shape[0])) outside("the offsets do not match the sizes");
  const size_t dims = static_cast<size_t>(sizes.shape[1]);
  const __int128 elements = buffer.numel();
  for (size_t i = 0; i < offset.size(); ++i) {
    const std::span<const int64_t> shape(size.data() + i * dims, dims);
    __int128 last = offset[i];
    const bool empty = numel_of(shape) == 0;
    for (size_t d = 0; d < dims && last >= 0 && last <= elements; ++d) {
      if (stride[i * dims + d] < 0) outside("negative stride");
      if (!empty) last += static_cast<__int128>(shape[d] - 1) * stride[i * dims + d];
    }
    if (last < 0 || last + (empty ? 0 : 1) > elements) outside("a component reaches outside the buffer");
  }
}

// ({"values", "offsets" [n + 1], "lengths" [n] or None, "_ragged_idx", ...}): component i starts at
// offsets[i] of `values` along the ragged dimension (torch/nested/_internal/nested_tensor.py, 2.13:
// __tensor_unflatten__)
void Checker::jagged() {
  type_is(args_.size() == 1 && args_[0]->kind == Kind::dict, "the parts are not a dict");
  const Ref offsets = pickle::find(args_[0], "offsets"), lengths = pickle::find(args_[0], "lengths");
  const Ref ragged = pickle::find(args_[0], "_ragged_idx");
  const Tensor values = part(pickle::find(args_[0], "values"), "values");
  type_is(offsets != nullptr && lengths != nullptr, "offsets or lengths are missing");
  type_is(ragged != nullptr && ragged->kind == Kind::integer, "_ragged_idx is not an integer");
  const auto outside = [&](const char* what) { fail(RefusalClass::TensorBounds, what); };
  if (ragged->integer < 1 || static_cast<uint64_t>(ragged->integer) > values.shape.size())
    outside("the ragged dimension is outside the values");
  const int64_t held = values.shape[static_cast<size_t>(ragged->integer) - 1];
  const auto begins = integers(offsets, "offsets");
  if (begins.empty() || begins[0] < 0 || !std::ranges::is_sorted(begins) || begins.back() > held)
    outside("the offsets do not divide the values");
  if (lengths->kind == Kind::none) return;
  const auto counts = integers(lengths, "lengths");
  if (counts.size() != begins.size() - 1) outside("the lengths do not match the offsets");
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0 || counts[i] > held - begins[i]) outside("a component reaches outside the values");
}

// quint4x2 and quint2x4 hold two and four codes per byte, and torch counts codes.
std::optional<Tensor> Checker::codes() const {
  const StorageId id = storage_id_of(args_[0], object_.id_parts);
  const int64_t a_byte = id.dtype == DType::quint4x2 ? 2 : id.dtype == DType::quint2x4 ? 4 : 1;
  if (a_byte == 1) {
    const pickle::Refs plain = {args_[0], args_[1], args_[2], args_[3], args_[5], args_[6]};
    return rebuild_plain(object_, "_rebuild_tensor_v2", plain, limits_.dims);
  }
  Tensor tensor = *storage_of(object_, args_[0]);
  const __int128 held = static_cast<__int128>(tensor.shape[0]) * a_byte;
  tensor.shape = shape_of(args_[2]);
  tensor.stride = dims_of(args_[3], limits_.dims);
  type_is(args_[1]->kind == Kind::integer, "its offset is not an integer");
  __int128 last = args_[1]->integer;
  const bool empty = tensor.numel() == 0;
  if (tensor.stride.size() != tensor.shape.size() || last < 0)
    fail(RefusalClass::TensorBounds, "offset, size and stride are inconsistent");
  for (size_t d = 0; d < tensor.shape.size() && last <= held; ++d) {
    if (tensor.stride[d] < 0) fail(RefusalClass::TensorBounds, "negative stride");
    if (!empty) last += static_cast<__int128>(tensor.shape[d] - 1) * tensor.stride[d];
  }
  if (last + (empty ? 0 : 1) > held) fail(RefusalClass::TensorBounds, "its codes reach outside the storage");
  return tensor;
}

// (storage, offset, size, stride, (qscheme, parameters...), requires_grad, hooks)
void Checker::quantized() {
  const auto schema_is = [&](bool right, const char* what) {
    if (!right) fail(RefusalClass::SubclassSchema, what);
  };
  const std::optional<Tensor> tensor = codes();
  const std::string_view dtype = tensor ? dtype_name(tensor->dtype) : "";
  schema_is(dtype.starts_with("q"), "its storage is not quantized");
  schema_is(args_[4]->kind == Kind::tuple && !args_[4]->items.empty(), "no quantizer parameters");
  const auto& parameters = args_[4]->items;
  if (is_global(parameters[0], "torch", "per_tensor_affine")) {
    schema_is(
        parameters.size() == 3 && parameters[1]->kind == Kind::real && parameters[2]->kind == Kind::integer,
        "per_tensor_affine takes a scale and a zero point");
    return;
  }
  schema_is((is_global(parameters[0], "torch", "per_channel_affine") ||
             is_global(parameters[0], "torch", "per_channel_affine_float_qparams")) &&
                parameters.size() == 4 && parameters[3]->kind == Kind::integer,
            "per_channel_affine takes scales, zero points and an axis");
  const int64_t axis = parameters[3]->integer;
  schema_is(axis >= 0 && static_cast<size_t>(axis) < tensor->shape.size(),
            "the axis is outside the dimensions");
  const int64_t channels = tensor->shape[static_cast<size_t>(axis)];
  schema_is(part(parameters[1], "scales").numel() == channels &&
                part(parameters[2], "zero points").numel() == channels,
            "scales or zero points do not match the axis");
}

}  // namespace

void check_special_tensor(const TorchObject& object, std::string_view function, const pickle::Refs& args,
                          const Limits& limits, uint64_t offset) {
  Checker checker(object, function, args, limits, offset);
  if (function == "_rebuild_meta_tensor_no_storage") return checker.meta();
  if (function == "_rebuild_wrapper_subclass") return checker.wrapper();
  if (function == "_rebuild_sparse_tensor") return checker.sparse();
  if (function == "_rebuild_nested_tensor") return checker.nested();
  if (function == "_rebuild_njt") return checker.jagged();
  if (function == "_rebuild_qtensor") return checker.quantized();
  if (function == "_rebuild_device_tensor_from_cpu_tensor") return checker.device_copy();
  checker.device_array();
}

}  // namespace qcts
