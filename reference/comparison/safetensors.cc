// SPDX-License-Identifier: BSD-3-Clause
// Safetensors of one dialect: every entry, and every pair of __metadata__. The order of the entries is the
// container's matter: its library sorts them, and hands them out in no order of the header's.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "reference/comparison/content_parts.h"
#include "reference/comparison/json_values.h"
#include "reference/comparison/words.h"

namespace qcts {
namespace {

using Entries = std::vector<const SafetensorsEntry*>;

Entries entries_of(const Checkpoint& checkpoint) {
  Entries entries;
  for (const auto& file : checkpoint.safetensors)
    for (const SafetensorsEntry& entry : file->entries) entries.push_back(&entry);
  return entries;
}

void compare_entry(const std::string& path, const Tensor& a, const Tensor& b, const ElementPlace& place,
                   ContentFindings& out) {
  if (a.dtype != b.dtype)
    return out.different.add(
        {path, "dtype", std::string(dtype_name(a.dtype)), std::string(dtype_name(b.dtype))});
  if (a.shape != b.shape)
    return out.different.add({path, "shape", shape_words(a.shape), shape_words(b.shape)});
  compare_elements(path, a, b, place, out.different);
}

std::string entry_words(const Tensor& tensor) {
  return std::string(dtype_name(tensor.dtype)) + " " + shape_words(tensor.shape);
}

// Tensors that mean the same in both files, whichever words of the dialect say so.
std::set<std::string> alike_by_name(const Checkpoint& a, const Checkpoint& b) {
  std::map<std::string_view, const NamedTensor*> others;
  for (const NamedTensor& named : b.tensors) others.emplace(named.name, &named);
  std::set<std::string> alike;
  for (const NamedTensor& named : a.tensors) {
    const auto other = others.find(named.name);
    if (other == others.end() || named.type != other->second->type) continue;
    ContentFindings attributes;
    compare_json("", named.attributes, other->second->attributes, attributes);
    if (!attributes.different.empty()) continue;
    alike.insert(named.name);
    alike.insert(named.in_memory.begin(), named.in_memory.end());
  }
  return alike;
}

constexpr std::string_view kListedNames = "tensor_names";

// The names in tensor_names that the file stores; nullopt if the text is not a list of names.
std::optional<std::set<std::string>> stored_names(const std::string& text, const Checkpoint& checkpoint) {
  const auto list = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::set<std::string> names;
  for (const auto& name : list) {
    if (!name.is_string()) return std::nullopt;
    names.insert(name);
  }
  for (const NotStored& name : checkpoint.left_out) names.erase(name.name);
  return names;
}

// tensor_names is a set, and a name that is listed and not stored adds no tensor to it.
bool list_the_same(const std::string& a, const Checkpoint& of_a, const std::string& b,
                   const Checkpoint& of_b) {
  const auto x = stored_names(a, of_a), y = stored_names(b, of_b);
  return x && x == y;
}

// Does `key` describe a tensor that the file does not store?
bool describes_left_out(const std::string& key, const Checkpoint& checkpoint) {
  return std::ranges::find(checkpoint.left_out, key, &NotStored::name) != checkpoint.left_out.end();
}

void compare_metadata(const Checkpoint& a, const Checkpoint& b, ContentFindings& out) {
  const std::map<std::string, std::string> left = metadata_of(a), right = metadata_of(b);
  std::map<std::string_view, const std::string*> others;
  for (const auto& [key, value] : right) others.emplace(key, &value);
  const std::set<std::string> alike = alike_by_name(a, b);
  const DescribedTensors tensors(a);
  for (const auto& [key, value] : left) {
    const std::string path = "__metadata__." + key;
    const auto other = others.find(key);
    if (other == others.end()) {
      (describes_left_out(key, a) ? out.spelling : out.different).add({path, "", in_quotes(value), "absent"});
      continue;
    }
    const std::optional<std::string> described = tensors.name_of(key);
    const bool alike_here =
        described &&
        (alike.contains(*described) || (key == kListedNames && list_the_same(value, a, *other->second, b)));
    if (alike_here && value != *other->second) {
      auto [x, y] = in_quotes_both(value, *other->second);
      out.spelling.add({path, "", std::move(x), std::move(y)});
    } else {
      compare_json_texts(path, value, *other->second, out);
    }
    others.erase(other);
  }
  for (const auto& [key, value] : others)
    (describes_left_out(std::string(key), b) ? out.spelling : out.different)
        .add({"__metadata__." + std::string(key), "", "absent", in_quotes(*value)});
  const auto has = [](const Checkpoint& checkpoint) {
    return std::ranges::any_of(checkpoint.safetensors, [](const auto& file) { return file->has_metadata; });
  };
  if (has(a) != has(b) && left.empty() && right.empty())
    out.spelling.add({"__metadata__", "", has(a) ? "empty" : "absent", has(b) ? "empty" : "absent"});
}

}  // namespace

void compare_safetensors(const Content& a, const Content& b, ContentFindings& out) {
  const PlaceTable left_table(a), right_table(b);
  const ElementPlace place = [&](const Tensor& tensor, uint64_t index) {
    return left_table.element_place(tensor, index);
  };
  const Entries left = entries_of(a.checkpoint), right = entries_of(b.checkpoint);
  std::map<std::string_view, const SafetensorsEntry*> others;
  for (const SafetensorsEntry* entry : right) others.emplace(entry->name, entry);
  PageRelease left_pages(a.checkpoint), right_pages(b.checkpoint);
  for (const SafetensorsEntry* entry : left) {
    const std::string path = left_table.path_of(entry->tensor, entry->name);
    const auto other = others.find(entry->name);
    if (other == others.end()) {
      out.different.add({path, "", entry_words(entry->tensor), "absent"});
      continue;
    }
    compare_entry(path, entry->tensor, other->second->tensor, place, out);
    left_pages.was_read(entry->tensor);
    right_pages.was_read(other->second->tensor);
    others.erase(other);
  }
  for (const auto& [name, entry] : others)
    out.different.add(
        {right_table.path_of(entry->tensor, entry->name), "", "absent", entry_words(entry->tensor)});
  compare_metadata(a.checkpoint, b.checkpoint, out);
  const auto [x, y] =
      std::ranges::mismatch(left, right, {}, &SafetensorsEntry::name, &SafetensorsEntry::name);
  if (x != left.end() && y != right.end() && left.size() == right.size())
    out.spelling.add({"", "order of the entries", (*x)->name, (*y)->name});
}

}  // namespace qcts
