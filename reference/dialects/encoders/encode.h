// SPDX-License-Identifier: BSD-3-Clause
// Encodes quantized tensors as torchao 0.18.0 does, for pickles and safetensors, and as torchao 0.9.0 to
// 0.17.0 did, for pickles.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/dialects.h"

namespace qcts {

// The class that torchao uses for a scheme, a layout and an activation policy.
struct TorchaoClass {
  std::string_view module;  // Python must import it before torch.load(weights_only=True)
  std::string_view name;
  bool in_safetensors = false;                  // supported by torchao's safetensors layer
  std::string_view dialect = "torchao_v2";      // or "torchao_v1"
  std::string_view writers = "torchao 0.18.0";  // the versions that write this form
};
// Returns the class of a dialect, or of the first dialect that has one, today's first; nullptr when torchao
// has none for these planes ("int4_tinygemm_g128" in layout "plain").
const TorchaoClass* torchao_class(const Scheme& scheme, Layout layout, Policy activation = kWeightOnly,
                                  std::string_view dialect = "");

// The storages of a new archive, numbered by first appearance as torch.save does.
class StorageTable {
 public:
  std::string key_of(const std::shared_ptr<const Storage>& storage);  // "0", "1", ...
  const std::vector<std::shared_ptr<const Storage>>& storages() const { return storages_; }

 private:
  std::unordered_map<const Storage*, std::string> keys_;
  std::vector<std::shared_ptr<const Storage>> storages_;
};

// Encodes the tensors of one archive. Objects that Python interns or has once (attribute names,
// torch.strided, enum members, a call's layout) are one node for all its tensors, so the pickle's memo is
// torch.save's.
class TorchaoEncoder {
 public:
  // Returns torch.save's node for a wrapper subclass: _rebuild_from_type_v2 with the class's __dict__ in its
  // order. The planes' bytes become storages of `table`. Requires torchao_class(); SchemeTensor::dialect
  // chooses among several.
  pickle::Ref encode(const SchemeTensor& tensor, StorageTable& table);
  // The same for a tensor as its dialect reads it: the classes of torchao 0.18.0's safetensors, and
  // LinearActivationQuantizedTensor (torchao 0.13.0) around a plain weight. Throws std::invalid_argument for
  // any other class.
  pickle::Ref encode(const NamedTensor& tensor, StorageTable& table);

 private:
  // `type`: the class as a global; `entries`: as Encoder::state
  pickle::Ref encode_as(const SchemeTensor& tensor, const pickle::Ref& type, DType dtype,
                        const std::vector<int64_t>& shape, const nlohmann::ordered_json& entries,
                        StorageTable& table);
  pickle::Ref name(std::string_view text);
  pickle::Ref strided();
  pickle::Ref wrapper(const pickle::Ref& type, DType dtype, const std::vector<int64_t>& shape,
                      const pickle::Ref& state);
  // Converts a value in the encoding of attributes.h.
  pickle::Ref attribute(const nlohmann::ordered_json& value);
  pickle::Ref object(std::string_view type, const nlohmann::ordered_json& data);
  pickle::Ref new_object(std::string_view type, const nlohmann::ordered_json& data);
  pickle::Ref member(std::string_view type, const std::string& name_of_member);
  std::unordered_map<std::string, pickle::Ref> names_, members_, layouts_;
  pickle::Ref strided_;
};

// Returns the graph of `object` with some tensors replaced and all else kept with its identity. Storages are
// renumbered by appearance, unused ones dropped, and persistent ids written as in a torch zip. Keys:
// TensorLeaf::place.
using Replacements = std::unordered_map<TensorPlace, const SchemeTensor*, TensorPlaceHash>;
struct EditedZip {
  pickle::Ref root;
  std::vector<std::shared_ptr<const Storage>> storages;
};
EditedZip replace_tensors(const TorchObject& object, const Replacements& replacements);

// As above, with TinyQ's layers (tinyq.py at 006b7b9). The dict of a weight "M.weight" receives in its place
// "M.bias" if present, then the planes "M.int8_weights", "M.scales" and, under W8A32, "M.zero_points":
// parameters before buffers, as in Module.state_dict(). Keys: the places of the weights, which must be in
// dicts.
EditedZip replace_by_tinyq(const TorchObject& object, const Replacements& layers);
// Returns the names and tensors of such a layer without its bias. `module` ends in '.' or is empty.
std::vector<std::pair<std::string, Tensor>> tinyq_parts(const SchemeTensor& layer, const std::string& module);

// One tensor of a new state dict, for input that is not a pickle. Exactly one of the two pointers is set.
struct OutputTensor {
  std::string name;
  const Tensor* plain = nullptr;
  const SchemeTensor* quantized = nullptr;
};
EditedZip encode_state_dict(const std::vector<OutputTensor>& tensors);

// Entries and __metadata__ as torchao's flatten_tensor_state_dict makes them ("MODULE._PARAM_qdata"; JSON as
// Python's json.dumps writes it). Throws std::invalid_argument when two tensors would become the same entry,
// and for a quantized tensor whose name has no '.'.
struct EncodedSafetensors {
  std::vector<std::pair<std::string, Tensor>> entries;
  std::vector<std::string> owners;  // of each entry, the name of its tensor
  std::vector<std::pair<std::string, std::string>> metadata;
};
EncodedSafetensors encode_safetensors(const std::vector<OutputTensor>& tensors);

// Returns a tensor's attributes in torchao's JSON encoding and order, as the reader shows them for the
// encoded tensor, which must be of a class of today.
nlohmann::ordered_json encoded_attributes(const SchemeTensor& tensor);

// Formats like Python's json.dumps(value): ", " and ": " between items, non-ASCII escaped.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace qcts
