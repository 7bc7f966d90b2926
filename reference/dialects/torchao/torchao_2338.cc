// SPDX-License-Identifier: BSD-3-Clause
// Reads the safetensors format proposed in pytorch/ao#2338 (its script runs on torchao 0.13.0): a
// LinearActivationQuantizedTensor around a plain weight, whose activations a named function quantizes.
//   dictionary form  entry "NAME:original_weight"; metadata "NAME:tensor_type", "NAME:input_quant_func",
//                    "NAME:quant_kwargs" (JSON), and "tensor_names", a JSON list
//   single tensor    the same keys without "NAME:", and no "tensor_names"; the script's reader calls it
//                    "tensor"
// A key belongs to the name that it consists of, exactly, so "a", "a:b" and "a:original_weight" may be in one
// file: the script's reader finds each weight under NAME + ":original_weight" as well.
// Functions are "module.qualname". quant_kwargs holds numbers, strings, booleans, null for None, lists, and
// other values in the encoding of attributes.h ("torch.dtype", enums, "tuple", "function").
//
// The proposal does not define plain tensors; here such an entry is NAME itself, listed in tensor_names,
// without metadata. All other metadata keys are the caller's additional_metadata (own_metadata.h).
#include <algorithm>
#include <map>
#include <set>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/torchao/entry_index.h"
#include "reference/formats/pickle/globals.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

constexpr std::string_view kNames = "tensor_names", kType = "tensor_type", kFunction = "input_quant_func",
                           kKwargs = "quant_kwargs", kWeight = "original_weight";
constexpr std::string_view kClass = "LinearActivationQuantizedTensor";

// One function (torchao 0.13.0, dtypes/fbgemm_fp8_tensor.py): its __qualname__, and the module's name for it.
constexpr std::string_view kMethod = "torchao.dtypes.fbgemm_fp8_tensor.FbgemmFp8Tensor.from_float",
                           kAlias = "torchao.dtypes.fbgemm_fp8_tensor.to_fbgemm_fp8";

[[noreturn]] void bad(const std::string& detail) { refuse(RefusalClass::SubclassSchema, detail); }

// Returns the canonical name of an allowed function; a security refusal for any other.
std::string allowed_function(const std::string& path, const std::string& where) {
  if (const std::string name = canonical_function(path); name != path) return name;
  const size_t dot = path.rfind('.');
  for (const pickle::ModuleNames& group : pickle::torchao_functions()) {
    if (dot == std::string::npos || group.module != path.substr(0, dot)) continue;
    const std::string names = " " + std::string(group.names) + " ";
    if (names.find(" " + path.substr(dot + 1) + " ") != std::string::npos) return path;
  }
  throw Refused({RefusalClass::SubclassSchema,
                 where + ": the function '" + path + "' is not on the allow-list (security)", std::nullopt,
                 true});
}

void check_kwargs(Json& value, const std::string& where) {
  if (value.is_array()) {
    for (Json& item : value) check_kwargs(item, where);
    return;
  }
  if (!value.is_object()) return;
  const std::string type = value.contains("_type") && value["_type"].is_string() ? value["_type"] : Json("");
  const bool holds_two = value.size() == 2 && value.contains("_data");
  if (type == "tuple" && holds_two && value["_data"].is_array()) return check_kwargs(value["_data"], where);
  if (type == "function" && holds_two && value["_data"].is_string()) {
    value["_data"] = allowed_function(value["_data"], where);
    return;
  }
  if (!type.empty() || value.contains("_data")) return check_attribute_json(value, where);
  for (auto& [key, item] : value.items()) check_kwargs(item, where + "." + key);
}

class Reader2338 : DescribedEntries {
 public:
  Reader2338(SafetensorsView& view, const OpenOptions& options, std::vector<std::string>& warnings)
      : DescribedEntries(view), options_(options), warnings_(warnings) {}

  std::vector<NamedTensor> read() {
    std::vector<NamedTensor> tensors;
    if (!metadata_.contains(kNames)) {
      tensors.push_back(read_subclass("tensor", ""));
    } else {
      for (const std::string& name : listed_names())
        tensors.push_back(is_subclass(name) ? read_subclass(name, name + ":") : read_plain(name));
    }
    for (const SafetensorsEntry* entry : order_) {
      if (entries_.is_claimed(*entry)) continue;
      refuse_part(entry->name);
      budget_.take_bytes(kTensorBytes + entry->name.size());
      warnings_.push_back(entry->name + ": not in tensor_names; read as a plain tensor");
      tensors.push_back(read_plain_entry(*entry, budget_));
    }
    return tensors;
  }

 private:
  static constexpr uint64_t kTensorBytes =
      4 * sizeof(NamedTensor);  // in a list that grows by doubling, plus a warning

  bool is_subclass(const std::string& name) const {
    return metadata_.contains(name + ":" + std::string(kType));
  }

