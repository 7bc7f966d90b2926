// SPDX-License-Identifier: BSD-3-Clause
// The dialects, one file each, behind checkpoint.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Where a value stands: the container's node, and the index among its pairs or items. A root has no
// container.
struct TensorPlace {
  const pickle::Node* container = nullptr;
  size_t slot = 0;
  bool operator==(const TensorPlace&) const = default;
};
struct TensorPlaceHash {
  size_t operator()(const TensorPlace& place) const {
    return std::hash<const void*>()(place.container) * 31 + place.slot;
  }
};

// A tensor of a state dict: its dotted name and the node that spells it.
struct TensorLeaf {
  std::string name;
  pickle::Ref node;
  TensorPlace place;  // one node may stand at several places
};

// A value directly below a node: of a dict, list, tuple or set its elements; of an object that --allow keeps
// its arguments, elements and attributes.
struct HeldValue {
  const pickle::Ref* value = nullptr;
  const pickle::Ref* key = nullptr;  // nullptr: it has an index
  TensorPlace place;
  bool unnamed = false;  // its key or index is no part of the names below it
  size_t index = 0;
};
void for_each_held(const pickle::Ref& node, const std::function<void(const HeldValue&)>& visit);

// Leaves of the object that torch.save took, depth-first in file order, those inside of objects that --allow
// keeps among them. Keys, attributes and indices are joined by '.'; modules are named as state_dict() names
// them. Everything that is no tensor is passed over (resave keeps it with the graph). A tensor alone is named
// "tensor"; of equal names the second gets the suffix "#2". Refuses LimitExceeded before names are made.
std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits);
std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits, ReadBudget& budget);

// The dotted name of the first leaf that is no tensor, or of an empty container; nullopt when the tensors are
// all there is.
std::optional<std::string> first_other_leaf(const pickle::Ref& root);

// Calls that make tensors, taken apart: what _rebuild_parameter wraps, and the class and state of a subclass.
struct TensorSpelling {
  bool parameter = false;
  pickle::Ref plain;     // a node for tensor_of(), when the tensor has its data itself
  pickle::Ref cls;       // global of the subclass; null for a plain tensor
  pickle::Refs wrapper;  // arguments of _rebuild_wrapper_subclass: class, dtype, size, stride,
                         // offset, layout, device, rg
  pickle::Ref state;     // of a subclass, or what else hangs on a tensor or Parameter
};
TensorSpelling spelling_of(const pickle::Ref& node);
bool is_tensor_node(const pickle::Ref& node);

// "plain", "torchao_v1" or "torchao_v2" by the class of a leaf's node.
std::string_view dialect_of_class(const pickle::Ref& cls);

// What a named tensor takes on the heap, its attributes apart.
uint64_t heap_bytes_of(const NamedTensor& tensor);

// One leaf, charged to the budget. `dialect` is the one asked for, empty: by class.
NamedTensor read_plain(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget);
NamedTensor read_torchao_v2(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                            std::vector<std::string>& warnings, ReadBudget& budget);
NamedTensor read_torchao_v1(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget);

// The parts of a wrapper subclass: tensors of the state into `payload` under `prefix`, everything else into
// `attributes`; nested subclasses under "prefix.". Sets shape and dtype from the wrapper's arguments.
void read_subclass_state(const TorchObject& object, const TensorSpelling& spelling, NamedTensor& tensor,
                         ReadBudget& budget);

// Entries and metadata of one file, or of all shards of a directory.
struct SafetensorsView {
  std::vector<const SafetensorsEntry*> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  ReadBudget budget;                  // after reading the files
  std::vector<std::string> left_out;  // names that are listed and have nothing in the files
};
// The spelling of torchao's keys: no metadata of torchao, ':' (up to 0.14) or '_' (since 0.15). Refuses
// SubclassSchema where both fit.
enum class SafetensorsKeys : uint8_t { plain, colon, underscore };
SafetensorsKeys detect_safetensors_keys(const SafetensorsView& view);
std::vector<NamedTensor> read_torchao_safetensors(SafetensorsView& view, SafetensorsKeys keys,
                                                  const OpenOptions& options,
                                                  std::vector<std::string>& warnings);
std::vector<NamedTensor> read_plain_safetensors(SafetensorsView& view);
NamedTensor read_plain_entry(const SafetensorsEntry& entry, ReadBudget& budget);

// JSON in metadata, charged as it is read. SubclassSchema for what is not JSON or has a key twice,
// LimitExceeded for too deep nesting and too many keys.
nlohmann::ordered_json parse_metadata_json(const std::string& text, const std::string& where,
                                           const Limits& limits, ReadBudget& budget);

// pytorch/ao#2338. Refuses SubclassSchema where torchao's own dialect fits too.
bool spelt_as_2338(const SafetensorsView& view);
std::vector<NamedTensor> read_torchao_2338(SafetensorsView& view, const OpenOptions& options,
                                           std::vector<std::string>& warnings);

// Plain tensors of TinyQ's layers joined to one tensor a module; false when there is none. Refuses
// SubclassSchema where a layer's parts contradict each other, DuplicateEntry where a module has a float
// weight as well.
bool join_tinyq_layers(std::vector<NamedTensor>& tensors, ReadBudget& budget);

// checkpoint.cc and directory.cc
// Each charges the budget of what was read and hands it on.
void fill_from_object(Checkpoint& checkpoint, const TorchObject& object, const OpenOptions& options,
                      ReadBudget& budget);
// A torch zip or a legacy file, whichever its first bytes say, into `zips` or `legacies` and `tensors`.
// Refuses NotArchive.
void read_pickled(Checkpoint& checkpoint, std::shared_ptr<const MappedFile> file, const OpenOptions& options,
                  ReadBudget& budget);
void fill_from_safetensors(Checkpoint& checkpoint, SafetensorsView& view, const OpenOptions& options);
// Refuses NotArchive for a file that is known to be of another kind, which it names.
void refuse_foreign_file(const MappedFile& file);
// Dialects of key patterns, once every shard is read. Refuses SubclassSchema where two dialects fit, or where
// the one asked for does not.
void join_by_keys(Checkpoint& checkpoint, const OpenOptions& options, ReadBudget& budget);
Checkpoint open_directory(const std::filesystem::path& path, const OpenOptions& options);
// Refuses StJson, and LimitExceeded beyond 256 MiB and 64 levels.
nlohmann::ordered_json read_json_file(const std::filesystem::path& path);
// Marks the tensors of foreign formats (foreign.h), sets the dialect and adds the findings. `method`: as
// foreign_method() gives it.
void name_foreign(Checkpoint& checkpoint, const std::string& method, ReadBudget& budget);
TorchOptions torch_options(const OpenOptions& options);
SafetensorsOptions safetensors_options(const OpenOptions& options);

}  // namespace qcts
