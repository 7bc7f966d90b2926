// torchao's safetensors dialect (prototype/safetensors/safetensors_support.py): inner tensors as entries of
// their own, one JSON string a tensor in __metadata__, and "tensor_names", the state dict's keys in order.
//   up to 0.14:  "NAME:qdata", plain tensors "NAME:_data"; the metadata does not list the inner names
//   since 0.15:  "MODULE._PARAM_qdata" for NAME = MODULE.PARAM, plain tensors under NAME;
//   "_tensor_data_names" lists the inner names
// An entry belongs to the name whose metadata lists it, exactly: upstream's match by prefix takes
// "l._w_b_qdata" for "l.w" too.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "reference/dialects/attributes.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/schema.h"
#include "reference/dialects/shape_checks.h"

namespace qcts {
namespace {

constexpr std::string_view kTensorNames = "tensor_names";

[[noreturn]] void bad_entry(const std::string& detail) { refuse(RefusalClass::SubclassSchema, detail); }

class Reader {
 public:
  Reader(const SafetensorsView& view, SafetensorsKeys keys, const OpenOptions& options,
         std::vector<std::string>& warnings)
      : keys_(keys), options_(options), warnings_(warnings) {
    for (const SafetensorsEntry* entry : view.entries) {
      entries_.emplace(entry->name, entry);
      order_.push_back(entry);
    }
    for (const auto& [key, value] : view.metadata) metadata_.emplace(key, &value);
  }

  std::vector<NamedTensor> read() {
    const auto listed = metadata_.find(std::string(kTensorNames));
    if (listed == metadata_.end()) bad_entry("__metadata__ has no tensor_names");
    const Json names = parse_metadata_json(*listed->second, std::string(kTensorNames), options_.limits);
    if (!names.is_array()) bad_entry("tensor_names is no list");
    std::unordered_set<std::string> seen;
    std::vector<NamedTensor> tensors;
    for (const Json& item : names) {
      if (!item.is_string()) bad_entry("tensor_names holds " + item.dump());
      const std::string name = item;
      if (!seen.insert(name).second) bad_entry("tensor_names lists " + name + " twice");
      tensors.push_back(read_one(name));
    }
    add_leftovers(tensors);
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
    const auto found = entries_.find(key);
    if (found == entries_.end()) bad_entry(name + ": no entry " + key);
    if (!claimed_.insert(key).second)
      bad_entry(name + ": the entry " + key + " belongs to another tensor already");
    return *found->second;
  }

  NamedTensor read_one(const std::string& name) {
    const auto described = metadata_.find(name);
    if (described == metadata_.end())
      bad_entry(name + ": in tensor_names, but __metadata__ does not describe it");
    const Json info = parse_metadata_json(*described->second, name, options_.limits);
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
      return tensor;
    }
    const ClassSchema* schema = find_class(tensor.type);
    if (!schema || !schema->in_safetensors)
      throw Refused({RefusalClass::SubclassSchema,
                     name + ": class " + tensor.type + " is not one that torchao writes to safetensors",
                     std::nullopt, true});
    read_parts(*schema, info, tensor);
    return tensor;
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
      if (entries_.contains(prefix + std::string(part))) parts.emplace_back(part);
    return parts;
  }

  void add_leftovers(std::vector<NamedTensor>& tensors) {
    for (const SafetensorsEntry* entry : order_) {
      if (claimed_.contains(entry->name)) continue;
      for (const std::string& prefix : prefixes_)
        if (entry->name.starts_with(prefix) && find_part(entry->name.substr(prefix.size())))
          bad_entry(entry->name + ": an inner tensor that its tensor's metadata does not list");
      warnings_.push_back(entry->name + ": not in tensor_names; taken as a plain tensor");
      std::vector<NamedTensor> plain = read_plain_safetensors({{entry}, {}});
      tensors.push_back(std::move(plain.front()));
    }
  }

  static bool find_part(const std::string& name) {
    static const std::set<std::string, std::less<>> known = {"qdata",
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
    return known.contains(name);
  }

  SafetensorsKeys keys_;
  const OpenOptions& options_;
  std::vector<std::string>& warnings_;
  std::unordered_map<std::string, const SafetensorsEntry*> entries_;
  std::vector<const SafetensorsEntry*> order_;
  std::unordered_map<std::string, const std::string*> metadata_;
  std::unordered_set<std::string> claimed_;
  std::vector<std::string> prefixes_;
};

}  // namespace

Json parse_metadata_json(const std::string& text, const std::string& where, const Limits& limits) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (static_cast<uint64_t>(depth) > limits.json_depth)
      refuse(RefusalClass::LimitExceeded, where + ": JSON nested too deep");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
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
    bad_entry("two spellings of torchao: " + colon + " (torchao_safetensors up to 0.14) and " + underscore +
              " (torchao_safetensors since 0.15)");
  return colon.empty() ? SafetensorsKeys::underscore : SafetensorsKeys::colon;
}

std::vector<NamedTensor> read_torchao_safetensors(const SafetensorsView& view, SafetensorsKeys keys,
                                                  const OpenOptions& options,
                                                  std::vector<std::string>& warnings) {
  return Reader(view, keys, options, warnings).read();
}

}  // namespace qcts
