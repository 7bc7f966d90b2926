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
#include "reference/dialects/torchao/entry_index.h"
#include "reference/dialects/torchao/listed_names.h"

namespace qcts {
namespace {

constexpr std::string_view kTensorNames = "tensor_names";

[[noreturn]] void bad_entry(const std::string& detail) { refuse(RefusalClass::SubclassSchema, detail); }

class Reader : DescribedEntries {
 public:
  Reader(SafetensorsView& view, SafetensorsKeys keys, const OpenOptions& options,
         const nlohmann::ordered_json& config, std::vector<std::string>& warnings)
      : DescribedEntries(view),
        keys_(keys),
        options_(options),
        config_(config),
        warnings_(warnings),
        view_(view) {}

  std::vector<NamedTensor> read() {
    const auto listed = metadata_.find(kTensorNames);
    if (listed == metadata_.end()) bad_entry("__metadata__ has no tensor_names");
    const Json names =
        parse_metadata_json(*listed->second, std::string(kTensorNames), options_.limits, budget_);
    if (!names.is_array()) bad_entry("tensor_names is not a list");
    std::set<std::string_view> seen;
    budget_.take_bytes((kPlaceBytes + sizeof(NamedTensor)) * names.size());
    for (const Json& item : names) {
      if (!item.is_string()) bad_entry("tensor_names holds " + item.dump());
      const auto& name = item.get_ref<const std::string&>();
      if (!seen.insert(name).second) bad_entry("tensor_names lists " + name + " twice");
    }
    ListedNames matched(seen, entries_, order_, keys_, budget_);
    matched.match(config_, warnings_);
    matched_ = &matched;
    tensors_.reserve(names.size());
    for (const Json& item : names) read_one(item.get_ref<const std::string&>());
    add_leftovers();
    return std::move(tensors_);
  }

 private:
  // The entry of a part, which no other tensor may have.
  const SafetensorsEntry& claim(const StoredEntry& part, const std::string& name) {
    if (entries_.is_claimed(*part.entry))
      bad_entry(name + ": the entry " + part.entry->name + " already belongs to another tensor");
    entries_.claim(*part.entry);
    return *part.entry;
  }

  std::vector<StoredEntry> find(const std::string& key, const std::string& name) const {
    std::vector<StoredEntry> found = matched_->find(key);
    if (found.size() > 1 &&
        std::ranges::any_of(found, [](const StoredEntry& part) { return !part.conversion; }))
      bad_entry(name + ": both " + found[0].entry->name + " and " + found[1].entry->name + " are " + key +
                " in memory");
    if (!found.empty() && found[0].conversion)
      if (const std::string missing = matched_->what_is_missing(found, key); !missing.empty())
        view_.left_out.push_back({name, missing});
    return found;
  }

  void read_one(const std::string& name) {
    const auto described = metadata_.find(name);
    if (described == metadata_.end())
      bad_entry(name + ": in tensor_names, but __metadata__ does not describe it");
    const uint64_t before = budget_.bytes();
    const Json info = parse_metadata_json(*described->second, name, options_.limits, budget_);
    const uint64_t parsed = budget_.bytes() - before;
    if (!info.is_object() || !info.contains("_type") || !info["_type"].is_string())
      bad_entry(name + ": its metadata has no _type");
    const std::string type = info["_type"];
    const bool is_plain = type == "Tensor" || type == "torch.Tensor";
    if (!is_plain && part_prefix(name, keys_).empty())
      bad_entry(name + ": a quantized tensor's name needs a module and a parameter");
    if (!matched_->is_stored(name)) {
      view_.left_out.push_back({name, ""});
      budget_.give_back_bytes(parsed);
      return;
    }
    if (is_plain) {
      read_plain(name);
      budget_.give_back_bytes(parsed);
      return;
    }
    const ClassSchema* schema = find_class(type);
    if (!schema || !schema->in_safetensors)
      throw Refused({RefusalClass::SubclassSchema,
                     name + ": class " + type + " is not one that torchao writes to safetensors",
                     std::nullopt, true});
    read_subclass(*schema, info, name);
    // The attributes keep at most half of it: a growing list has reserved as much again.
    budget_.give_back_bytes(parsed - parsed / 2);
  }

  void read_plain(const std::string& name) {
    const std::string key = keys_ == SafetensorsKeys::colon ? name + ":_data" : name;
    const std::vector<StoredEntry> found = find(key, name);
    if (found.empty()) bad_entry(name + ": no entry " + key);
    for (const StoredEntry& part : found) {
      if (add_name_of_shared(part, name)) continue;
      const SafetensorsEntry& entry = claim(part, name);
      NamedTensor tensor;
      tensor.name = matched_->name_on_disk(entry.name, "");
      tensor.type = "Tensor";
      tensor.shape = entry.tensor.shape;
      tensor.dtype = entry.tensor.dtype;
      tensor.payload.push_back({"data", entry.tensor});
      add(std::move(tensor), part, name);
    }
  }

