// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

struct StorageType {
  std::string_view name;
  DType dtype;
};
// torch/storage.py, _dtype_to_storage_type_map
constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", DType::float32},
    {"DoubleStorage", DType::float64},
    {"HalfStorage", DType::float16},
    {"BFloat16Storage", DType::bfloat16},
    {"CharStorage", DType::int8},
    {"ByteStorage", DType::uint8},
    {"ShortStorage", DType::int16},
    {"IntStorage", DType::int32},
    {"LongStorage", DType::int64},
    {"BoolStorage", DType::boolean},
    {"ComplexFloatStorage", DType::complex64},
    {"ComplexDoubleStorage", DType::complex128},
    {"QInt8Storage", DType::qint8},
    {"QUInt8Storage", DType::quint8},
    {"QInt32Storage", DType::qint32},
    {"QUInt4x2Storage", DType::quint4x2},
    {"QUInt2x4Storage", DType::quint2x4},
};

// Names that TorchScript's C++ pickler derives from the element type
// (torch/csrc/jit/serialization/pickler.cpp, 2.13, pushStorageOfTensor; c10/core/ScalarType.h, toString).
// torch.save has none of them: its allow-list of globals refuses them earlier.
constexpr StorageType kScriptStorageTypes[] = {
    {"ComplexHalfStorage", DType::complex32},
    {"Float8_e5m2Storage", DType::float8_e5m2},
    {"Float8_e4m3fnStorage", DType::float8_e4m3fn},
    {"Float8_e5m2fnuzStorage", DType::float8_e5m2fnuz},
    {"Float8_e4m3fnuzStorage", DType::float8_e4m3fnuz},
    {"Float8_e8m0fnuStorage", DType::float8_e8m0fnu},
    {"Float4_e2m1fn_x2Storage", DType::float4_e2m1fn_x2},
    {"UInt16Storage", DType::uint16},
    {"UInt32Storage", DType::uint32},
    {"UInt64Storage", DType::uint64},
};

[[noreturn]] void bad_storage(const std::string& what, const Ref& node) {
  refuse(RefusalClass::StorageRef, "data.pkl: " + what, node->offset);
}

std::optional<DType> storage_dtype(const Ref& cls, const Ref& node) {
  const std::string_view text = cls->kind == Kind::global ? cls->text.view() : "";
  if (text == "torch.storage UntypedStorage") return std::nullopt;
  constexpr std::string_view kHost = "torch ", kCuda = "torch.cuda ";
  const bool on_host = text.starts_with(kHost), on_cuda = text.starts_with(kCuda);
  const std::string_view name = text.substr(on_host ? kHost.size() : on_cuda ? kCuda.size() : 0);
  for (const StorageType& type : kStorageTypes)
    if (name == type.name && (on_host || on_cuda)) return type.dtype;
  for (const StorageType& type : kScriptStorageTypes)
    if (name == type.name && on_host) return type.dtype;
  bad_storage("a persistent id does not name a storage class", node);
}

void swap_elements(std::vector<std::byte>& bytes, size_t width) {
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                 bytes.begin() + static_cast<ptrdiff_t>(at + width));
  }
}

size_t component_bytes(DType dtype) {
  const bool complex = dtype == DType::complex32 || dtype == DType::complex64 || dtype == DType::complex128;
  return dtype_bytes(dtype) / (complex ? 2 : 1);
}

// Reads (key, offset, size): a window of a storage of `numel` elements.
StorageView view_of(const Ref& part, int64_t numel, const Ref& node) {
  const bool right = part->kind == Kind::tuple && part->items.size() == 3 &&
                     part->items[0]->kind == Kind::string && all_digits(part->items[0]->text) &&
                     part->items[1]->kind == Kind::integer && part->items[2]->kind == Kind::integer;
  if (!right) bad_storage("the view in a persistent id is not a tuple of key, offset and size", node);
  const StorageView view{part->items[0]->text, part->items[1]->integer, part->items[2]->integer};
  if (view.offset_elems < 0 || view.numel < 0 || view.offset_elems > numel ||
      view.numel > numel - view.offset_elems) {
    refuse(RefusalClass::TensorBounds, "data.pkl: the view " + view.key + " reaches outside its storage",
           node->offset);
  }
  return view;
}

