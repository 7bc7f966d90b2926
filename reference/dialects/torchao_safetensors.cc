// SPDX-License-Identifier: BSD-3-Clause
// Reads torchao's safetensors dialect (prototype/safetensors/safetensors_support.py): inner tensors are
// separate entries, __metadata__ has one JSON string per tensor, and "tensor_names" lists the state dict's
// keys in order.
//   up to 0.14  "NAME:qdata", plain tensors "NAME:_data"; the metadata does not list the inner names
//   since 0.15  "MODULE._PARAM_qdata" for NAME = MODULE.PARAM, plain tensors under NAME;
//               "_tensor_data_names" lists the inner names
// An entry belongs to the name whose metadata lists it, exactly: upstream's match by prefix takes
// "l._w_b_qdata" for "l.w" too.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/entry_index.h"

namespace qcts {
namespace {

constexpr std::string_view kTensorNames = "tensor_names";

[[noreturn]] void bad_entry(const std::string& detail) { refuse(RefusalClass::SubclassSchema, detail); }

class Reader : DescribedEntries {
 public:
  Reader(SafetensorsView& view, SafetensorsKeys keys, const OpenOptions& options,
         std::vector<std::string>& warnings)
      : DescribedEntries(view),
        keys_(keys),
        options_(options),
        warnings_(warnings),
        left_out_(view.left_out) {}

  std::vector<NamedTensor> read() {
    const auto listed = metadata_.find(kTensorNames);
    if (listed == metadata_.end()) bad_entry("__metadata__ has no tensor_names");
    const Json names =
        parse_metadata_json(*listed->second, std::string(kTensorNames), options_.limits, budget_);
    if (!names.is_array()) bad_entry("tensor_names is not a list");
    std::set<std::string_view> seen;
    budget_.take_bytes((kPlaceBytes + sizeof(NamedTensor)) * names.size());
    std::vector<NamedTensor> tensors;
    tensors.reserve(names.size());
    for (const Json& item : names) {
      if (!item.is_string()) bad_entry("tensor_names holds " + item.dump());
      const auto& name = item.get_ref<const std::string&>();
      if (!seen.insert(name).second) bad_entry("tensor_names lists " + name + " twice");
      if (is_left_out(name))
        left_out_.push_back(name);
      else
        tensors.push_back(read_one(name));
    }
    add_leftovers(tensors);
    note_left_out(tensors);
    return tensors;
  }

 private:
  std::string prefix_of(const std::string& name) const {
    if (keys_ == SafetensorsKeys::colon) return name + ":";
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos)
      bad_entry(name + ": a quantized tensor's name needs a module and a parameter");
    return name.substr(0, dot) + "._" + name.substr(dot + 1) + "_";
  }

  const SafetensorsEntry& claim(const std::string& key, const std::string& name) {
    const SafetensorsEntry* found = entries_.find(key);
    if (found == nullptr) bad_entry(name + ": no entry " + key);
    if (entries_.is_claimed(*found))
      bad_entry(name + ": the entry " + key + " already belongs to another tensor");
    entries_.claim(*found);
    return *found;
  }

  NamedTensor read_one(const std::string& name) {
    const auto described = metadata_.find(name);
    if (described == metadata_.end())
      bad_entry(name + ": in tensor_names, but __metadata__ does not describe it");
    const uint64_t before = budget_.bytes();
    const Json info = parse_metadata_json(*described->second, name, options_.limits, budget_);
    const uint64_t parsed = budget_.bytes() - before;
    if (!info.is_object() || !info.contains("_type") || !info["_type"].is_string())
      bad_entry(name + ": its metadata has no _type");
    NamedTensor tensor;
    tensor.name = name;
    tensor.type = info["_type"];
    if (tensor.type == "Tensor" || tensor.type == "torch.Tensor") {
      const SafetensorsEntry& entry = claim(keys_ == SafetensorsKeys::colon ? name + ":_data" : name, name);
      tensor.type = "Tensor";
      tensor.shape = entry.tensor.shape;
      tensor.dtype = entry.tensor.dtype;
      tensor.payload.push_back({"data", entry.tensor});
      budget_.take_bytes(heap_bytes_of(tensor));
      budget_.give_back_bytes(parsed);
      return tensor;
    }
    const ClassSchema* schema = find_class(tensor.type);
    if (!schema || !schema->in_safetensors)
      throw Refused({RefusalClass::SubclassSchema,
                     name + ": class " + tensor.type + " is not one that torchao writes to safetensors",
                     std::nullopt, true});
    read_parts(*schema, info, tensor);
    // The attributes keep at most half of it: a growing list has reserved as much again.
    budget_.take_bytes(heap_bytes_of(tensor));
    budget_.give_back_bytes(parsed - parsed / 2);
    return tensor;
  }

