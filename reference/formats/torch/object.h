// SPDX-License-Identifier: BSD-3-Clause
// What both containers of torch.save hold, the zip archive and the legacy file: an object graph, and the
// storages that its persistent ids name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reference/formats/io/read_budget.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/tensor.h"

namespace qcts {

enum class CrcPolicy : uint8_t {
  verify,
  skip,    // the storages' are not compared: what --no-crc says
  ignore,  // none is: for fuzzers, which could not get past them
};

struct TorchOptions {
  Limits limits;
  CrcPolicy crc = CrcPolicy::verify;
  bool lenient = false;                      // accept plain zips without ZIP64 records
  std::vector<std::string> allow;            // globals, "module.name"
  std::vector<std::string> allow_locations;  // storage tags beside those of device_of_location
};

struct TorchObject {
  pickle::Ref root;
  // By first appearance in the pickle; elements of a big-endian file already swapped. Of a cuda tag too the
  // bytes are here, on the host.
  std::vector<std::shared_ptr<const Storage>> storages;
  std::vector<std::optional<DType>>
      storage_dtypes;  // beside `storages`; nullopt: only used as UntypedStorage
  // key -> index into `storages`
  std::unordered_map<Text, size_t, TextHash, std::equal_to<>> storage_index;
  Limits limits;      // that it was read with
  ReadBudget budget;  // after reading it
  size_t id_parts =
      5;  // of a persistent id: kind, class, key, location, count; the legacy format's sixth is a view
};

// The budget after an object was read: `records` of a container whose directory has `directory_bytes`.
ReadBudget budget_of(const TorchObject& object, const pickle::ReadCost& cost, size_t records,
                     uint64_t directory_bytes, uint64_t file_bytes);

// The tensor that a node spells (_rebuild_tensor_v2, _v3, _rebuild_parameter); nullopt when the node is no
// plain tensor. Refuses what contradicts its storage. Storages are shared: two views of data/0 have one
// Storage.
std::optional<Tensor> tensor_of(const TorchObject& object, const pickle::Ref& node);

// The storage that a persistent id names, as a one-dimensional tensor of its class's elements; of bytes for
// an UntypedStorage.
std::optional<Tensor> storage_of(const TorchObject& object, const pickle::Ref& node);

// The inverse, for writing: nodes for a plain tensor as torch.save 2.13 spells it. `storage_key` is "0", "1",
// ...
pickle::Ref tensor_node(const Tensor& tensor, const std::string& storage_key, bool requires_grad = false);

// The device that takes a storage with this tag, "cuda:0" -> "cuda": the first package of torch's registry
// that knows it (torch/serialization.py, 2.13: register_package, in order of priority: cpu 10, cuda 20, mps
// 21, meta 22, privateuse1 23, hpu 24, xpu 25, mtia 26), then the names that other versions and renamed
// backends wrote, then `allow`, whose names match whole or with an index behind a colon. nullopt: nobody
// does, and torch.load would not know where to restore it.
std::optional<std::string> device_of_location(std::string_view tag, const std::vector<std::string>& allow);

// What a rebuilt file took over from its source because the writer's model does not explain it. All false for
// what torch.save wrote with libstdc++.
struct RebuildNotes {
  bool kept_pickle = false;            // same graph, another pickler's spelling
  bool kept_serialization_id = false;  // the recorded id is not the one that libstdc++ would give
  bool kept_file =
      false;  // headers, padding or end records: nothing was edited, and the container is another writer's
};

}  // namespace qcts
