// SPDX-License-Identifier: BSD-3-Clause
// GGUF files: every tensor with ggml's type, and every value of the metadata with its own. The orders, the
// alignment's padding and the version of the format are the container's matter, and so is the split into
// parts.
#include <algorithm>
#include <map>

#include "reference/comparison/content_parts.h"
#include "reference/comparison/words.h"

namespace qcts {
namespace {

using GgufEntries = std::map<std::string_view, const GgufEntry*>;
using GgufValues = std::map<std::string_view, const GgufValue*>;

std::string words_of(const GgufEntry& entry) {
  return std::string(entry.type->name) + " " + shape_words(entry.shape);
}

std::string typed_words(const GgufValue& value) {
  return std::string(gguf_value_type_name(value.type)) + " " + in_quotes(gguf_value_text(value));
}

bool is_of_split(std::string_view key) { return key.starts_with("split."); }

// The values of the first part stand for the model; other parts repeat some of them.
GgufValues values_of(const Checkpoint& checkpoint) {
  GgufValues values;
  for (const auto& file : checkpoint.ggufs)
    for (const GgufPair& pair : file->metadata) values.emplace(pair.key, &pair.value);
  return values;
}

GgufEntries entries_of_ggufs(const Checkpoint& checkpoint) {
  GgufEntries entries;
  for (const auto& file : checkpoint.ggufs)
    for (const GgufEntry& entry : file->entries) entries.emplace(entry.name, &entry);
  return entries;
}

bool same_value(const GgufValue& a, const GgufValue& b) {
  return a.type == b.type && a.bits == b.bits && a.text == b.text && a.item_type == b.item_type &&
         a.count == b.count && std::ranges::equal(a.items, b.items);
}

void compare_values(const GgufValues& left, GgufValues right, ContentFindings& out) {
  const auto list = [&](std::string_view key) -> ContentDifferences& {
    return is_of_split(key) ? out.spelling : out.different;
  };
  for (const auto& [key, value] : left) {
    const std::string path = "metadata." + std::string(key);
    const auto other = right.find(key);
    if (other == right.end()) {
      list(key).add({path, "", typed_words(*value), "absent"});
      continue;
    }
    if (!same_value(*value, *other->second))
      list(key).add({path, "", typed_words(*value), typed_words(*other->second)});
    right.erase(other);
  }
  for (const auto& [key, value] : right)
    list(key).add({"metadata." + std::string(key), "", "absent", typed_words(*value)});
}

template <class Member>
void note_spelling(const Content& a, const Content& b, const char* what, Member member,
                   ContentFindings& out) {
  const uint64_t x = (*a.checkpoint.ggufs[0]).*member, y = (*b.checkpoint.ggufs[0]).*member;
  if (x != y) out.spelling.add({"", what, std::to_string(x), std::to_string(y)});
}

// Compares the names in file order.
void compare_orders(const Content& a, const Content& b, ContentFindings& out) {
  const auto& left = a.checkpoint.tensors;
  const auto& right = b.checkpoint.tensors;
  const auto [x, y] = std::ranges::mismatch(left, right, {}, &NamedTensor::name, &NamedTensor::name);
  if (x != left.end() && y != right.end() && left.size() == right.size())
    out.spelling.add({"", "order of the tensors", x->name, y->name});
}

}  // namespace

void compare_ggufs(const Content& a, const Content& b, ContentFindings& out) {
  const PlaceTable table(a);
  const ElementPlace place = [&](const Tensor& tensor, uint64_t index) {
    return table.element_place(tensor, index);
  };
  const GgufEntries left = entries_of_ggufs(a.checkpoint);
  GgufEntries right = entries_of_ggufs(b.checkpoint);
  PageRelease left_pages(a.checkpoint), right_pages(b.checkpoint);
  for (const auto& [name, entry] : left) {
    const auto other = right.find(name);
    if (other == right.end()) {
      out.different.add({entry->name, "", words_of(*entry), "absent"});
      continue;
    }
    const GgufEntry& x = *entry;
    const GgufEntry& y = *other->second;
    if (x.type != y.type)
      out.different.add({x.name, "type", std::string(x.type->name), std::string(y.type->name)});
    else if (x.shape != y.shape)
      out.different.add({x.name, "shape", shape_words(x.shape), shape_words(y.shape)});
    else
      compare_elements(x.name, x.tensor, y.tensor, place, out.different);
    left_pages.was_read(x.tensor);
    right_pages.was_read(y.tensor);
    right.erase(other);
  }
  for (const auto& [name, entry] : right) out.different.add({entry->name, "", "absent", words_of(*entry)});
  compare_values(values_of(a.checkpoint), values_of(b.checkpoint), out);
  note_spelling(a, b, "version", &Gguf::version, out);
  note_spelling(a, b, "alignment", &Gguf::alignment, out);
  compare_orders(a, b, out);
}

}  // namespace qcts
