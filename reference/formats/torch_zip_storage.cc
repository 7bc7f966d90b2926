#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>
#include <utility>

#include "reference/formats/byte_io.h"
#include "reference/formats/pickle_graph.h"
#include "reference/formats/torch_zip_internal.h"

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

// Names that TorchScript's C++ pickler makes of the element type
// (torch/csrc/jit/serialization/pickler.cpp, 2.13, pushStorageOfTensor; c10/core/ScalarType.h, toString).
// torch.save has none of them: its allow-list of globals refuses them before.
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

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() <= 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Devices whose tags torch's own location functions write (torch/serialization.py, _package_registry, and the
// names that rename_privateuse1_backend is used with), each alone or with an index.
bool is_known_location(std::string_view tag) {
  constexpr std::array<std::string_view, 13> kDevices = {"cpu",  "cuda",        "mps",          "meta", "xpu",
                                                         "hpu",  "mtia",        "xla",          "npu",  "ipu",
                                                         "maia", "privateuse1", "privateuseone"};
  const size_t colon = tag.find(':');
  const std::string_view device = tag.substr(0, colon);
  if (std::find(kDevices.begin(), kDevices.end(), device) == kDevices.end()) return false;
  return colon == tag.npos || all_digits(tag.substr(colon + 1));
}

std::optional<DType> storage_dtype(const Ref& cls, const Ref& node) {
  if (is_global(cls, "torch.storage", "UntypedStorage")) return std::nullopt;
  for (const StorageType& type : kStorageTypes) {
    if (is_global(cls, "torch", type.name) || is_global(cls, "torch.cuda", type.name)) return type.dtype;
  }
  for (const StorageType& type : kScriptStorageTypes) {
    if (is_global(cls, "torch", type.name)) return type.dtype;
  }
  bad_storage("a persistent id names no storage class", node);
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

}  // namespace

std::vector<std::string> script_storage_globals() {
  std::vector<std::string> names;
  for (const StorageType& type : kScriptStorageTypes) names.push_back("torch." + std::string(type.name));
  return names;
}

StorageId storage_id_of(const Ref& node) {
  if (node->kind != Kind::persistent) bad_storage("a storage is expected here", node);
  const Ref& id = node->items.at(0);
  if (id->kind != Kind::tuple || id->items.size() != 5)
    bad_storage("a persistent id is no tuple of five", node);
  const auto& part = id->items;
  if (part[0]->kind != Kind::string || part[0]->text != "storage")
    bad_storage("a persistent id is no storage", node);
  StorageId result;
  result.dtype = storage_dtype(part[1], node);
  if (part[2]->kind != Kind::string || !all_digits(part[2]->text))
    bad_storage("a storage's key is no number", node);
  if (part[3]->kind != Kind::string) bad_storage("a storage's location is no string", node);
  result.key = part[2]->text;
  result.location = part[3]->text;
  const uint64_t item = result.dtype ? dtype_bytes(*result.dtype) : 1;
  if (part[4]->kind != Kind::integer || part[4]->integer < 0 ||
      static_cast<uint64_t>(part[4]->integer) > INT64_MAX / item) {
    refuse(RefusalClass::Overflow, "data.pkl: the element count of storage " + result.key + " is no size",
           node->offset);
  }
  result.bytes = static_cast<uint64_t>(part[4]->integer) * item;
  return result;
}

void resolve_storages(TorchZip& zip, const TorchZipOptions& options) {
  std::unordered_map<std::string, const ZipRecord*> records;
  for (const ZipRecord& record : zip.records) {
    if (record.name.starts_with("data/")) records.emplace(record.name.substr(5), &record);
  }
  pickle::for_each_node(zip.root, [&](const Ref& node) {
    if (node->kind != Kind::persistent) return;
    const StorageId id = storage_id_of(node);
    const auto& extra = options.allow_locations;
    if (!is_known_location(id.location) &&
        std::find(extra.begin(), extra.end(), id.location) == extra.end()) {
      bad_storage("storage " + id.key + " lies on an unknown device " + id.location, node);
    }
    const auto record = records.find(id.key);
    if (record == records.end()) bad_storage("record data/" + id.key + " is missing", node);
    if (record->second->bytes.size() != id.bytes) {
      bad_storage("storage " + id.key + " has " + std::to_string(id.bytes) + " bytes, its record " +
                      std::to_string(record->second->bytes.size()),
                  node);
    }
    const auto [entry, fresh] = zip.storage_index.try_emplace(id.key, zip.storages.size());
    if (fresh) {
      auto storage = std::make_shared<Storage>();
      storage->bytes = record->second->bytes;
      storage->key = id.key;
      storage->location = id.location;
      storage->owner = zip.file;
      zip.storages.push_back(std::move(storage));
      zip.storage_dtypes.push_back(id.dtype);
      return;
    }
    auto& dtype = zip.storage_dtypes[entry->second];
    if (dtype && id.dtype && *dtype != *id.dtype)
      bad_storage("storage " + id.key + " has two element types", node);
    if (!dtype) dtype = id.dtype;
    if (zip.storages[entry->second]->location != id.location) {
      bad_storage("storage " + id.key + " lies on two devices", node);
    }
  });
}

void swap_big_endian(TorchZip& zip) {
  for (size_t i = 0; i < zip.storages.size(); ++i) {
    const auto& dtype = zip.storage_dtypes[i];
    if (!dtype || component_bytes(*dtype) == 1) continue;
    auto bytes = std::make_shared<std::vector<std::byte>>(zip.storages[i]->bytes.begin(),
                                                          zip.storages[i]->bytes.end());
    swap_elements(*bytes, component_bytes(*dtype));
    auto swapped = std::make_shared<Storage>(*zip.storages[i]);
    swapped->bytes = *bytes;
    swapped->owner = bytes;
    zip.storages[i] = std::move(swapped);
  }
}

std::string path_to_storage(const Ref& root, const std::string& key) {
  // Steps name the one before them instead of holding a path: a long key would be copied to all that lies below it.
  struct Step {
    const Ref* node;
    size_t before;
    const Ref* name;  // in the dict that holds it
  };
  const auto path_of = [](const std::vector<Step>& steps, size_t at) {
    std::string path;
    for (; at != 0; at = steps[at].before) {
      if (steps[at].name == nullptr) continue;
      const pickle::Node& name = **steps[at].name;
      const std::string part = name.kind == Kind::string    ? name.text
                               : name.kind == Kind::integer ? std::to_string(name.integer)
                                                            : std::string("?");
      path = path.empty() ? part : part + "." + path;
    }
    return path;
  };
  std::unordered_set<const pickle::Node*> seen;
  std::vector<Step> steps{{&root, 0, nullptr}};
  std::vector<size_t> pending{0};
  while (!pending.empty()) {
    const size_t at = pending.back();
    pending.pop_back();
    const Ref& ref = *steps[at].node;
    if (!seen.insert(ref.get()).second) continue;
    if (ref->kind == Kind::persistent && storage_id_of(ref).key == key) return path_of(steps, at);
    const size_t first = steps.size();
    for (const Ref& item : ref->items) steps.push_back({&item, at, nullptr});
    for (const Ref& item : ref->appended) steps.push_back({&item, at, nullptr});
    for (const auto& [name, value] : ref->pairs) steps.push_back({&value, at, &name});
    if (ref->state != nullptr) steps.push_back({&ref->state, at, nullptr});
    for (size_t i = steps.size(); i-- > first;) pending.push_back(i);
  }
  return "";
}

}  // namespace qcts
