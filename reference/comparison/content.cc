// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/content.h"

#include <algorithm>
#include <set>

#include "reference/comparison/content_parts.h"
#include "reference/comparison/words.h"

namespace qcts {
namespace {

bool has_safetensors(const Checkpoint& checkpoint) { return !checkpoint.safetensors.empty(); }

// True if both spell entry names in the same way: they share a name, or one file has none.
bool share_an_entry(const Checkpoint& a, const Checkpoint& b) {
  std::set<std::string_view> names;
  size_t count = 0;
  for (const auto& file : a.safetensors)
    for (const SafetensorsEntry& entry : file->entries) names.insert(entry.name);
  for (const auto& file : b.safetensors) {
    count += file->entries.size();
    for (const SafetensorsEntry& entry : file->entries)
      if (names.contains(entry.name)) return true;
  }
  return names.empty() || count == 0;
}

void compare_scripts(const TorchScript& a, const TorchScript& b, const ElementPlace& place,
                     ContentFindings& out) {
  compare_graphs({&a.program}, {&b.program}, "", place, out);
  compare_graphs({&a.constants}, {&b.constants}, "CONSTANTS", place, out);
  if (a.version != b.version)
    out.spelling.add({"", "operator set", std::to_string(a.version), std::to_string(b.version)});
  if (std::ranges::equal(a.file->bytes(), b.file->bytes())) return;
  const auto code = [](const TorchScript& script) {
    return std::to_string(script.classes.size()) + " classes, not read as a program";
  };
  out.not_comparable.add({"code", "", code(a), code(b)});
}

}  // namespace

PlaceTable::PlaceTable(const Content& content) : cpu_layout_(content.cpu_layout) {
  for (const NamedTensor& named : content.checkpoint.tensors)
    for (const InnerTensor& inner : named.payload)
      parts_[inner.tensor.storage.get()].push_back({&named, &inner});
}

const PlaceTable::Part* PlaceTable::find(const Tensor& tensor) const {
  const auto parts = parts_.find(tensor.storage.get());
  if (parts == parts_.end()) return nullptr;
  for (const Part& part : parts->second) {
    const Tensor& other = part.inner->tensor;
    if (other.offset_elems == tensor.offset_elems && other.shape == tensor.shape &&
        other.stride == tensor.stride)
      return &part;
  }
  return nullptr;
}

std::string PlaceTable::element_place(const Tensor& tensor, uint64_t index) const {
  const std::string plain = "element " + std::to_string(index);
  const Part* part = find(tensor);
  if (part == nullptr) return plain;
  const NamedTensor& named = *part->named;
  const Scheme* scheme = named.scheme.empty() ? nullptr : find_scheme(named.scheme);
  if (scheme == nullptr || named.shape.size() != 2) return plain;
  const std::optional<Layout> layout = named.layout ? named.layout : scheme->find_layout(cpu_layout_);
  if (!layout) return plain;
  const WeightShape shape{named.dtype, named.shape[0], named.shape[1]};
  if (scheme->refusal(shape, *layout)) return plain;
  const std::string& inner = part->inner->name;
  const std::string plane =
      inner == "tensor_impl.packed_weight" ? "qdata" : inner.substr(inner.rfind('.') + 1);
  const std::string place = scheme->place(shape, *layout, plane, index * dtype_bits(tensor.dtype) / 8);
  return place.empty() ? plain : place;
}

std::string PlaceTable::path_of(const Tensor& tensor, const std::string& name) const {
  const Part* part = find(tensor);
  if (part == nullptr) return name;
  return part->inner->name == "data" ? part->named->name : part->named->name + "." + part->inner->name;
}

TorchObjects objects_of(const Checkpoint& checkpoint) {
  TorchObjects objects;
  for (const auto& zip : checkpoint.zips) objects.push_back(zip.get());
  for (const auto& legacy : checkpoint.legacies) objects.push_back(legacy.get());
  return objects;
}

ContentFindings compare_content(const Content& a, const Content& b) {
  ContentFindings out;
  const Checkpoint &x = a.checkpoint, &y = b.checkpoint;
  const PlaceTable table(a);
  const ElementPlace place = [&](const Tensor& tensor, uint64_t index) {
    return table.element_place(tensor, index);
  };
  const TorchObjects left = objects_of(x), right = objects_of(y);
  if (x.script && y.script) {
    compare_scripts(*x.script, *y.script, place, out);
  } else if (!left.empty() && !right.empty()) {
    compare_graphs(left, right, "", place, out);
  } else if (has_safetensors(x) && has_safetensors(y) && x.dialect == y.dialect && share_an_entry(x, y)) {
    compare_safetensors(a, b, out);
  } else if (!x.ggufs.empty() && !y.ggufs.empty()) {
    compare_ggufs(a, b, out);
  } else {
    compare_across(a, b, out);
  }
  compare_beside(a, b, out);
  return out;
}

ContentFindings strictly(ContentFindings findings) {
  findings.different.add_all(findings.not_comparable);
  return findings;
}

}  // namespace qcts