// Returns the element size of the tensors over each untyped storage.
std::unordered_map<std::string, size_t> untyped_widths(const TorchObject& object) {
  std::unordered_map<std::string, size_t> widths;
  pickle::for_each_node(object.root, [&](const Ref& node) {
    if (!pickle::is_call(node, "torch._utils", "_rebuild_tensor_v3")) return;
    const auto& args = node->items[1]->items;
    const std::optional<DType> dtype = args.size() > 6 ? dtype_of_global(args[6]) : std::nullopt;
    if (!dtype || args[0]->kind != Kind::persistent) return;
    const std::string key = storage_id_of(args[0], object.id_parts).key;
    const auto [entry, fresh] = widths.try_emplace(key, component_bytes(*dtype));
    if (!fresh && entry->second != component_bytes(*dtype)) {
      refuse(RefusalClass::ByteOrder,
             "data.pkl: the big-endian storage " + key + " is used with two element sizes", args[0]->offset);
    }
  });
  return widths;
}

}  // namespace

std::vector<std::string> script_storage_globals() {
  std::vector<std::string> names;
  for (const StorageType& type : kScriptStorageTypes) names.push_back("torch." + std::string(type.name));
  return names;
}

StorageId storage_id_of(const Ref& node, size_t parts) {
  if (node->kind != Kind::persistent) bad_storage("a storage is expected here", node);
  const Ref& id = node->items.at(0);
  if (id->kind != Kind::tuple || id->items.size() != parts)
    bad_storage("a persistent id is not a tuple of " + std::to_string(parts), node);
  const auto& part = id->items;
  if (part[0]->kind != Kind::string || part[0]->text != "storage")
    bad_storage("a persistent id is not a storage", node);
  StorageId result;
  result.dtype = storage_dtype(part[1], node);
  if (part[2]->kind != Kind::string || !all_digits(part[2]->text))
    bad_storage("a storage's key is not a number", node);
  if (part[3]->kind != Kind::string) bad_storage("a storage's location is not a string", node);
  result.key = part[2]->text;
  result.location = part[3]->text;
  const uint64_t item = result.dtype ? dtype_bytes(*result.dtype) : 1;
  if (part[4]->kind != Kind::integer || part[4]->integer < 0 ||
      static_cast<uint64_t>(part[4]->integer) > INT64_MAX / item) {
    refuse(RefusalClass::Overflow, "data.pkl: the element count of storage " + result.key + " is not a size",
           node->offset);
  }
  result.bytes = static_cast<uint64_t>(part[4]->integer) * item;
  if (parts > 5 && part[5]->kind != Kind::none) result.view = view_of(part[5], part[4]->integer, node);
  return result;
}

ReadBudget budget_of(const TorchObject& object, const pickle::ReadCost& cost, size_t records,
                     uint64_t directory_bytes, uint64_t file_bytes) {
  // Memory of a record with its name; of a Storage with its control block and its slots in lists and table.
  constexpr uint64_t kRecordBytes = 128, kStorageBytes = 176;
  ReadBudget budget(64 * cost.opcodes + cost.pickle_bytes + directory_bytes, file_bytes);
  budget.take_bytes(cost.heap_bytes + kRecordBytes * records + kStorageBytes * object.storages.size());
  return budget;
}

