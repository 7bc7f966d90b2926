// SPDX-License-Identifier: BSD-3-Clause
// Functions of the dialects, with one file per dialect. checkpoint.h is the public interface.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// The place of a value: the node of its container, and its index among the container's pairs or items.
// A root has no container.
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

// A direct child of a node: an element of a dict, list, tuple or set.
// A child of an object that --allow keeps is an argument, element or attribute.
struct HeldValue {
  const pickle::Ref* value = nullptr;
  const pickle::Ref* key = nullptr;  // nullptr: the child has an index instead
  TensorPlace place;
  bool unnamed = false;  // the key or index is not part of the names below this child
  size_t index = 0;
};
void for_each_held(const pickle::Ref& node, const std::function<void(const HeldValue&)>& visit);

// Returns the tensors of a saved object, depth-first in file order.
// The tensors inside objects that --allow keeps are included.
// Keys, attributes and indices are joined by '.'. Modules are named as state_dict() names them.
// Leaves that are not tensors are skipped, but resave keeps them in the graph.
// A lone tensor is named "tensor". If two names are equal, the second gets the suffix "#2".
// Throws Refused (LimitExceeded) before any name is made.
std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits);
std::vector<TensorLeaf> tensor_leaves(const pickle::Ref& root, const Limits& limits, ReadBudget& budget);

// The parts of a call that makes a tensor, decoded from its node.
// `parameter` is true if _rebuild_parameter wraps the tensor.
struct TensorNode {
  bool parameter = false;
  pickle::Ref plain;  // a node for tensor_of() if the tensor holds its own data
  pickle::Ref cls;    // global of the subclass; null for a plain tensor
  // Arguments of _rebuild_wrapper_subclass:
  // class, dtype, size, stride, offset, layout, device, requires_grad.
  pickle::Refs wrapper;
  pickle::Ref state;              // state of a subclass, or other attributes of a tensor
  pickle::Refs parameter_states;  // other attributes of a Parameter
};
TensorNode decode_tensor_node(const pickle::Ref& node);
bool is_tensor_node(const pickle::Ref& node);

// Returns the tag of a device, given as a string or as torch.device: "xla:0". Returns "" for other values.
std::string device_text(const pickle::Ref& device);

// Returns "plain", "torchao_v1" or "torchao_v2", as the class of a leaf's node demands.
std::string_view dialect_of_class(const pickle::Ref& cls);

// Returns the heap bytes of a named tensor without its attributes.
uint64_t heap_bytes_of(const NamedTensor& tensor);

// Reads one leaf and charges the budget.
NamedTensor read_plain(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget);
NamedTensor read_torchao_v2(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                            std::vector<std::string>& warnings, ReadBudget& budget);
NamedTensor read_torchao_v1(const TorchObject& object, const TensorLeaf& leaf, ReadBudget& budget);

// Returns true if the tensor is a torch.distributed.tensor.DTensor.
bool is_dtensor(const TensorNode& parts);
// Reads a DTensor. A file holds one rank's local part of it.
// If that part is the whole tensor, it is read as a tensor of its own class.
// Otherwise the names in the payload begin with "_local_tensor".
// The attributes under "dtensor." hold the spec: the placements and the mesh.
NamedTensor read_dtensor(const TorchObject& object, const TensorLeaf& leaf, bool lenient,
                         std::vector<std::string>& warnings, ReadBudget& budget);
// Adds the tensors of a value to the payload, and its other values to the attributes.
// The names of both are `name` and dotted names below it.
void read_parts(const TorchObject& object, const pickle::Ref& value, const std::string& name,
                NamedTensor& tensor, ReadBudget& budget);

// Returns true if a tensor is among the values below the node.
bool holds_tensor(const pickle::Ref& root, ReadBudget& budget);
// Adds the __dict__ of a tensor or Parameter; with __slots__ a pair of dicts. The names begin with kFurther.
void read_attributes(const TorchObject& object, const pickle::Ref& state, NamedTensor& tensor,
                     ReadBudget& budget);

// Reads a wrapper subclass. Tensors of its state go into the payload, other values into the attributes.
// The name of a nested subclass, followed by '.', begins the names of its parts.
// Sets shape and dtype from the wrapper's arguments.
// Returns the parts and attributes that no version of the class has. Their names begin with kFurther.
// add_further() adds these to the tensor after its own parts were checked.
NamedTensor read_subclass_state(const TorchObject& object, const TensorNode& parts, NamedTensor& tensor,
                                ReadBudget& budget);
void add_further(NamedTensor& tensor, NamedTensor further);
// Adds a note for each name of a further attribute, of tensors and of OrderedDicts.
void note_further(Checkpoint& checkpoint);

// The entries and metadata of one file, or of all shards of a directory.
struct SafetensorsView {
  std::vector<const SafetensorsEntry*> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  ReadBudget budget;                // the budget that remains after reading the files
  std::vector<NotStored> left_out;  // names that are listed and have no entry in the files, or not all
};
// The form of torchao's keys: plain keys have no torchao metadata.
// Other keys contain ':' (up to torchao 0.14) or '_' (since 0.15).
// detect_safetensors_keys() throws Refused (SubclassSchema) if both of these forms match.
enum class SafetensorsKeys : uint8_t { plain, colon, underscore };
SafetensorsKeys detect_safetensors_keys(const SafetensorsView& view);
std::vector<NamedTensor> read_torchao_safetensors(SafetensorsView& view, SafetensorsKeys keys,
                                                  const OpenOptions& options,
                                                  const nlohmann::ordered_json& config,
                                                  std::vector<std::string>& warnings);