  // transformers stores a tied weight once and lists both of its names. Nothing of it may be there, and a
  // tensor that is there has to have its metadata.
  bool is_left_out(const std::string& name) {
    const auto described = metadata_.find(name);
    if (described == metadata_.end() || entries_.find(name) != nullptr) return false;
    const bool colon = keys_ == SafetensorsKeys::colon;
    if (!colon && name.find('.') == std::string::npos) return false;
    if (!entries_.with_prefix(prefix_of(name)).empty()) return false;
    if (twins_.empty())
      for (const auto& [key, text] : metadata_)
        if (entries_.find(key) != nullptr || !entries_.with_prefix(key_prefix(key)).empty())
          twins_.insert(*text);
    return twins_.contains(*described->second);
  }

  std::string key_prefix(std::string_view key) const {
    return keys_ == SafetensorsKeys::underscore && key.find('.') == key.npos ? std::string(key) + "._"
                                                                             : prefix_of(std::string(key));
  }

  void note_left_out(const std::vector<NamedTensor>& tensors) {
    for (const std::string& name : left_out_) {
      const auto embeds = [](const NamedTensor& tensor) {
        return tensor.name.find("embed") != std::string::npos;
      };
      const auto twin = std::ranges::find_if(tensors, embeds);
      warnings_.push_back(name + ": listed and not stored, as transformers leaves out a weight that is tied" +
                          (twin == tensors.end() ? "" : " (to " + twin->name + ")"));
    }
  }

  void read_parts(const ClassSchema& schema, const Json& info, NamedTensor& tensor) {
    if (!info.contains("_data") || !info["_data"].is_object())
      bad_entry(tensor.name + ": its metadata has no _data");
    for (const auto& [key, value] : info["_data"].items())
      check_attribute_json(value, tensor.name + ": " + key);
    tensor.attributes = info["_data"];
    const std::string prefix = prefix_of(tensor.name);
    for (const std::string& part : part_names(schema, info, tensor.name, prefix))
      tensor.payload.push_back({part, claim(prefix + part, tensor.name).tensor});
    prefixes_.push_back(prefix);
    arrange(schema, tensor, options_.lenient, warnings_);
    const Outer outer = schema.outer(tensor);
    if (!outer.note.empty()) warnings_.push_back(tensor.name + ": " + outer.note);
    tensor.shape = outer.shape;
    tensor.dtype = outer.dtype;
    recognize_scheme(tensor);
  }

  std::vector<std::string> part_names(const ClassSchema& schema, const Json& info, const std::string& name,
                                      const std::string& prefix) const {
    std::vector<std::string> parts;
    if (info.contains("_tensor_data_names")) {
      for (const Json& part : info["_tensor_data_names"]) {
        if (!part.is_string()) bad_entry(name + ": _tensor_data_names holds " + part.dump());
        parts.push_back(part);
      }
      return parts;
    }
    for (std::string_view part : schema.tensors) parts.emplace_back(part);
    for (std::string_view part : schema.optional_tensors)
      if (entries_.find(prefix + std::string(part)) != nullptr) parts.emplace_back(part);
    return parts;
  }