void bind_storages(TorchObject& object, const TorchOptions& options, std::shared_ptr<const void> owner,
                   const FindStorage& find) {
  pickle::for_each_holder(object.root, [&](const Ref& node) {
    if (node->kind != Kind::persistent) return;
    const StorageId id = storage_id_of(node, object.id_parts);
    if (!device_of_location(id.location, options.allow_locations)) {
      bad_storage("storage " + id.key + " is on an unknown device " + id.location, node);
    }
    const auto [entry, fresh] = object.storage_index.try_emplace(id.key, object.storages.size());
    if (fresh) {
      auto storage = std::make_shared<Storage>();
      storage->bytes = find(id, node);
      storage->key = id.key;
      storage->location = id.location;
      storage->owner = owner;
      object.storages.push_back(std::move(storage));
      object.storage_dtypes.push_back(id.dtype);
    }
    const Storage& storage = *object.storages[entry->second];
    if (storage.bytes.size() != id.bytes) {
      bad_storage("storage " + id.key + " has " + std::to_string(id.bytes) + " bytes, its record " +
                      std::to_string(storage.bytes.size()),
                  node);
    }
    auto& dtype = object.storage_dtypes[entry->second];
    if (dtype && id.dtype && *dtype != *id.dtype)
      bad_storage("storage " + id.key + " has two element types", node);
    if (!dtype) dtype = id.dtype;
    if (storage.location != id.location) bad_storage("storage " + id.key + " is on two devices", node);
  });
}

void swap_big_endian(TorchObject& object, bool typed) {
  std::unordered_map<std::string, size_t> widths = untyped_widths(object);
  for (size_t i = 0; i < object.storages.size(); ++i) {
    const auto& dtype = object.storage_dtypes[i];
    const size_t width = dtype ? (typed ? component_bytes(*dtype) : 1) : widths[object.storages[i]->key];
    if (width <= 1) continue;
    auto bytes = std::make_shared<std::vector<std::byte>>(object.storages[i]->bytes.begin(),
                                                          object.storages[i]->bytes.end());
    swap_elements(*bytes, width);
    auto swapped = std::make_shared<Storage>(*object.storages[i]);
    swapped->bytes = *bytes;
    swapped->owner = bytes;
    object.storages[i] = std::move(swapped);
  }
}

std::optional<Tensor> storage_of(const TorchObject& object, const Ref& node) {
  if (node == nullptr || node->kind != Kind::persistent) return std::nullopt;
  const StorageId id = storage_id_of(node, object.id_parts);
  Tensor tensor;
  tensor.storage = object.storages.at(object.storage_index.at(id.key));
  tensor.dtype = id.dtype.value_or(DType::uint8);
  tensor.shape = {static_cast<int64_t>(id.bytes / dtype_bytes(tensor.dtype))};
  tensor.stride = {1};
  if (id.view) {
    tensor.offset_elems = id.view->offset_elems;
    tensor.shape = {id.view->numel};
  }
  return tensor;
}

std::string path_to_storage(const TorchObject& object, const std::string& key) {
  // Steps link to the previous step instead of holding a path: a long key would be copied to everything below
  // it.
  struct Step {
    const Ref* node;
    size_t before;
    const Ref* name;  // in its dict
  };
  constexpr size_t kMaxShownBytes = 200;
  const auto path_of = [](const std::vector<Step>& steps, size_t at) {
    std::string path;
    for (; at != 0; at = steps[at].before) {
      if (steps[at].name == nullptr) continue;
      const pickle::Node& name = **steps[at].name;
      const std::string part = name.kind == Kind::string    ? name.text.substr(0, kMaxShownBytes)
                               : name.kind == Kind::integer ? std::to_string(name.integer)
                                                            : std::string("?");
      path = path.empty() ? part : part + "." + path;
    }
    return path;
  };
  std::unordered_set<const pickle::Node*> seen;
  std::vector<Step> steps{{&object.root, 0, nullptr}};
  std::vector<size_t> pending{0};
  while (!pending.empty()) {
    const size_t at = pending.back();
    pending.pop_back();
    const Ref& ref = *steps[at].node;
    if (!seen.insert(ref.get()).second) continue;
    if (ref->kind == Kind::persistent && storage_id_of(ref, object.id_parts).key == key)
      return path_of(steps, at);
    const size_t first = steps.size();
    for (const Ref& item : ref->items) steps.push_back({&item, at, nullptr});
    for (const auto& [name, value] : ref->pairs) steps.push_back({&value, at, &name});
    if (ref->state != nullptr) steps.push_back({&ref->state, at, nullptr});
    for (size_t i = steps.size(); i-- > first;) pending.push_back(i);
  }
  return "";
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() <= 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace qcts
