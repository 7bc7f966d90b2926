// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/check.h"
#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/numpy_array.h"
#include "reference/formats/torch/storage.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

constexpr int64_t kProtocolVersion = 1001;
// PROTO 2, LONG1 of ten bytes, 0x1950a86a20f9469cfc6c, STOP
constexpr std::array<uint8_t, 15> kMagic = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                            0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};

// Runs `body`; renames "data.pkl" in its refusals to the pickle `what`.
template <typename Body>
auto in_pickle(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const Refused& refused) {
    Refusal refusal = refused.refusal();
    constexpr std::string_view kName = "data.pkl: ";
    if (refusal.detail.starts_with(kName)) refusal.detail = what + ": " + refusal.detail.substr(kName.size());
    throw Refused(std::move(refusal));
  }
}

class Reader {
 public:
  Reader(TorchLegacy& legacy, const TorchOptions& options)
      : legacy_(legacy), options_(options), file_(legacy.file->bytes()) {}

  void read() {
    read_magic();
    legacy_.protocol = next_pickle("the protocol");
    const Ref& protocol = legacy_.protocol.root;
    if (protocol->kind != Kind::integer || protocol->integer != kProtocolVersion)
      refuse(RefusalClass::Version, "the protocol of the file is not 1001", protocol->offset);
    legacy_.sys_info = next_pickle("the machine");
    in_pickle("the machine", [&] { check_machine(legacy_.sys_info.root); });
    legacy_.object = next_pickle("the object");
    legacy_.root = legacy_.object.root;
    legacy_.keys = next_pickle("the storage keys");
    in_pickle("the object", [&] {
      legacy_.locations = map_locations(legacy_.root, options_.map_locations);
      list_ids();
    });
    in_pickle("the storage keys", [&] { list_records(); });
    read_records();
    in_pickle("the object", [&] {
      bind();
      if (!legacy_.little_endian_writer) swap_foreign();
      cost_.heap_bytes += decode_arrays(legacy_, cost_.pickle_bytes, options_.limits);
      check_tensors(legacy_, options_.limits);
    });
    legacy_.budget = budget_of(legacy_, cost_, 2 * legacy_.records.size(), 0, file_.size());
  }

 private:
  void read_magic();
  LegacyPickle next_pickle(const char* what);
  void check_machine(const Ref& info);
  void list_ids();
  void list_records();
  void read_records();
  void bind();
  void swap_foreign();

  TorchLegacy& legacy_;
  const TorchOptions& options_;
  std::span<const std::byte> file_;
  uint64_t at_ = 0;
  pickle::ReadCost cost_;
  // Sorted, because a file can choose keys that collide in any hash table.
  std::map<std::string, StorageId> ids_;  // the first id of each key
  std::map<std::string, size_t> record_of_key_;
};

// The magic number must be a literal: a computed one would have to run before the file is known to be
// torch's.
void Reader::read_magic() {
  if (file_.size() < 3) refuse(RefusalClass::Truncated, "the magic number is truncated", file_.size());
  constexpr const char* kPlain =
      "; pickle.dump, joblib and Paddle write such files: load it and save it with torch.save";
  const int protocol = std::to_integer<int>(file_[1]);
  if (protocol != 2 && protocol != 3) {
    const auto start = as_text(file_.first(std::min<size_t>(file_.size(), 64)));
    const bool torch = start.find(as_text(std::as_bytes(std::span(kMagic)).subspan(2, 12))) != start.npos;
    refuse(RefusalClass::Version,
           "pickle protocol " + std::to_string(protocol) + ", not 2" +
               (torch ? ": torch.load(weights_only=True) refuses it too; torch.save takes pickle_protocol=2"
                      : kPlain),
           0);
  }
  if (file_[2] != std::byte{kMagic[2]})
    refuse(RefusalClass::PickleOpcode,
           std::string("a pickle that does not begin with torch's magic number as a literal") + kPlain, 2);
  const size_t common = std::min(kMagic.size(), file_.size());
  if (std::memcmp(file_.data() + 2, kMagic.data() + 2, common - 2) != 0)
    refuse(RefusalClass::NotArchive, "the magic number of the pickle is not torch's", 0);
  if (common < kMagic.size()) refuse(RefusalClass::Truncated, "the magic number is truncated", common);
  at_ = kMagic.size();
}

LegacyPickle Reader::next_pickle(const char* what) {
  LegacyPickle result;
  result.begin = at_;
  uint64_t used = 0;
  result.root = in_pickle(what, [&] {
    return pickle::read_first(file_.subspan(at_), used,
                              {options_.limits, options_.allow, at_, true, true, &cost_});
  });
  at_ += used;
  result.end = at_;
  return result;
}