  void add_leftovers(std::vector<NamedTensor>& tensors) {
    std::ranges::sort(prefixes_);
    for (const SafetensorsEntry* entry : order_) {
      if (entries_.is_claimed(*entry)) continue;
      if (is_part_of_a_tensor(entry->name))
        bad_entry(entry->name + ": an inner tensor that its tensor's metadata does not list");
      budget_.take_bytes(4 * sizeof(NamedTensor) + entry->name.size());
      warnings_.push_back(entry->name + ": not in tensor_names; taken as a plain tensor");
      tensors.push_back(read_plain_entry(*entry, budget_));
    }
  }

  // Is `name` a tensor's prefix plus an inner tensor's name?
  bool is_part_of_a_tensor(std::string_view name) const {
    constexpr std::array<std::string_view, 11> kParts = {"qdata",
                                                         "scale",
                                                         "zero_point",
                                                         "scale_and_zero",
                                                         "act_quant_scale",
                                                         "act_quant_zero_point",
                                                         "act_pre_scale",
                                                         "group_scale",
                                                         "row_scale",
                                                         "per_tensor_scale",
                                                         "act_per_tensor_scale"};
    return std::ranges::any_of(kParts, [&](std::string_view part) {
      return name.ends_with(part) &&
             std::ranges::binary_search(prefixes_, name.substr(0, name.size() - part.size()));
    });
  }

  SafetensorsKeys keys_;
  const OpenOptions& options_;
  std::vector<std::string>& warnings_;
  std::vector<std::string>& left_out_;
  std::set<std::string_view> twins_;  // metadata of the tensors that are there
  std::vector<std::string> prefixes_;
};

}  // namespace

Json parse_metadata_json(const std::string& text, const std::string& where, const Limits& limits,
                         ReadBudget& budget) {
  // Memory of a value in a list that grows by doubling, and of a key there and in its object's set of keys.
  constexpr uint64_t kValueBytes = 80, kKeyBytes = 240;
  constexpr size_t kMaxKeys = 1024;  // objects search their keys linearly
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (static_cast<uint64_t>(depth) > limits.json_depth)
      refuse(RefusalClass::LimitExceeded, where + ": JSON nested too deeply");
    const bool is_key = event == Json::parse_event_t::key;
    const bool is_text = is_key || (event == Json::parse_event_t::value && parsed.is_string());
    const uint64_t length = is_text ? parsed.get_ref<const std::string&>().size() : 0;
    budget.take_bytes((is_key ? kKeyBytes + text_block_bytes(length) : kValueBytes) +
                      text_block_bytes(length));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (is_key && keys.back().size() >= kMaxKeys)
      refuse(RefusalClass::LimitExceeded,
             where + ": an object of more than " + std::to_string(kMaxKeys) + " keys");
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      bad_entry(where + ": the key " + parsed.dump() + " twice");
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception&) {
    bad_entry(where + ": not JSON");
  }
}

SafetensorsKeys detect_safetensors_keys(const SafetensorsView& view) {
  const bool described =
      std::ranges::any_of(view.metadata, [](const auto& pair) { return pair.first == kTensorNames; });
  if (!described) return SafetensorsKeys::plain;
  std::string colon, underscore;
  for (const SafetensorsEntry* entry : view.entries) {
    for (std::string_view part : {"qdata", "scale", "_data"}) {
      if (entry->name.ends_with(":" + std::string(part))) colon = entry->name;
      if (part != "_data" && entry->name.ends_with("_" + std::string(part)) &&
          entry->name.find("._") != std::string::npos)
        underscore = entry->name;
    }
  }
  if (!colon.empty() && !underscore.empty())
    bad_entry("two key formats of torchao: " + colon + " (torchao_safetensors up to 0.14) and " + underscore +
              " (torchao_safetensors since 0.15)");
  return colon.empty() ? SafetensorsKeys::underscore : SafetensorsKeys::colon;
}

std::vector<NamedTensor> read_torchao_safetensors(SafetensorsView& view, SafetensorsKeys keys,
                                                  const OpenOptions& options,
                                                  std::vector<std::string>& warnings) {
  return Reader(view, keys, options, warnings).read();
}

}  // namespace qcts