  // Refuses an entry that no tensor uses and that is named like a part of one.
  void refuse_part(const std::string& name) const {
    if (listed_.contains(name))
      bad(name + ": has both its own entry and " + name + ":" + std::string(kWeight));
    for (size_t colon = name.find(':'); colon != name.npos; colon = name.find(':', colon + 1)) {
      budget_.take_steps(1 + colon / 64);  // a hostile name is nothing but colons
      const std::string_view front = std::string_view(name).substr(0, colon);
      if (!listed_.contains(front)) continue;
      const std::string whole(front);
      if (is_subclass(whole)) bad(name + ": not a part of " + std::string(kClass));
      bad(name + " next to a plain tensor " + whole);
    }
    const size_t colon = name.rfind(':');
    if (colon != name.npos && name.substr(colon + 1) == kWeight)
      bad(name + ": the weight of a tensor that tensor_names does not list");
  }

  std::vector<std::string> listed_names() {
    const Json list =
        parse_metadata_json(*metadata_.find(kNames)->second, std::string(kNames), options_.limits, budget_);
    if (!list.is_array()) bad("tensor_names is not a list");
    std::vector<std::string> names;
    for (const Json& item : list) {
      if (!item.is_string()) bad("tensor_names holds " + item.dump());
      const std::string name = item;
      budget_.take_bytes(2 * kPlaceBytes + 2 * name.size());
      if (!listed_.insert(name).second) bad("tensor_names lists " + name + " twice");
      names.push_back(name);
    }
    return names;
  }

  const SafetensorsEntry* claim(const std::string& key, const std::string& name) {
    const SafetensorsEntry* found = entries_.find(key);
    if (found == nullptr) return nullptr;
    if (entries_.is_claimed(*found)) bad(name + ": the entry " + key + " already belongs to another tensor");
    entries_.claim(*found);
    return found;
  }

  NamedTensor read_plain(const std::string& name) {
    const SafetensorsEntry* entry = claim(name, name);
    if (!entry) bad(name + ": in tensor_names, but has neither a tensor_type nor an entry");
    budget_.take_bytes(kTensorBytes);
    return read_plain_entry(*entry, budget_);
  }

  NamedTensor read_subclass(const std::string& name, const std::string& prefix) {
    const auto text = [&](std::string_view key) -> const std::string* {
      const auto found = metadata_.find(prefix + std::string(key));
      return found == metadata_.end() ? nullptr : found->second;
    };
    NamedTensor tensor;
    tensor.name = name;
    const std::string* type = text(kType);
    if (!type) bad(name + ": no tensor_type");
    tensor.type = *type;
    if (tensor.type != kClass) bad(name + ": tensor_type " + tensor.type + " is not " + std::string(kClass));
    const SafetensorsEntry* weight = claim(prefix + std::string(kWeight), name);
    if (!weight) bad(name + ": no entry " + prefix + std::string(kWeight));
    tensor.payload.push_back({std::string(kWeight), weight->tensor});
    tensor.shape = weight->tensor.shape;
    tensor.dtype = weight->tensor.dtype;
    require_payload(tensor, kWeight, kFloats);
    const std::string* function = text(kFunction);
    if (!function) bad(name + ": its metadata has no input_quant_func");
    tensor.attributes["input_quant_func"] = {{"_type", "function"},
                                             {"_data", allowed_function(*function, name)}};
    Json kwargs = Json::object();
    if (const std::string* json = text(kKwargs))
      kwargs = parse_metadata_json(*json, name + ": quant_kwargs", options_.limits, budget_);
    if (!kwargs.is_object()) bad(name + ": quant_kwargs is not an object");
    check_kwargs(kwargs, name + ": quant_kwargs");
    tensor.attributes["quant_kwargs"] = std::move(kwargs);
    budget_.take_bytes(kTensorBytes + heap_bytes_of(tensor));
    recognize_scheme(tensor);
    return tensor;
  }

  const OpenOptions& options_;
  std::vector<std::string>& warnings_;
  std::set<std::string, std::less<>> listed_;  // in tensor_names
};

}  // namespace

std::string canonical_function(std::string path) { return path == kMethod ? std::string(kAlias) : path; }

std::string qualified_function(std::string name) { return name == kAlias ? std::string(kMethod) : name; }

bool has_2338_keys(const SafetensorsView& view) {
  bool listed = false, single = false, described = false, today = false;
  std::set<std::string_view> keys;
  for (const auto& [key, value] : view.metadata) {
    keys.insert(key);
    listed |= key == kNames;
    single |= key == kType;
    described |= key.ends_with(":" + std::string(kType));
  }
  if (listed && described)  // "NAME:tensor_type" here, "NAME" with "_type" in torchao's own dialect
    for (const auto& [key, value] : view.metadata)
      today |=
          value.find("\"_type\"") != std::string::npos && keys.contains(key) && key.find(':') == key.npos;
  if (listed && described && today) bad("two dialects in one file: torchao_safetensors and torchao_2338");
  return listed ? described : single;
}

std::vector<NamedTensor> read_torchao_2338(SafetensorsView& view, const OpenOptions& options,
                                           std::vector<std::string>& warnings) {
  return Reader2338(view, options, warnings).read();
}

}  // namespace qcts