// Checks {"protocol_version": 1001, "little_endian": bool, "type_sizes": {"short": 2, "int": 4, "long": 4}}.
// The sizes are those of the writer's C types and do not affect the elements.
void Reader::check_machine(const Ref& info) {
  const auto bad = [&](const char* why, const Ref& node) {
    refuse(RefusalClass::PickleType, std::string("data.pkl: ") + why, node->offset);
  };
  if (info->kind != Kind::dict || info->pairs.size() != 3) bad("not a dict of three", info);
  const Ref version = pickle::find(info, "protocol_version"), little = pickle::find(info, "little_endian"),
            sizes = pickle::find(info, "type_sizes");
  if (!version || version->kind != Kind::integer) bad("protocol_version is not an integer", info);
  if (version->integer != kProtocolVersion)
    refuse(RefusalClass::Version, "data.pkl: protocol_version is not 1001", version->offset);
  if (!little || little->kind != Kind::boolean)
    refuse(RefusalClass::ByteOrder, "data.pkl: little_endian is not a bool", info->offset);
  if (!sizes || sizes->kind != Kind::dict) bad("type_sizes is not a dict", info);
  for (const auto& [name, size] : sizes->pairs)
    if (name->kind != Kind::string || size->kind != Kind::integer)
      bad("type_sizes does not hold sizes", name);
  legacy_.little_endian_writer = little->boolean;
}

void Reader::list_ids() {
  pickle::for_each_node(legacy_.root, [&](const Ref& node) {
    if (node->kind != Kind::persistent) return;
    StorageId id = storage_id_of(node, legacy_.id_parts);
    std::string key = id.key;
    ids_.try_emplace(std::move(key), std::move(id));
  });
}

void Reader::list_records() {
  const Ref& keys = legacy_.keys.root;
  const auto bad = [&](const std::string& why, const Ref& node) {
    refuse(RefusalClass::StorageRef, "data.pkl: " + why, node->offset);
  };
  if (keys->kind != Kind::list) bad("they are not a list", keys);
  for (const Ref& key : keys->items) {
    if (key->kind != Kind::string) bad("a key is not a string", key);
    const auto id = ids_.find(key->text);
    if (id == ids_.end()) bad("no tensor uses storage " + key->text.substr(0, 40), key);
    if (!record_of_key_.try_emplace(key->text, legacy_.records.size()).second)
      bad("storage " + key->text + " is listed twice", key);
    LegacyRecord record;
    record.key = key->text;
    record.element_bytes = id->second.dtype ? dtype_bytes(*id->second.dtype) : 1;
    legacy_.records.push_back(std::move(record));
  }
  for (const auto& [key, id] : ids_)
    if (!record_of_key_.contains(key)) bad("storage " + key + " of the object is missing", keys);
}

void Reader::read_records() {
  for (LegacyRecord& record : legacy_.records) {
    if (file_.size() - at_ < 8)
      refuse(RefusalClass::Truncated, "the count of storage " + record.key + " is truncated", file_.size());
    const uint64_t count = load_le<uint64_t>(file_, at_), bytes = ids_.at(record.key).bytes;
    if (count != bytes / record.element_bytes) {
      refuse(RefusalClass::StorageRef,
             "storage " + record.key + " counts " + std::to_string(count) + " elements, the object " +
                 std::to_string(bytes / record.element_bytes),
             at_);
    }
    at_ += 8;
    if (file_.size() - at_ < bytes)
      refuse(RefusalClass::Truncated, "the file ends inside storage " + record.key, file_.size());
    record.bytes = file_.subspan(at_, bytes);
    at_ += bytes;
  }
  if (at_ != file_.size()) refuse(RefusalClass::TrailingData, "bytes follow the last storage", at_);
}

void Reader::bind() {
  bind_storages(legacy_, options_, legacy_.file, [&](const StorageId& id, const Ref&) {
    return legacy_.records[record_of_key_.at(id.key)].bytes;
  });
}

void Reader::swap_foreign() {
  for (size_t i = 0; i < legacy_.storages.size(); ++i) {
    const auto dtype = legacy_.storage_dtypes[i];
    if (dtype == DType::complex64 || dtype == DType::complex128) {
      refuse(RefusalClass::ByteOrder, "data.pkl: storage " + legacy_.storages[i]->key +
                                          " of a big-endian writer holds complex elements");
    }
  }
  swap_big_endian(legacy_, false);
}

}  // namespace

bool begins_with_pickle(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x80} && file[1] >= std::byte{1} && file[1] <= std::byte{5};
}

TorchLegacy read_torch_legacy(std::shared_ptr<const MappedFile> file, const TorchOptions& options) {
  TorchLegacy legacy;
  legacy.file = std::move(file);
  legacy.limits = options.limits;
  legacy.id_parts = 6;
  Reader(legacy, options).read();
  return legacy;
}

}  // namespace qcts
