// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/files/container_size.h"

#include <algorithm>
#include <set>

#include "reference/dialects/dialects.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/pickle/numpy_arrays.h"

namespace qcts {
namespace {

// Opcode, length or number, and the memo; containers, calls and their marks.
constexpr uint64_t kValueBytes = 16;

class ValueBytes {
 public:
  uint64_t count(const pickle::Ref& node) {
    if (node == nullptr) return 0;
    if (is_tensor_node(node)) return array_growth(node);
    if (!node->is_single() && !seen_.insert(node.get()).second) return 0;
    uint64_t bytes = kValueBytes + node->text.size();
    for (const pickle::Ref& item : node->items) bytes += count(item);
    for (const auto& [key, value] : node->pairs)
      bytes += count(value) + (is_tensor_node(value) ? 0 : count(key));  // the name of a tensor is its own
    return bytes + count(node->state);
  }

 private:
  // Bytes from 0x80 on of an array in a pickle take two bytes of its text.
  static uint64_t array_growth(const pickle::Ref& node) {
    const pickle::Ref* arguments = pickle::numpy_arguments_of(node);
    if (arguments == nullptr) return 0;
    const pickle::Ref& encoded = (*arguments)->items[0]->state->items[4];
    if (!pickle::is_call(encoded, "_codecs", "encode")) return 0;
    return static_cast<uint64_t>(std::ranges::count_if(encoded->items[1]->items[0]->text, [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    }));
  }

  struct Nothing {};
  pickle::NodeMap<Nothing> seen_;
};

// Index of the quote that ends the string that begins at `at`.
size_t string_end(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at, text.size());
}

uint64_t metadata_of(const Checkpoint& checkpoint, const Safetensors& file) {
  if (!checkpoint.dialect.starts_with("torchao")) return metadata_span_bytes(file.header);
  std::set<std::string_view> described = {"tensor_names"};
  for (const NamedTensor& tensor : checkpoint.tensors) {
    described.insert(tensor.name);
    described.insert(tensor.in_memory.begin(), tensor.in_memory.end());
  }
  for (const NotStored& name : checkpoint.left_out) described.insert(name.name);
  uint64_t bytes = 0;
  for (const auto& [key, value] : file.metadata)
    if (!described.contains(key)) bytes += key.size() + value.size() + std::string_view(R"("":"",)").size();
  return bytes;
}

}  // namespace

uint64_t metadata_span_bytes(std::string_view header) {
  constexpr std::string_view kKey = "\"__metadata__\"";
  int depth = 0;
  std::optional<size_t> begin;
  for (size_t at = 0; at < header.size(); ++at) {
    if (header[at] == '"') {
      if (depth == 1 && !begin && header.substr(at).starts_with(kKey)) {
        begin = header.find('{', at + kKey.size());
        if (*begin == header.npos) return 0;
        at = *begin;
        ++depth;
        continue;
      }
      at = string_end(header, at);
    } else if (header[at] == '{' || header[at] == '[') {
      ++depth;
    } else if (header[at] == '}' || header[at] == ']') {
      if (--depth == 1 && begin) return at + 1 - *begin;
    }
  }
  return 0;
}

uint64_t metadata_bytes(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  ValueBytes values;
  for (const auto& zip : checkpoint.zips) bytes += values.count(zip->root);
  for (const auto& legacy : checkpoint.legacies) bytes += values.count(legacy->root);
  for (const auto& file : checkpoint.safetensors) bytes += metadata_of(checkpoint, *file);
  for (const auto& file : checkpoint.ggufs) bytes += file->metadata_bytes;
  return bytes;
}

uint64_t padding_bytes(const Checkpoint& checkpoint) {
  constexpr uint64_t kZipLocalBytes = 30;
  uint64_t bytes = 0;
  for (const auto& zip : checkpoint.zips)
    for (const ZipRecord& record : zip->records) {
      const uint64_t before = record.data_offset - record.header_offset;
      bytes += before - std::min(before, kZipLocalBytes + zip->prefix.size() + 1 + record.name.size());
    }
  for (const auto& file : checkpoint.ggufs) bytes += file->padding_bytes;
  for (const auto& file : checkpoint.safetensors) {
    const size_t last = file->header.find_last_not_of(" \t\r\n");
    bytes += last == std::string_view::npos ? 0 : file->header.size() - last - 1;
  }
  return bytes;
}

}  // namespace qcts
