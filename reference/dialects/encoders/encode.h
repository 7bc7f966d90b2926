// SPDX-License-Identifier: BSD-3-Clause
// Encodes quantized tensors as torchao 0.18.0 does, for pickles and safetensors.
// For pickles, also encodes them as torchao 0.5.0 to 0.17.0 did.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/dialects.h"
#include "reference/schemes/choices/first_recipes.h"

namespace qcts {

// The class that torchao uses for a scheme in a layout under an activation policy.
struct TorchaoClass {
  std::string_view module;  // module that Python must import before torch.load(weights_only=True)
  std::string_view name;
  bool in_safetensors = false;                  // true if torchao's safetensors layer supports it
  std::string_view dialects = "torchao_v2";     // words of write_dialects(), separated by spaces
  std::string_view writers = "torchao 0.18.0";  // the versions that write this form
  WeightRecipe recipe = WeightRecipe::current;  // how these versions quantize the weight
  bool in_qdq_layout = false;                   // QDQLayout around a weight that other layouts hold too
};
// Returns "torchao_v2" (torchao 0.18.0), "torchao_v1" (0.9.0 to 0.17.0; where their forms differ, 0.13.0),
// "torchao_v1_qdq" (the same in QDQLayout), and one word for each older version that can be written,
// "torchao_0.9" to "torchao_0.5". For a reader, all but the first are torchao_v1.
std::span<const std::string_view> write_dialects();
// Returns the class of a dialect, or of the first dialect that has one, starting with today's.
// Returns nullptr if torchao has no class for these planes ("int4_tinygemm_g128" in layout "plain").
const TorchaoClass* torchao_class(const Scheme& scheme, Layout layout, Policy activation = kWeightOnly,
                                  std::string_view dialect = "");
// Returns the word of write_dialects() under which `made` is written with the classes and parts of a pickled
// tensor of torchao_v1, given by its node. Returns "torchao_v1" if no word fits. Planes are not needed.
std::string_view dialect_like(const pickle::Ref& node, const SchemeTensor& made);

// The storages of a new archive, numbered in order of first appearance as torch.save does.
class StorageTable {
 public:
  std::string key_of(const std::shared_ptr<const Storage>& storage);  // "0", "1", ...
  const std::vector<std::shared_ptr<const Storage>>& storages() const { return storages_; }

 private:
  std::unordered_map<const Storage*, std::string> keys_;
  std::vector<std::shared_ptr<const Storage>> storages_;
};

// Encodes the tensors of one archive.
// Python interns or creates some objects once: attribute names, torch.strided, enum members, a call's layout.
// Such objects are one node for all tensors, so the pickle has the same memo as torch.save's.
class TorchaoEncoder {
 public:
  // Returns torch.save's node for a wrapper subclass.
  // The node calls _rebuild_from_type_v2 with the class's __dict__ in its order.
  // The bytes of the planes become storages of `table`.
  // Requires that torchao_class() finds a class. SchemeTensor::dialect chooses if there are several.
  pickle::Ref encode(const SchemeTensor& tensor, StorageTable& table);
  // Returns the node for a tensor as its dialect reads it.
  // Supports the classes of torchao 0.18.0's safetensors.
  // Supports LinearActivationQuantizedTensor (torchao 0.13.0) around a plain weight too.
  // Throws std::invalid_argument for any other class.
  pickle::Ref encode(const NamedTensor& tensor, StorageTable& table);

 private:
  // `type` is the global of the class. `entries` has the form of Encoder::state.
  pickle::Ref encode_as(const SchemeTensor& tensor, const pickle::Ref& type, DType dtype,
                        const std::vector<int64_t>& shape, const nlohmann::ordered_json& entries,
                        StorageTable& table);
  pickle::Ref name(std::string_view text);
  pickle::Ref strided();
  pickle::Ref wrapper(const pickle::Ref& type, DType dtype, const std::vector<int64_t>& shape,
                      const pickle::Ref& state);
  // Converts a value in the encoding of attributes.h.
  pickle::Ref attribute(const nlohmann::ordered_json& value);
  pickle::Ref object(const nlohmann::ordered_json& value);
  // An empty module is the one in which today's class `type` is.
  pickle::Ref new_object(std::string_view module, std::string_view type, const nlohmann::ordered_json& data);
  pickle::Ref member(std::string_view type, const std::string& name_of_member);
  std::unordered_map<std::string, pickle::Ref> names_, members_, shared_;
  pickle::Ref strided_;
};

// Returns the graph of `object` with some tensors replaced. Everything else is kept with its identity.
// Storages are renumbered in order of appearance, and unused ones are dropped.
// Persistent ids are written as in a torch zip. The keys of the map are TensorLeaf::place.
using Replacements = std::unordered_map<TensorPlace, const SchemeTensor*, TensorPlaceHash>;
struct EditedZip {
  pickle::Ref root;
  std::vector<std::shared_ptr<const Storage>> storages;
};
EditedZip replace_tensors(const TorchObject& object, const Replacements& replacements);

// Returns the graph of `object` with layers of TinyQ (tinyq.py at 006b7b9) instead of some weights.
// In the place of a weight "M.weight", its dict receives "M.bias" if present, then the planes.
// The planes are "M.int8_weights", "M.scales" and, under W8A32, "M.zero_points".
// Parameters come before buffers, as in Module.state_dict().
// The keys of the map are the places of the weights, which must be in dicts.
EditedZip replace_by_tinyq(const TorchObject& object, const Replacements& layers);
// Returns the names and tensors of a TinyQ layer without its bias. `module` ends in '.' or is empty.
std::vector<std::pair<std::string, Tensor>> tinyq_parts(const SchemeTensor& layer, const std::string& module);

// One tensor of a new state dict, if the input is not a pickle. Exactly one of the two pointers is set.
struct OutputTensor {
  std::string name;
  const Tensor* plain = nullptr;
  const SchemeTensor* quantized = nullptr;
  std::vector<std::string> in_memory{};  // the names that metadata of safetensors lists, if not `name`
};
EditedZip encode_state_dict(const std::vector<OutputTensor>& tensors);

// The entries and __metadata__ that torchao's flatten_tensor_state_dict makes ("MODULE._PARAM_qdata").
// The JSON is as Python's json.dumps writes it.
// encode_safetensors() throws std::invalid_argument if two tensors would be written to the same entry.
// encode_safetensors() throws std::invalid_argument too if the name of a quantized tensor has no '.'.
struct EncodedSafetensors {
  std::vector<std::pair<std::string, Tensor>> entries;
  std::vector<std::string> owners;  // for each entry, the name of its tensor
  std::vector<std::pair<std::string, std::string>> metadata;
};
EncodedSafetensors encode_safetensors(const std::vector<OutputTensor>& tensors);

// Returns a tensor's attributes in torchao's JSON encoding and order.
// The attributes are equal to those that the reader finds in the encoded tensor.
// The tensor must be of one of today's classes.
nlohmann::ordered_json encoded_attributes(const SchemeTensor& tensor);

// Formats JSON like Python's json.dumps(value), with ", " and ": " between items and non-ASCII escaped.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace qcts