  // One tensor on disk may become several in memory.
  bool add_name_of_shared(const StoredEntry& part, const std::string& name) {
    if (part.conversion == nullptr) return false;
    const auto known = shared_.find(part.entry);
    if (known == shared_.end()) return false;
    tensors_[known->second].in_memory.push_back(name);
    return true;
  }

  void add(NamedTensor tensor, const StoredEntry& first, const std::string& name) {
    if (first.conversion != nullptr) shared_.emplace(first.entry, tensors_.size());
    if (first.conversion != nullptr || tensor.name != name) tensor.in_memory.push_back(name);
    budget_.take_bytes(heap_bytes_of(tensor));
    tensors_.push_back(std::move(tensor));
  }

  void read_subclass(const ClassSchema& schema, const Json& info, const std::string& name) {
    if (!info.contains("_data") || !info["_data"].is_object())
      bad_entry(name + ": its metadata has no _data");
    for (const auto& [key, value] : info["_data"].items()) check_attribute_json(value, name + ": " + key);
    const std::string prefix = part_prefix(name, keys_);
    // The parts by the tensor's name on disk, of which a conversion may have several.
    std::map<std::string, std::vector<std::pair<std::string, StoredEntry>>> stored;
    const std::vector<std::string> parts = part_names(schema, info, name, prefix);
    for (const std::string& part : parts) {
      const std::vector<StoredEntry> found = find(prefix + part, name);
      if (found.empty()) bad_entry(name + ": no entry " + prefix + part);
      for (const StoredEntry& entry : found)
        stored[matched_->name_on_disk(entry.entry->name, part)].emplace_back(part, entry);
    }
    for (const auto& [on_disk, held] : stored) {
      if (held.size() != parts.size())
        bad_entry(name + ": its parts have several names, " + stored.begin()->first + " and " +
                  stored.rbegin()->first);
      if (add_name_of_shared(held[0].second, name)) continue;
      NamedTensor tensor;
      tensor.name = on_disk;
      tensor.type = info["_type"];
      tensor.attributes = info["_data"];
      for (const auto& [part, entry] : held) {
        const SafetensorsEntry& claimed = claim(entry, name);
        tensor.payload.push_back({part, claimed.tensor});
        prefixes_.push_back(claimed.name.substr(0, claimed.name.size() - part.size()));
      }
      arrange(schema, tensor, options_.lenient, warnings_);
      const Outer outer = schema.outer(tensor);
      if (!outer.note.empty()) warnings_.push_back(tensor.name + ": " + outer.note);
      tensor.shape = outer.shape;
      tensor.dtype = outer.dtype;
      recognize_scheme(tensor);
      add(std::move(tensor), held[0].second, name);
    }
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
      if (!matched_->find(prefix + std::string(part)).empty()) parts.emplace_back(part);
    return parts;
  }

  void add_leftovers() {
    std::ranges::sort(prefixes_);
    std::vector<std::string_view> names;
    for (const SafetensorsEntry* entry : order_) {
      if (entries_.is_claimed(*entry)) continue;
      if (is_part_of_a_tensor(entry->name))
        bad_entry(entry->name + ": an inner tensor that its tensor's metadata does not list");
      budget_.take_bytes(4 * sizeof(NamedTensor) + entry->name.size());
      names.push_back(entry->name);
      tensors_.push_back(read_plain_entry(*entry, budget_));
    }
    constexpr size_t kMaxNamed = 8;
    for (size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i)
      warnings_.push_back(std::string(names[i]) + ": not in tensor_names; read as a plain tensor");
    if (names.size() > kMaxNamed)
      warnings_.push_back("and " + std::to_string(names.size() - kMaxNamed) +
                          " more that are not in tensor_names; read as plain tensors");
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
  const nlohmann::ordered_json& config_;
  std::vector<std::string>& warnings_;
  SafetensorsView& view_;
  const ListedNames* matched_ = nullptr;
  std::vector<NamedTensor> tensors_;
  std::map<const SafetensorsEntry*, size_t> shared_;  // places in tensors_ of what conversions take
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
                                                  const nlohmann::ordered_json& config,
                                                  std::vector<std::string>& warnings) {
  return Reader(view, keys, options, config, warnings).read();
}

}  // namespace qcts
