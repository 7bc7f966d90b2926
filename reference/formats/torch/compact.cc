// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torch/compact.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Node;
using pickle::Ref;

// A byte range [begin, end) of a storage.
struct Range {
  uint64_t begin = 0, end = 0;
};

struct Use {
  std::vector<Range> seen;
  uint64_t step = 1;  // bytes of the widest element that reads it
  bool whole = false;
};

// The kept ranges of a storage, in order; none touch.
struct Cut {
  std::vector<Range> kept;
  uint64_t bytes = 0;
  // Returns the new position of byte `at`. A byte outside all ranges (of an empty tensor) moves to the end of
  // the range before it.
  uint64_t moved(uint64_t at) const {
    uint64_t before = 0;
    for (const Range& range : kept) {
      if (at < range.begin) return before;
      if (at < range.end) return before + at - range.begin;
      before += range.end - range.begin;
    }
    return before;
  }
};

bool is_rebuild(const Ref& callable) {
  for (const char* name : {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor"})
    if (is_global(callable, "torch._utils", name)) return true;
  return false;
}

// Returns the arguments of a call that makes a strided view of a storage; nullptr for any other node.
const Node* strided_arguments(const Ref& node) {
  if (node->kind != Kind::call || node->items[1]->kind != Kind::tuple) return nullptr;
  const auto& args = node->items[1]->items;
  if (is_rebuild(node->items[0])) return node->items[1].get();
  const bool typed = is_global(node->items[0], "torch._tensor", "_rebuild_from_type_v2") &&
                     args.size() == 4 && is_rebuild(args[0]) && args[2]->kind == Kind::tuple;
  return typed ? args[2].get() : nullptr;
}

class Compactor {
 public:
  explicit Compactor(const TorchObject& object) : object_(object) {}

  Ref run() {
    measure();
    for (size_t i = 0; i < object_.storages.size(); ++i) {
      const Storage& storage = *object_.storages[i];
      cuts_.emplace(storage.key, cut_of(uses_[storage.key], storage.bytes.size()));
    }
    return copy(object_.root);
  }

  const Cut& cut(const std::string& key) const { return cuts_.at(key); }
  bool names(const std::string& key) const { return cuts_.contains(key); }

 private:
  void measure();
  void measure_tensor(const Node& args);
  static Cut cut_of(Use& use, uint64_t bytes);
  uint64_t element_bytes(const Node& args, const StorageId& id) const;

  Ref copy(const Ref& node);
  Ref copy_id(const Ref& node);
  Ref moved_offset(const Node& args);

  const TorchObject& object_;
  std::unordered_set<const Node*> strided_;  // their argument tuples
  std::unordered_map<std::string, Use> uses_;
  std::unordered_map<std::string, Cut> cuts_;
  std::unordered_map<const Node*, Ref> copies_;
};

void Compactor::measure() {
  pickle::for_each_node(object_.root, [&](const Ref& node) {
    if (const Node* args = strided_arguments(node)) strided_.insert(args);
  });
  pickle::for_each_node(object_.root, [&](const Ref& node) {
    const bool strided = strided_.contains(node.get());
    if (strided) measure_tensor(*node);
    size_t index = 0;
    pickle::for_each_child(*node, [&](const Ref& child) {
      if (child->kind == Kind::persistent && !(strided && index == 0))
        uses_[storage_id_of(child, object_.id_parts).key].whole = true;
      ++index;
    });
  });
  if (object_.root->kind == Kind::persistent)
    uses_[storage_id_of(object_.root, object_.id_parts).key].whole = true;
}

uint64_t Compactor::element_bytes(const Node& args, const StorageId& id) const {
  if (id.dtype) return dtype_bytes(*id.dtype);
  const auto dtype = args.items.size() > 6 ? dtype_of_global(args.items[6]) : std::nullopt;
  return dtype ? dtype_bytes(*dtype) : 1;
}

void Compactor::measure_tensor(const Node& args) {
  const StorageId id = storage_id_of(args.items.at(0), object_.id_parts);
  Use& use = uses_[id.key];
  const bool packed = id.dtype == DType::quint4x2 || id.dtype == DType::quint2x4;
  if (packed || id.view) use.whole = true;
  const uint64_t item = element_bytes(args, id);
  use.step = std::max(use.step, item);
  const auto shape = dims_of(args.items.at(2), object_.limits.dims),
             stride = dims_of(args.items.at(3), object_.limits.dims);
  if (numel_of(shape) == 0) return;
  uint64_t last = static_cast<uint64_t>(args.items.at(1)->integer);
  for (size_t d = 0; d < shape.size(); ++d) last += static_cast<uint64_t>((shape[d] - 1) * stride[d]);
  use.seen.push_back({static_cast<uint64_t>(args.items[1]->integer) * item, (last + 1) * item});
}

Cut Compactor::cut_of(Use& use, uint64_t bytes) {
  if (use.whole) return {{{0, bytes}}, bytes};
  std::ranges::sort(use.seen, {}, &Range::begin);
  Cut cut;
  for (Range range : use.seen) {
    range.begin -= range.begin % use.step;
    range.end = std::min(bytes, (range.end + use.step - 1) / use.step * use.step);
    if (cut.kept.empty() || range.begin > cut.kept.back().end)
      cut.kept.push_back(range);
    else
      cut.kept.back().end = std::max(cut.kept.back().end, range.end);
  }
  for (const Range& range : cut.kept) cut.bytes += range.end - range.begin;
  return cut;
}

// Copies each node once, so that the copy keeps the original's identities.
Ref Compactor::copy(const Ref& node) {
  if (node == nullptr) return nullptr;
  if (const auto known = copies_.find(node.get()); known != copies_.end()) return known->second;
  auto fresh = pickle::copy_of(*node);
  if (node->kind == Kind::persistent) {
    fresh->items[0] = copy_id(node);
    return copies_[node.get()] = fresh;
  }
  for (Ref& item : fresh->items) item = copy(item);
  for (auto& [key, value] : fresh->pairs) {
    key = copy(key);
    value = copy(value);
  }
  fresh->state = copy(node->state);
  if (strided_.contains(node.get())) fresh->items[1] = moved_offset(*node);
  return copies_[node.get()] = fresh;
}

Ref Compactor::copy_id(const Ref& node) {
  const Ref& id = node->items[0];
  if (const auto known = copies_.find(id.get()); known != copies_.end()) return known->second;
  const StorageId parsed = storage_id_of(node, object_.id_parts);
  auto fresh = pickle::copy_of(*id);
  for (Ref& item : fresh->items) item = copy(item);
  const uint64_t item_bytes = parsed.dtype ? dtype_bytes(*parsed.dtype) : 1;
  fresh->items[4] = pickle::integer(static_cast<int64_t>(cuts_.at(parsed.key).bytes / item_bytes));
  return copies_[id.get()] = fresh;
}

Ref Compactor::moved_offset(const Node& args) {
  const StorageId id = storage_id_of(args.items[0], object_.id_parts);
  const Cut& cut = cuts_.at(id.key);
  const uint64_t item = element_bytes(args, id);
  return pickle::integer(
      static_cast<int64_t>(cut.moved(static_cast<uint64_t>(args.items[1]->integer) * item) / item));
}

// Returns the kept bytes of `bytes`; the same memory when nothing is cut.
std::span<const std::byte> cut_bytes(std::span<const std::byte> bytes, const Cut& cut, TorchObject& into,
                                     CompactReport& report) {
  if (cut.bytes == bytes.size()) return bytes;
  report.dropped_bytes += bytes.size() - cut.bytes;
  ++report.changed_storages;
  auto block = std::make_shared<std::vector<std::byte>>();
  block->reserve(cut.bytes);
  for (const Range& range : cut.kept)
    block->insert(block->end(), bytes.begin() + static_cast<ptrdiff_t>(range.begin),
                  bytes.begin() + static_cast<ptrdiff_t>(range.end));
  auto storage = std::make_shared<Storage>();
  storage->bytes = *block;
  storage->owner = block;
  into.storages.push_back(storage);
  return storage->bytes;
}

// Storages of the copy own the cut bytes. Its index is a writer's, not a reader's.
void start_copy(TorchObject& copy, Ref root) {
  copy.root = std::move(root);
  copy.storage_index.clear();
  copy.storage_dtypes.clear();
}

}  // namespace

TorchZip compacted(const TorchZip& zip, CompactReport& report) {
  Compactor compactor(zip);
  TorchZip result = zip;
  start_copy(result, compactor.run());
  std::vector<ZipRecord> records;
  for (ZipRecord record : zip.records) {
    if (record.name.starts_with("data/")) {
      const std::string key = record.name.substr(5);
      if (!compactor.names(key)) {
        report.dropped_bytes += record.bytes.size();
        ++report.changed_storages;
        continue;
      }
      record.bytes = cut_bytes(record.bytes, compactor.cut(key), result, report);
    }
    records.push_back(std::move(record));
  }
  result.records = std::move(records);
  return result;
}

TorchLegacy compacted(const TorchLegacy& legacy, CompactReport& report) {
  Compactor compactor(legacy);
  TorchLegacy result = legacy;
  start_copy(result, compactor.run());
  for (LegacyRecord& record : result.records)
    record.bytes = cut_bytes(record.bytes, compactor.cut(record.key), result, report);
  return result;
}

}  // namespace qcts
