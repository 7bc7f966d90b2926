// SPDX-License-Identifier: BSD-3-Clause
// Reads plain tensors; torch's own tensors that are not one strided view (quantized, sparse, nested, meta,
// lazily conjugated); bare storages; and the attributes of a Parameter.
#include <algorithm>
#include <array>
#include <span>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/io/byte_io.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/refusal.h"
#include "reference/formats/torch/numpy_array.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

// Limits of one tensor: shared containers could name any number of parts, and attributes are searched
// linearly.
constexpr uint64_t kAttributeBytes = 144;  // a place among the attributes
constexpr uint64_t kMaxParts = 1u << 16, kMaxAttributes = 1024;

std::vector<int64_t> integers_of(const Ref& node) {
  const bool size = pickle::is_call(node, "torch", "Size") && node->items[1]->items.size() == 1;
  std::vector<int64_t> integers;
  for (const Ref& item : size ? node->items[1]->items[0]->items : node->items)
    if (item->kind == Kind::integer) integers.push_back(item->integer);
  return integers;
}

bool is_dictionary(const Ref& node) {
  return node->kind == Kind::dict || pickle::is_call(node, "collections", "OrderedDict");
}

// Returns a view of the same elements without the lazy conj and neg marks.
Ref eager_view(const Ref& call) {
  const bool third = pickle::is_call(call, "torch._utils", "_rebuild_tensor_v3");
  const auto& args = call->items[1]->items;
  const size_t plain = third ? 7 : 6;
  return pickle::call(call->items[0],
                      {args.begin(), args.begin() + static_cast<ptrdiff_t>(std::min(plain, args.size()))});
}

int64_t ragged_index(const Ref& parts) { return pickle::find(parts, "_ragged_idx")->integer; }

// Sums an int32 or int64 tensor whose values the file's reader has checked.
int64_t sum_of(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  const auto bytes = row_major_view(tensor, scratch);
  const size_t width = dtype_bytes(tensor.dtype);
  int64_t sum = 0;
  for (size_t at = 0; at + width <= bytes.size(); at += width)
    sum += width == 4 ? static_cast<int32_t>(load_le<uint32_t>(bytes, at))
                      : static_cast<int64_t>(load_le<uint64_t>(bytes, at));
  return sum;
}

class PlainReader {
 public:
  PlainReader(const TorchObject& object, NamedTensor& tensor, ReadBudget& budget)
      : object_(object), tensor_(tensor), budget_(budget) {}

  void collect(const Ref& node, const std::string& name);

  void read(const TensorNode& parts) {
    read_data(parts.plain);
    if (parts.state != nullptr) collect_state(parts.state);
    for (const Ref& state : parts.parameter_states) collect_state(state);
  }
  void collect_state(const Ref& state);

 private:
  void read_data(const Ref& node);
  void read_qtensor(const pickle::Refs& args);
  void read_packed(const pickle::Refs& args, Tensor codes);
  void read_sparse(const pickle::Refs& args);
  void read_meta(const pickle::Refs& args);
  void read_jagged(const pickle::Refs& args);
  void read_lazy(const Ref& node);
  bool read_device_tensor(const Ref& node);
  void attribute(const std::string& name, const Ref& value);

  const TorchObject& object_;
  NamedTensor& tensor_;
  ReadBudget& budget_;
  uint64_t parts_ = 0;
};

void PlainReader::read_data(const Ref& node) {
  std::optional<Tensor> data = tensor_of(object_, node);
  if (!data) data = storage_of(object_, node);
  if (data) {
    tensor_.shape = data->shape;
    tensor_.dtype = data->dtype;
    tensor_.payload.push_back({"data", *data});
    return;
  }
  if (read_device_tensor(node)) return;
  const std::string rebuild(split_global(node->items[0]).name);
  const pickle::Refs& args = node->items[1]->items;
  if (rebuild.starts_with("_rebuild_tensor")) return read_lazy(node);
  tensor_.attributes["rebuild"] = rebuild;
  if (rebuild == "_rebuild_qtensor" && args.size() == 7) return read_qtensor(args);
  if (rebuild == "_rebuild_meta_tensor_no_storage" && args.size() == 4) return read_meta(args);
  if (rebuild == "_rebuild_sparse_tensor" && args.size() == 2) return read_sparse(args);
  if (rebuild == "_rebuild_njt") return read_jagged(args);
  const bool nested = rebuild == "_rebuild_nested_tensor" && args.size() == 4;
  constexpr std::array<const char*, 4> kNested = {"buffer", "sizes", "strides", "offsets"};
  for (size_t i = 0; i < args.size(); ++i)
    collect(args[i], nested ? kNested[i] : "data." + std::to_string(i));
  if (!nested || tensor_.payload.size() != 4) return;
  tensor_.dtype = tensor_.payload[0].tensor.dtype;
  tensor_.shape = {tensor_.payload[0].tensor.numel()};
}

