// SPDX-License-Identifier: BSD-3-Clause
// qcts_differential: serves the readers and writers over a pipe, for test_differential.py. Each line of stdin
// is a request of tab-separated words; each line of stdout is the answer, one JSON object.
//   read FILE         everything that was read: records, graph, tensors with the sha256 of their bytes
//   rebuild FILE OUT  the file rebuilt from the parsed graph
//   write FILE OUT    a new file from only the graph or the tensors, as the format's own writer lays it out
//   rewrite FILE OUT  like write, with every plain tensor of a torch zip encoded by tensor_node
//   edit FILE OUT     the bytes of the first non-empty storage, or tensor, replaced by 1 0 1 0 ...
// Legacy files support read, rebuild and edit only.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "reference/formats/io/sha256.h"
#include "reference/formats/safetensors/safetensors.h"
#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/zip.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;
using pickle::Kind;
using pickle::Ref;
using Bytes = std::vector<std::byte>;

Json tensor_json(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  return {{"dtype", dtype_name(tensor.dtype)},
          {"shape", tensor.shape},
          {"stride", tensor.stride},
          {"offset", tensor.offset_elems},
          {"storage", tensor.storage->key},
          {"storage_bytes", tensor.storage->bytes.size()},
          {"sha256", sha256_hex(row_major_view(tensor, scratch))}};
}

std::string bits_of(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return std::to_string(bits);
}

Json graph_json(const TorchObject& object, const Ref& node);

Json pairs_json(const TorchObject& object, const Ref& node) {
  Json pairs = Json::array();
  for (const auto& [key, value] : node->pairs)
    pairs.push_back(Json::array({graph_json(object, key), graph_json(object, value)}));
  return pairs;
}

Json items_json(const TorchObject& object, const pickle::Refs& items) {
  Json list = Json::array();
  for (const Ref& item : items) list.push_back(graph_json(object, item));
  return list;
}

// The key says which kind of value it is, so that values of different kinds never compare equal.
Json graph_json(const TorchObject& object, const Ref& node) {
  if (const auto tensor = tensor_of(object, node)) {
    Json json = {{"tensor", tensor_json(*tensor)}};
    json["tensor"]["parameter"] = pickle::is_call(node, "torch._utils", "_rebuild_parameter");
    return json;
  }
  if (pickle::is_call(node, "collections", "OrderedDict")) return {{"ordered", pairs_json(object, node)}};
  if (pickle::is_call(node, "torch", "Size"))
    return {{"size", items_json(object, node->items[1]->items[0]->items)}};
  switch (node->kind) {
    case Kind::none:
      return {{"none", true}};
    case Kind::boolean:
      return {{"bool", node->boolean}};
    case Kind::integer:
      return {{"int", node->integer}};
    case Kind::real:
      return {{"float", bits_of(node->real)}};
    case Kind::string:
      return {{"str", node->text}};
    case Kind::tuple:
      return {{"tuple", items_json(object, node->items)}};
    case Kind::list:
      return {{"list", items_json(object, node->items)}};
    case Kind::dict:
      return {{"dict", pairs_json(object, node)}};
    case Kind::global:
      return {{"global", node->text}};
    case Kind::enclosing:
      return {{"enclosing", node->integer}};
    default:
      return {{"other", static_cast<int>(node->kind)}};
  }
}

Json read_zip(const TorchZip& zip) {
  Json json = {{"prefix", zip.prefix}, {"records", Json::array()}, {"graph", graph_json(zip, zip.root)}};
  for (const ZipRecord& record : zip.records)
    json["records"].push_back({{"name", record.name},
                               {"offset", record.header_offset},
                               {"crc", record.recorded_crc},
                               {"sha256", sha256_hex(record.bytes)}});
  return json;
}

Json read_safe(const Safetensors& file) {
  Json json = {{"metadata", file.metadata}, {"tensors", Json::object()}};
  for (const SafetensorsEntry& entry : file.entries) json["tensors"][entry.name] = tensor_json(entry.tensor);
  return json;
}

Bytes ones_and_zeros(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; i += 2) bytes[i] = std::byte{1};
  return bytes;
}

// Rewrites every plain tensor of the graph with tensor_node; shared containers stay shared.
class Rewriter {
 public:
  explicit Rewriter(const TorchZip& zip) : zip_(zip) {}

