// SPDX-License-Identifier: BSD-3-Clause
// The content of both containers of torch.save, zip and legacy.
// The content is an object graph, and the storages that its persistent ids name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/formats/io/read_budget.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

enum class CrcPolicy : uint8_t {
  verify,
  skip,    // skip the storages' CRCs: --no-crc
  ignore,  // skip all CRCs: for fuzzers
};

struct TorchOptions {
  Limits limits;
  CrcPolicy crc = CrcPolicy::verify;
  bool lenient = false;                      // accept plain zips without ZIP64 records
  std::vector<std::string> allow;            // globals, "module.name"
  std::vector<std::string> allow_locations;  // storage tags to allow in addition to device_of_location's
  // Device tags to read as others: FROM and TO. FROM is a whole tag, or a device without its index.
  // If several tags match, the longest FROM decides.
  std::vector<std::pair<std::string, std::string>> map_locations;
};

// The device tags of a file before any were mapped, and which of TorchOptions::map_locations matched one.
struct LocationUse {
  std::set<std::string> tags;  // the first kMaxTags
  std::vector<bool> matched;   // parallel to map_locations
  static constexpr size_t kMaxTags = 8;
};

struct TorchObject {
  pickle::Ref root;
  LocationUse locations;
  // Storages in order of first appearance in the pickle. Elements of a big-endian file are already swapped.
  // Bytes of cuda storages are here too, on the host.
  std::vector<std::shared_ptr<const Storage>> storages;
  std::vector<std::optional<DType>>
      storage_dtypes;  // parallel to `storages`; nullopt: used only as UntypedStorage
  // Maps a key to an index into `storages`.
  std::unordered_map<Text, size_t, TextHash, std::equal_to<>> storage_index;
  // The elements of numpy arrays (pickle/numpy_arrays.h), by the node of the array.
  std::unordered_map<const pickle::Node*, Tensor> arrays;
  Limits limits;      // used when reading
  ReadBudget budget;  // the budget that remains after reading
  size_t id_parts =
      5;  // parts of a persistent id: kind, class, key, location, count, and in the legacy format a view
};

// Returns the budget that remains after reading an object from a container.
// The container has `records` records and a directory of `directory_bytes`.
ReadBudget budget_of(const TorchObject& object, const pickle::ReadCost& cost, size_t records,
                     uint64_t directory_bytes, uint64_t file_bytes);

// Returns the tensor of a node (_rebuild_tensor_v2, _v3, _rebuild_parameter).
// Returns nullopt if the node is not a plain tensor. Refuses a tensor that contradicts its storage.
// Two views of data/0 share one Storage.
std::optional<Tensor> tensor_of(const TorchObject& object, const pickle::Ref& node);

// Returns the storage of a persistent id as a one-dimensional tensor.
// The elements have the type of the storage's class. Elements of an UntypedStorage are bytes.
std::optional<Tensor> storage_of(const TorchObject& object, const pickle::Ref& node);

// Inverts tensor_of() for writing: makes the nodes that torch.save 2.13 writes for a plain tensor.
// `storage_key` is "0", "1", ...
pickle::Ref tensor_node(const Tensor& tensor, const std::string& storage_key, bool requires_grad = false);

// Returns the device of a storage tag: "cuda" for "cuda:0".
// The first package of torch's registry that accepts the tag decides.
// torch/serialization.py (2.13, register_package) sorts the registry by priority:
// cpu 10, cuda 20, mps 21, meta 22, privateuse1 23, hpu 24, xpu 25, mtia 26.
// Names that other versions and renamed backends wrote come next.
// The names in `allow` come last, and match whole or with ":index".
// Returns nullopt if torch.load could not place the storage either.
std::optional<std::string> device_of_location(std::string_view tag, const std::vector<std::string>& allow);

// Returns the tag that `maps` (TorchOptions::map_locations) gives a device tag.
std::string mapped_location(std::string_view tag,
                            const std::vector<std::pair<std::string, std::string>>& maps);

// Replaces device tags in the graph as `maps` says, like torch.load(map_location).
// Storages, tensors of devices without storages, and wrapper subclasses have such tags.
LocationUse map_locations(const pickle::Ref& root,
                          const std::vector<std::pair<std::string, std::string>>& maps);

// Tells which parts a rebuilt file copies because the writer would not produce them.
// All are false for files that torch.save wrote with libstdc++.
struct RebuildNotes {
  bool kept_pickle = false;            // same graph, but another pickler encoded it differently
  bool kept_serialization_id = false;  // libstdc++ would give another id than the recorded one
  bool kept_file = false;  // headers, padding or end records that another writer gave an unedited container
};

}  // namespace qcts