// _rebuild_device_tensor_from_cpu_tensor or _from_numpy(data, dtype, device, requires_grad): a device without
// storages, whose elements the file holds for the host.
bool PlainReader::read_device_tensor(const Ref& node) {
  std::optional<Tensor> data;
  if (const Tensor* array = array_of(object_, node)) data = *array;
  const auto& args = node->items[1]->items;
  if (pickle::is_call(node, "torch._utils", "_rebuild_device_tensor_from_cpu_tensor"))
    data = tensor_of(object_, args[0]);
  if (!data) return false;
  tensor_.shape = data->shape;
  tensor_.dtype = data->dtype;
  tensor_.payload.push_back({"data", *data});
  const std::string device = device_text(args[2]);
  if (device != "cpu") tensor_.attributes["device"] = device;
  return true;
}

// _rebuild_njt({"values", "offsets", "lengths", ...}): reads its parts under their own names.
void PlainReader::read_jagged(const pickle::Refs& args) {
  for (const auto& [key, value] : args.at(0)->pairs) {
    if (value->kind != Kind::none) collect(value, key->kind == Kind::string ? key->text.str() : "data");
  }
  const auto part = [&](const char* name) -> const Tensor* {
    const auto found = std::ranges::find(tensor_.payload, name, &InnerTensor::name);
    return found == tensor_.payload.end() ? nullptr : &found->tensor;
  };
  const Tensor* values = part("values");
  if (values == nullptr) return;
  tensor_.dtype = values->dtype;
  tensor_.shape = {values->numel()};
  const Tensor* lengths = part("lengths");
  const int64_t held = values->shape.at(static_cast<size_t>(ragged_index(args.at(0))) - 1);
  if (lengths != nullptr && held != 0) tensor_.shape = {values->numel() / held * sum_of(*lengths)};
}

// _rebuild_tensor_v2 or _v3 with {"conj": True} or {"neg": True}: reads the storage's elements and the marks.
void PlainReader::read_lazy(const Ref& node) {
  const std::optional<Tensor> data = tensor_of(object_, eager_view(node));
  if (!data) return;
  tensor_.shape = data->shape;
  tensor_.dtype = data->dtype;
  tensor_.payload.push_back({"data", *data});
  for (const auto& [key, value] : node->items[1]->items.back()->pairs) attribute(key->text, value);
}

// _rebuild_qtensor(storage, offset, size, stride, quantizer, requires_grad, hooks)
void PlainReader::read_qtensor(const pickle::Refs& args) {
  const auto& quantizer = args[4]->items;
  attribute("qscheme", quantizer.at(0));
  tensor_.shape = integers_of(args[2]);
  Tensor codes = *storage_of(object_, args[0]);
  tensor_.dtype = DType::float32;
  if (codes.dtype == DType::quint4x2 || codes.dtype == DType::quint2x4) {
    read_packed(args, std::move(codes));
  } else {
    codes.offset_elems += args[1]->integer;
    codes.shape = tensor_.shape;
    codes.stride = integers_of(args[3]);
    tensor_.payload.push_back({"data", codes});
  }
  const bool by_tensor = quantizer.size() == 3;
  collect(quantizer.at(1), by_tensor ? "scale" : "scales");
  collect(quantizer.at(2), by_tensor ? "zero_point" : "zero_points");
  if (!by_tensor) attribute("axis", quantizer.at(3));
}