std::vector<NamedTensor> read_plain_safetensors(SafetensorsView& view);
NamedTensor read_plain_entry(const SafetensorsEntry& entry, ReadBudget& budget);

// Parses JSON in metadata and charges the budget.
// Throws Refused (SubclassSchema) for malformed JSON or a duplicate key.
// Throws Refused (LimitExceeded) for too deep nesting or too many keys.
nlohmann::ordered_json parse_metadata_json(const std::string& text, const std::string& where,
                                           const Limits& limits, ReadBudget& budget);

// Returns true if the file follows pytorch/ao#2338.
// Throws Refused (SubclassSchema) if the file also matches torchao's own dialect.
bool has_2338_keys(const SafetensorsView& view);
std::vector<NamedTensor> read_torchao_2338(SafetensorsView& view, const OpenOptions& options,
                                           std::vector<std::string>& warnings);

// Adds a finding for each bound of x's scales that no kernel could take. If lenient, adds a warning instead.
void check_scale_bounds(Checkpoint& checkpoint, const OpenOptions& options);

// Returns the name that this library gives to a function with several paths, or any other path unchanged.
std::string canonical_function(std::string path);
// Inverts canonical_function(): returns the path that Python's __module__ and __qualname__ give.
std::string qualified_function(std::string name);

// Joins the plain tensors of each TinyQ layer into one tensor. Returns false if there is no such layer.
// Throws Refused: SubclassSchema for inconsistent parts, DuplicateEntry if a module also has a float weight.
bool join_tinyq_layers(std::vector<NamedTensor>& tensors, ReadBudget& budget);

// The functions below are defined in checkpoint.cc and directory.cc.
// Each function charges the budget that it receives and passes it on.
void fill_from_object(Checkpoint& checkpoint, const TorchObject& object, const OpenOptions& options,
                      ReadBudget& budget);
// Reads a torch zip or a legacy file, depending on its first bytes.
// Adds the container to `zips` or `legacies`, and its tensors to `tensors`.
// Throws Refused (NotArchive) for other files.
void read_pickled(Checkpoint& checkpoint, std::shared_ptr<const MappedFile> file, const OpenOptions& options,
                  ReadBudget& budget);
void fill_from_safetensors(Checkpoint& checkpoint, SafetensorsView& view, const OpenOptions& options);
bool begins_with_zip(std::span<const std::byte> bytes);
// A pickle, and no length of a header of safetensors, whose low bytes may look like one.
bool begins_as_torch_legacy(std::span<const std::byte> bytes);
bool has_safetensors_header(std::span<const std::byte> bytes);
// Throws Refused (NotArchive) for a file of another known kind, and names the kind.
void refuse_foreign_file(const MappedFile& file);
// Detects dialects by key pattern after all shards are read.
// Throws Refused (SubclassSchema) if two dialects match, or if the requested one does not.
void join_by_keys(Checkpoint& checkpoint, const OpenOptions& options, ReadBudget& budget);
// Reads one GGUF file, or all parts of a model that was split (gguf.cc).
bool begins_with_gguf(std::span<const std::byte> bytes);
Checkpoint read_gguf_checkpoint(std::shared_ptr<const MappedFile> file, const OpenOptions& options);
// Reads the parts of a folder in the order of their names.
void read_gguf_parts(Checkpoint& checkpoint, const std::vector<std::filesystem::path>& paths,
                     const OpenOptions& options);
// Reads a file as read_checkpoint() does. Given the first part of a split GGUF model, reads all parts.
Checkpoint open_parts(std::shared_ptr<const MappedFile> file, const OpenOptions& options);
Checkpoint open_directory(const std::filesystem::path& path, const OpenOptions& options);
// Throws Refused: StJson for malformed JSON, LimitExceeded beyond 256 MiB or 64 levels.
nlohmann::ordered_json read_json_file(const std::filesystem::path& path);
// How a checkpoint says that it is quantized.
struct QuantConfig {
  std::string method;  // quant_method in lower case; empty if there is none, or torchao's
  nlohmann::ordered_json said = nlohmann::ordered_json::object();  // what quantization_config says
  std::optional<DType> dtype{};                                    // the model's, as config.json names it
  std::string contradiction{};  // how another file of the directory contradicts it; empty if none does
};
// Returns what config.json says. Three more files of a directory count too:
// hf_quant_config.json (ModelOpt), quantize_config.json (GPTQ) and quant_config.json (AWQ).
QuantConfig quant_config(const nlohmann::ordered_json& config, const std::filesystem::path& directory);
// Returns what --config says, or the config.json next to a file; nothing if there is none.
QuantConfig quant_config_of_file(const std::filesystem::path& file, const OpenOptions& options);
// Returns the files next to a file that quant_config_of_file() may read.
std::vector<std::filesystem::path> configs_beside(const std::filesystem::path& file);
// Returns true if weights of this ForeignFormat are read, given their configuration.
bool is_joined(std::string_view format);
// Joins the plain tensors of each weight that the configuration describes, and sets the dialect.
// Adds a finding for each weight that contradicts it.
// Returns why the first weight that stays apart cannot be read; empty if there is none.
// Throws Refused (DuplicateEntry, SubclassSchema) for two weights that share a name or a part.
std::string join_foreign_parts(Checkpoint& checkpoint, const QuantConfig& config, ReadBudget& budget);
// Marks the tensors of foreign formats (foreign/foreign.h), sets the dialect and adds the findings.
// `method` is QuantConfig::method, and `why` the result of join_foreign_parts().
void name_foreign(Checkpoint& checkpoint, const std::string& method, const std::string& why,
                  ReadBudget& budget);
TorchOptions torch_options(const OpenOptions& options);
SafetensorsOptions safetensors_options(const OpenOptions& options);

}  // namespace qcts
