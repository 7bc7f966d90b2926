// SPDX-License-Identifier: BSD-3-Clause
// Writing: quantized tensors in the spelling of torchao 0.18.0, pickled and in safetensors.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/dialects.h"

namespace qcts {

// The class that torchao 0.18.0 makes for a scheme, a layout and an activation policy.
struct TorchaoClass {
  std::string_view module;  // what Python has to import before torch.load(weights_only=True)
  std::string_view name;
  bool in_safetensors = false;  // torchao's safetensors layer takes it
};
// nullptr: no class of torchao means these planes ("int4_tinygemm_g128" in layout "plain").
const TorchaoClass* torchao_class(const Scheme& scheme, Layout layout, Policy activation = kWeightOnly);

// Storages of an archive in the making, numbered by first appearance as torch.save does.
class StorageTable {
 public:
  std::string key_of(const std::shared_ptr<const Storage>& storage);  // "0", "1", ...
  const std::vector<std::shared_ptr<const Storage>>& storages() const { return storages_; }

 private:
  std::unordered_map<const Storage*, std::string> keys_;
  std::vector<std::shared_ptr<const Storage>> storages_;
};

// Spells the tensors of one archive. What Python interns or keeps as one object (names of attributes,
// torch.strided, enum members) is one node for all tensors of a speller, so that the pickle's memo is
// torch.save's.
class TorchaoSpeller {
 public:
  // The node that torch.save makes of a wrapper subclass: _rebuild_from_type_v2 with the __dict__ of the
  // class, in its order. The planes' bytes become storages of `table`. Requires torchao_class().
  pickle::Ref spell(const SchemeTensor& tensor, StorageTable& table);

 private:
  pickle::Ref name(std::string_view text);
  pickle::Ref strided();
  // Of a value in the encoding of attributes.h.
  pickle::Ref attribute(const nlohmann::ordered_json& value);
  pickle::Ref object(std::string_view type, const nlohmann::ordered_json& data);
  pickle::Ref member(std::string_view type, const std::string& name_of_member);
  std::unordered_map<std::string, pickle::Ref> names_, members_;
  pickle::Ref strided_;
};

// The graph of `object` with the tensors at some places replaced, everything else kept with its identity;
// storages renumbered by appearance, persistent ids as a torch zip has them, those that nothing refers to any
// more left out. Keys: TensorLeaf::place.
using Replacements = std::unordered_map<TensorPlace, const SchemeTensor*, TensorPlaceHash>;
struct EditedZip {
  pickle::Ref root;
  std::vector<std::shared_ptr<const Storage>> storages;
};
EditedZip replace_tensors(const TorchObject& object, const Replacements& replacements);

// The same with TinyQ's layers (tinyq.py at 006b7b9): in the dict of a weight "M.weight", in this order,
// "M.bias" where it has one, then the planes as "M.int8_weights", "M.scales" and, under W8A32,
// "M.zero_points": parameters before buffers, as Module.state_dict() lists them. Keys: the places of the
// weights, which stand in dicts.
EditedZip replace_by_tinyq(const TorchObject& object, const Replacements& layers);
// Names and tensors of one such layer, without its bias. `module` ends in '.' or is empty.
std::vector<std::pair<std::string, Tensor>> tinyq_parts(const SchemeTensor& layer, const std::string& module);

// A state dict from its tensors alone, for input that had no pickle: a dict in this order. Exactly one of the
// two is set.
struct SpelledTensor {
  std::string name;
  const Tensor* plain = nullptr;
  const SchemeTensor* quantized = nullptr;
};
EditedZip spell_state_dict(const std::vector<SpelledTensor>& tensors);

// Entries and __metadata__ as torchao's flatten_tensor_state_dict makes them ("MODULE._PARAM_qdata"; JSON as
// Python's json.dumps writes it). Throws std::invalid_argument for two tensors that would become one entry
// and for a quantized tensor whose name has no '.'.
struct SpelledSafetensors {
  std::vector<std::pair<std::string, Tensor>> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
};
SpelledSafetensors spell_safetensors(const std::vector<SpelledTensor>& tensors);

// Attributes of a tensor in torchao's JSON encoding and order, as the reader shows them for the spelt tensor.
nlohmann::ordered_json spelled_attributes(const SchemeTensor& tensor);

// json.dumps(value): ", " and ": " between, everything outside ASCII escaped.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace qcts