// Two or four codes per byte: reads the bytes from the offset on, with size and stride counted in codes.
void PlainReader::read_packed(const pickle::Refs& args, Tensor codes) {
  const int64_t a_byte = codes.dtype == DType::quint4x2 ? 2 : 4;
  codes.offset_elems += args[1]->integer / a_byte;
  codes.shape = {codes.shape[0] - args[1]->integer / a_byte};
  tensor_.payload.push_back({"data", codes});
  for (const auto& [name, place] : {std::pair("offset", 1), std::pair("stride", 3)})
    attribute(name, args[static_cast<size_t>(place)]);
}

// (layout, parts): torch/_utils.py, _rebuild_sparse_tensor
void PlainReader::read_sparse(const pickle::Refs& args) {
  using Names = std::array<const char*, 3>;
  const std::string layout = args[0]->items[1]->items[0]->text;
  const auto& parts = args[1]->items;
  attribute("layout", args[0]);
  const bool coo = layout == "torch.sparse_coo";
  const bool by_row = layout == "torch.sparse_csr" || layout == "torch.sparse_bsr";
  const Names names = coo      ? Names{"indices", "values", ""}
                      : by_row ? Names{"crow_indices", "col_indices", "values"}
                               : Names{"ccol_indices", "row_indices", "values"};
  const size_t count = coo ? 2 : 3;
  for (size_t i = 0; i < count; ++i) collect(parts.at(i), names[i]);
  tensor_.shape = integers_of(parts.at(count));
  if (coo && parts.size() > 3) attribute("is_coalesced", parts[3]);
  for (const InnerTensor& inner : tensor_.payload)
    if (inner.name == "values") tensor_.dtype = inner.tensor.dtype;
}

// (dtype, size, stride, requires_grad)
void PlainReader::read_meta(const pickle::Refs& args) {
  if (const std::optional<DType> dtype = dtype_of_json(attribute_json(args[0], tensor_.name)))
    tensor_.dtype = *dtype;
  tensor_.shape = integers_of(args[1]);
  tensor_.attributes["device"] = "meta";
  attribute("stride", args[2]);
}

// Reads the __dict__ of a tensor or Parameter; with __slots__ a pair of dicts.
void PlainReader::collect_state(const Ref& state) {
  if (state->kind == Kind::none) return;
  if (state->kind != Kind::tuple) return collect(state, "state");
  for (size_t i = 0; i < state->items.size(); ++i)
    if (state->items[i]->kind != Kind::none) collect(state->items[i], i == 0 ? "state" : "slots");
}

// Adds tensors to the payload and other values to the attributes, under dotted names.
void PlainReader::collect(const Ref& node, const std::string& name) {
  if (++parts_ > kMaxParts)
    refuse(RefusalClass::LimitExceeded, tensor_.name + ": more than " + std::to_string(kMaxParts) + " parts",
           node->offset);
  budget_.take_steps(8);
  budget_.take_bytes(sizeof(InnerTensor) + text_block_bytes(name.size()));
  std::optional<Tensor> view = tensor_of(object_, node);
  if (!view) view = storage_of(object_, node);
  if (view) {
    tensor_.payload.push_back({name, *view});
    return;
  }
  if (is_tensor_node(node))
    if (const TensorNode parts = decode_tensor_node(node); !parts.wrapper.empty()) {
      attribute(name, parts.cls);
      return collect(parts.state, name);
    }
  const bool mapping = is_dictionary(node);
  if (!mapping && !holds_tensor(node, budget_)) return attribute(name, node);
  const bool call = node->kind == Kind::call || node->kind == Kind::new_object;
  if (!mapping) {
    const auto& items = call ? node->items[1]->items : node->items;
    for (size_t i = 0; i < items.size(); ++i) collect(items[i], name + "." + std::to_string(i));
  }
  for (const auto& [key, value] : node->pairs)
    collect(value,
            name + "." + (key->kind == Kind::string ? key->text.str() : attribute_json(key, name).dump()));
  const auto appended = call ? node->appended() : std::span<const Ref>();
  for (size_t i = 0; i < appended.size(); ++i) collect(appended[i], name + "." + std::to_string(i));
  if (node->state != nullptr && !mapping) collect(node->state, name + ".state");
}