  Ref of(const Ref& node) {
    const auto known = done_.find(node.get());
    if (known != done_.end()) return known->second;
    const bool plain = pickle::is_call(node, "torch._utils", "_rebuild_tensor_v2") ||
                       pickle::is_call(node, "torch._utils", "_rebuild_tensor_v3");
    Ref fresh;
    if (plain) {
      const Tensor tensor = *tensor_of(zip_, node);
      fresh = tensor_node(tensor, tensor.storage->key, node->items[1]->items[4]->boolean);
    } else {
      fresh = pickle::copy_of(*node);
      for (Ref& item : fresh->items) item = of(item);
      for (auto& [key, value] : fresh->pairs) {
        key = of(key);
        value = of(value);
      }
      if (fresh->state != nullptr) fresh->state = of(fresh->state);
    }
    return done_[node.get()] = fresh;
  }

 private:
  const TorchZip& zip_;
  std::unordered_map<const pickle::Node*, Ref> done_;
};

Json answer_zip(const std::string& verb, std::shared_ptr<const MappedFile> file, const std::string& out) {
  TorchZip zip = read_torch_zip(std::move(file));
  if (verb == "read") return read_zip(zip);
  RebuildNotes notes;
  Bytes bytes, fresh;
  if (verb == "rebuild") bytes = rebuild_torch_zip(zip, &notes);
  if (verb == "write") bytes = write_torch_zip(zip.prefix, zip.root, zip.storages);
  if (verb == "rewrite") bytes = write_torch_zip(zip.prefix, Rewriter(zip).of(zip.root), zip.storages);
  if (verb == "edit") {
    for (ZipRecord& record : zip.records) {
      if (!record.name.starts_with("data/") || record.bytes.empty() || !fresh.empty()) continue;
      fresh = ones_and_zeros(record.bytes.size());
      record.bytes = fresh;
    }
    bytes = rebuild_torch_zip(zip, &notes);
  }
  write_file_atomically(out, bytes);
  return {{"kept", notes.kept_pickle || notes.kept_serialization_id || notes.kept_file}};
}

Json answer_legacy(const std::string& verb, std::shared_ptr<const MappedFile> file, const std::string& out) {
  TorchLegacy legacy = read_torch_legacy(std::move(file));
  if (verb == "read") return {{"graph", graph_json(legacy, legacy.root)}};
  Bytes fresh;
  if (verb == "edit") {
    const auto held = std::ranges::find_if(legacy.storages, [](const auto& s) { return !s->bytes.empty(); });
    for (LegacyRecord& record : legacy.records) {
      if (held == legacy.storages.end() || record.key != (*held)->key.view()) continue;
      fresh = ones_and_zeros(record.bytes.size());
      record.bytes = fresh;
    }
  }
  RebuildNotes notes;
  write_file_atomically(out, rebuild_torch_legacy(legacy, &notes));
  return {{"kept", notes.kept_pickle || notes.kept_file}};
}

Json answer_safe(const std::string& verb, std::shared_ptr<const MappedFile> file, const std::string& out) {
  Safetensors safe = read_safetensors(std::move(file));
  if (verb == "read") return read_safe(safe);
  Bytes bytes;
  if (verb == "edit") {
    for (SafetensorsEntry& entry : safe.entries) {
      if (entry.tensor.storage->bytes.empty()) continue;
      entry.tensor = make_tensor(entry.tensor.dtype, entry.tensor.shape,
                                 ones_and_zeros(entry.tensor.storage->bytes.size()), entry.name);
      break;
    }
  }
  if (verb == "write" || verb == "rewrite") {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const SafetensorsEntry& entry : safe.entries) tensors.emplace_back(entry.name, entry.tensor);
    bytes = write_safetensors(tensors, safe.metadata);
  } else {
    bytes = rebuild_safetensors(safe);
  }
  write_file_atomically(out, bytes);
  return {{"kept", false}};
}

Json answer(const std::vector<std::string>& words) {
  const auto file = MappedFile::open(words.at(1));
  const std::string out = words.size() > 2 ? words[2] : "";
  try {
    if (words[1].ends_with(".safetensors")) return answer_safe(words[0], file, out);
    return begins_with_pickle(file->bytes()) ? answer_legacy(words[0], file, out)
                                             : answer_zip(words[0], file, out);
  } catch (const Refused& refused) {
    return {{"refused", refused.what()}};
  }
}

}  // namespace
}  // namespace qcts

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> words;
    std::istringstream stream(line);
    for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
    std::cout << qcts::answer(words).dump(-1, ' ', true) << std::endl;
  }
}
