// SPDX-License-Identifier: BSD-3-Clause
// The dialects, one file each; checkpoint.h is the public interface.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// The place of a value: its container's node, and the index among its pairs or items. A root has no
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

// A tensor of a state dict: its dotted name and its node.
struct TensorLeaf {
  std::string name;
  pickle::Ref node;
  TensorPlace place;  // one node may be at several places
};

// A direct child of a node: an element of a dict, list, tuple or set; an argument, element or attribute of an
// object that --allow keeps.
struct HeldValue {
  const pickle::Ref* value = nullptr;
  const pickle::Ref* key = nullptr;  // nullptr: it has an index
  TensorPlace place;
  bool unnamed = false;  // its key or index is not part of the names below it
  size_t index = 0;
};
void for_each_held(const pickle::Ref& node, const std::function<void(const HeldValue&)>& visit);

// Returns the tensors of a saved object, depth-first in file order, including those inside objects that
// --allow keeps. Keys, attributes and indices are joined by '.'; modules are named as state_dict() names
// them. Other leaves are skipped (resave keeps them in the graph). A lone tensor is named "tensor"; of equal
// names the second gets the suffix "#2". Throws Refused (LimitExceeded) before names are made.
std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits);
std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits, ReadBudget& budget);

// A decoded call that makes a tensor: what _rebuild_parameter wraps, and a subclass's class and state.
struct TensorNode {
  bool parameter = false;
  pickle::Ref plain;     // a node for tensor_of(), when the tensor holds its own data
  pickle::Ref cls;       // global of the subclass; null for a plain tensor
  pickle::Refs wrapper;  // arguments of _rebuild_wrapper_subclass: class, dtype, size, stride,
                         // offset, layout, device, rg
  pickle::Ref state;     // state of a subclass, or other attributes of a tensor or Parameter
};
TensorNode decode_tensor_node(const pickle::Ref& node);
bool is_tensor_node(const pickle::Ref& node);

// Returns "plain", "torchao_v1" or "torchao_v2" by the class of a leaf's node.
std::string_view dialect_of_class(const pickle::Ref& cls);

// Returns the heap bytes of a named tensor without its attributes.
uint64_t heap_bytes_of(const NamedTensor& tensor);

// Reads one leaf and charges the budget. `dialect` is the requested one; empty: chosen by class.
NamedTensor read_plain(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget);
NamedTensor read_torchao_v2(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                            std::vector<std::string>& warnings, ReadBudget& budget);
NamedTensor read_torchao_v1(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget);

// Is it a torch.distributed.tensor.DTensor?
bool is_dtensor(const TensorNode& parts);
// Reads a DTensor, of which a file holds the local tensor of one rank. If that is the whole tensor, it is
// read as the tensor that it is; otherwise the payload begins with "_local_tensor". Its spec follows under
// "dtensor.": the placements, the mesh.
NamedTensor read_dtensor(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                         std::vector<std::string>& warnings, ReadBudget& budget);
// Adds the tensors of a value to the payload and its other values to the attributes, under `name` and dotted
// names.
void read_parts(const TorchObject& object, const pickle::Ref& value, const std::string& name,
                NamedTensor& tensor, ReadBudget& budget);

// Reads a wrapper subclass: tensors of its state into `payload` under `prefix`, other values into
// `attributes`, nested subclasses under "prefix.". Sets shape and dtype from the wrapper's arguments.
void read_subclass_state(const TorchObject& object, const TensorNode& parts, NamedTensor& tensor,
                         ReadBudget& budget);

// The entries and metadata of one file, or of all shards of a directory.
struct SafetensorsView {
  std::vector<const SafetensorsEntry*> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  ReadBudget budget;                  // after reading the files
  std::vector<std::string> left_out;  // names that are listed and have nothing in the files
};
// The form of torchao's keys: no torchao metadata, ':' (up to 0.14) or '_' (since 0.15). Refuses
// SubclassSchema when both match.
enum class SafetensorsKeys : uint8_t { plain, colon, underscore };
SafetensorsKeys detect_safetensors_keys(const SafetensorsView& view);
std::vector<NamedTensor> read_torchao_safetensors(SafetensorsView& view, SafetensorsKeys keys,
                                                  const OpenOptions& options,
                                                  std::vector<std::string>& warnings);
std::vector<NamedTensor> read_plain_safetensors(SafetensorsView& view);
NamedTensor read_plain_entry(const SafetensorsEntry& entry, ReadBudget& budget);

// Parses JSON in metadata and charges the budget. Throws Refused (SubclassSchema) for malformed JSON or a
// duplicate key, LimitExceeded for too much nesting or too many keys.
nlohmann::ordered_json parse_metadata_json(const std::string& text, const std::string& where,
                                           const Limits& limits, ReadBudget& budget);

// Does the file follow pytorch/ao#2338? Throws Refused (SubclassSchema) if it also matches torchao's own
// dialect.
bool has_2338_keys(const SafetensorsView& view);
std::vector<NamedTensor> read_torchao_2338(SafetensorsView& view, const OpenOptions& options,
                                           std::vector<std::string>& warnings);

// Returns the name that this library gives a function with several paths; other paths unchanged.
std::string canonical_function(std::string path);
// The inverse: the path by Python's __module__ and __qualname__.
std::string qualified_function(std::string name);

// Joins the plain tensors of each TinyQ layer to one tensor; returns false when there is none. Refuses
// SubclassSchema for inconsistent parts, DuplicateEntry when a module also has a float weight.
bool join_tinyq_layers(std::vector<NamedTensor>& tensors, ReadBudget& budget);

// Defined in checkpoint.cc and directory.cc. Each charges the budget that it is given and passes it on.
void fill_from_object(Checkpoint& checkpoint, const TorchObject& object, const OpenOptions& options,
                      ReadBudget& budget);
// Reads a torch zip or a legacy file, as its first bytes say, into `zips` or `legacies` and `tensors`.
// Throws Refused (NotArchive).
void read_pickled(Checkpoint& checkpoint, std::shared_ptr<const MappedFile> file, const OpenOptions& options,
                  ReadBudget& budget);
void fill_from_safetensors(Checkpoint& checkpoint, SafetensorsView& view, const OpenOptions& options);
// Throws Refused (NotArchive) for a file that is known to be of another kind, which it names.
void refuse_foreign_file(const MappedFile& file);
// Detects dialects by key pattern after all shards are read. Throws Refused (SubclassSchema) when two match,
// or when the requested one does not.
void join_by_keys(Checkpoint& checkpoint, const OpenOptions& options, ReadBudget& budget);
Checkpoint open_directory(const std::filesystem::path& path, const OpenOptions& options);
// Throws Refused (StJson), and LimitExceeded beyond 256 MiB and 64 levels.
nlohmann::ordered_json read_json_file(const std::filesystem::path& path);
// Marks the tensors of foreign formats (foreign.h), sets the dialect and adds the findings. `method`: as
// foreign_method() gives it.
void name_foreign(Checkpoint& checkpoint, const std::string& method, ReadBudget& budget);
TorchOptions torch_options(const OpenOptions& options);
SafetensorsOptions safetensors_options(const OpenOptions& options);

}  // namespace qcts