// Values that cannot be attributes may be attached to tensors too: they are kept in the graph and listed here
// by name.
void PlainReader::attribute(const std::string& name, const Ref& value) {
  if (tensor_.attributes.size() >= kMaxAttributes)
    refuse(RefusalClass::LimitExceeded,
           tensor_.name + ": more than " + std::to_string(kMaxAttributes) + " attributes", value->offset);
  budget_.take_bytes(kAttributeBytes + text_block_bytes(name.size()));
  try {
    tensor_.attributes[name] = attribute_json(value, tensor_.name + ": " + name, budget_);
  } catch (const Refused& refused) {
    if (budget_.is_spent()) throw;
    tensor_.attributes[name] = Json{{"_type", "opaque"}, {"_data", refused.refusal().detail}};
  }
}

}  // namespace

bool holds_tensor(const Ref& root, ReadBudget& budget) {
  bool found = false;
  pickle::for_each_node(root, [&](const Ref& node) {
    budget.take_steps(1);
    found |= is_tensor_node(node);
  });
  return found;
}

std::string device_text(const Ref& device) {
  if (device->kind == Kind::string) return device->text.str();
  if (!pickle::is_call(device, "torch", "device") || device->items[1]->kind != Kind::tuple) return "";
  const pickle::Refs& parts = device->items[1]->items;
  if (parts.empty() || parts[0]->kind != Kind::string) return "";
  const bool indexed = parts.size() > 1 && parts[1]->kind == Kind::integer;
  return parts[0]->text.str() + (indexed ? ":" + std::to_string(parts[1]->integer) : "");
}

void read_parts(const TorchObject& object, const Ref& value, const std::string& name, NamedTensor& tensor,
                ReadBudget& budget) {
  PlainReader(object, tensor, budget).collect(value, name);
}

void read_attributes(const TorchObject& object, const Ref& state, NamedTensor& tensor, ReadBudget& budget) {
  PlainReader(object, tensor, budget).collect_state(state);
}

uint64_t heap_bytes_of(const NamedTensor& tensor) {
  const auto of_dims = [](const std::vector<int64_t>& dims) { return block_bytes(8 * dims.capacity()); };
  const auto of_text = [](const std::string& text) { return text_block_bytes(text.size()); };
  uint64_t bytes = sizeof tensor + kAttributeBytes + of_dims(tensor.shape);
  for (const std::string* text : {&tensor.name, &tensor.type, &tensor.scheme}) bytes += of_text(*text);
  bytes += block_bytes(tensor.payload.capacity() * sizeof(InnerTensor));
  for (const InnerTensor& inner : tensor.payload)
    bytes += of_text(inner.name) + of_dims(inner.tensor.shape) + of_dims(inner.tensor.stride);
  return bytes;
}

NamedTensor read_plain(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget) {
  const TensorNode parts = decode_tensor_node(leaf.node);
  NamedTensor tensor;
  tensor.name = leaf.name;
  tensor.type = parts.cls         ? std::string(split_global(parts.cls).name)
                : parts.parameter ? "Parameter"
                                  : "Tensor";
  if (leaf.node->kind == Kind::persistent) tensor.type = split_global(leaf.node->items[0]->items.at(1)).name;
  PlainReader(object, tensor, budget).read(parts);
  budget.take_bytes(heap_bytes_of(tensor));
  return tensor;
}

NamedTensor read_plain_entry(const SafetensorsEntry& entry, ReadBudget& budget) {
  NamedTensor tensor;
  tensor.name = entry.name;
  tensor.type = "Tensor";
  tensor.shape = entry.tensor.shape;
  tensor.dtype = entry.tensor.dtype;
  tensor.payload.push_back({"data", entry.tensor});
  budget.take_bytes(heap_bytes_of(tensor));
  return tensor;
}

std::vector<NamedTensor> read_plain_safetensors(SafetensorsView& view) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(view.entries.size());
  for (const SafetensorsEntry* entry : view.entries) tensors.push_back(read_plain_entry(*entry, view.budget));
  return tensors;
}

}  // namespace qcts
