// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/safetensors/header.h"
#include "reference/formats/safetensors/safetensors.h"

namespace qcts {
namespace {

SafetensorsInfo info_of(const std::string& name, const Tensor& tensor) {
  if (name == "__metadata__")
    refuse(RefusalClass::StJson, "no tensor can be named __metadata__: safetensors keeps its metadata there");
  return {name, safetensors_dtype(tensor.dtype), safetensors_shape(tensor), 0, 0};
}

// Limits the bytes written: views can claim any size, and each is written in full. Tied weights and expanded
// views of real models stay far below the limit.
uint64_t data_bytes(const std::vector<const Tensor*>& data) {
  constexpr uint64_t kFreeBytes = uint64_t{1} << 30, kTimes = 16;
  std::unordered_set<const Storage*> seen;
  uint64_t held = 0, total = 0;
  for (const Tensor* tensor : data) {
    const uint64_t bytes = bytes_of(tensor->dtype, tensor->shape);
    if (tensor->storage == nullptr)
      held += bytes;
    else if (seen.insert(tensor->storage.get()).second)
      held += tensor->storage->bytes.size();
    if (__builtin_add_overflow(total, bytes, &total)) total = UINT64_MAX;
  }
  if (total > kFreeBytes && (total - kFreeBytes) / kTimes > held)
    refuse(RefusalClass::LimitExceeded, "the tensors are views of " + std::to_string(held) +
                                            " bytes, and would take " + std::to_string(total));
  return total;
}

void assemble(const std::string& header, const std::vector<const Tensor*>& data, ByteSink& out,
              const std::function<Tensor(const Tensor*)>& make = nullptr) {
  data_bytes(data);
  std::vector<std::byte> length;
  append_le<uint64_t>(length, header.size());
  out.write(length);
  out.write(as_bytes(header));
  std::vector<std::byte> scratch;
  for (const Tensor* tensor : data) {
    const Tensor made = make ? make(tensor) : *tensor;
    out.write(row_major_view(made, scratch));
  }
}

bool same(const SafetensorsHeader& a, const SafetensorsHeader& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(),
                    [](const SafetensorsInfo& x, const SafetensorsInfo& y) {
                      return x.name == y.name && x.dtype == y.dtype && std::ranges::equal(x.shape, y.shape) &&
                             x.begin == y.begin && x.end == y.end;
                    });
}

}  // namespace

void rebuild_safetensors(const Safetensors& file, ByteSink& out) {
  std::vector<size_t> order(file.entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return std::pair(file.entries[a].begin, file.entries[a].end) <
           std::pair(file.entries[b].begin, file.entries[b].end);
  });
  SafetensorsHeader header{file.has_metadata, file.metadata, {}};
  for (const SafetensorsEntry& entry : file.entries)
    header.tensors.push_back(info_of(entry.name, entry.tensor));
  std::vector<const Tensor*> data;
  uint64_t at = 0;
  for (size_t index : order) {
    const Tensor& tensor = file.entries[index].tensor;
    header.tensors[index].begin = at;
    at += bytes_of(tensor.dtype, tensor.shape);
    header.tensors[index].end = at;
    data.push_back(&tensor);
  }
  std::string text = format_safetensors_header(header);
  if (text != file.header &&
      same(header, parse_safetensors_header(file.header, {.limits = {}, .lenient = true}))) {
    text = file.header;
  }
  assemble(text, data, out);
}

std::vector<std::byte> rebuild_safetensors(const Safetensors& file) {
  VectorSink out(file.file->bytes().size());
  rebuild_safetensors(file, out);
  return std::move(out).take();
}

void write_safetensors(const std::vector<std::pair<std::string, Tensor>>& tensors,
                       std::vector<std::pair<std::string, std::string>> metadata, ByteSink& out,
                       SafetensorsOrder wanted, const std::function<Tensor(size_t)>& make) {
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& item : tensors) order.push_back(&item);
  const auto before = [](const auto* a, const auto* b) {
    const int left = safetensors_rank(a->second.dtype), right = safetensors_rank(b->second.dtype);
    return left != right ? left > right : a->first < b->first;
  };
  if (wanted == SafetensorsOrder::by_dtype) std::ranges::stable_sort(order, before);
  std::ranges::sort(metadata);
  SafetensorsHeader header{!metadata.empty(), std::move(metadata), {}};
  std::vector<const Tensor*> data;
  std::map<const Tensor*, size_t> indices;
  uint64_t at = 0;
  for (const auto* item : order) {
    indices[&item->second] = static_cast<size_t>(item - tensors.data());
    SafetensorsInfo info = info_of(item->first, item->second);
    info.begin = at;
    at += bytes_of(item->second.dtype, item->second.shape);
    info.end = at;
    header.tensors.push_back(std::move(info));
    data.push_back(&item->second);
  }
  const std::string text = format_safetensors_header(header);
  // Names and metadata come from the caller: refuse what the reader would refuse.
  parse_safetensors_header(text, {});
  if (text.size() > Limits().safetensors_header_bytes) {
    refuse(RefusalClass::LimitExceeded, "the header would have " + std::to_string(text.size()) + " bytes");
  }
  if (!make) return assemble(text, data, out);
  assemble(text, data, out, [&](const Tensor* tensor) { return make(indices.at(tensor)); });
}

std::vector<std::byte> write_safetensors(const std::vector<std::pair<std::string, Tensor>>& tensors,
                                         std::vector<std::pair<std::string, std::string>> metadata,
                                         SafetensorsOrder order) {
  VectorSink out;
  write_safetensors(tensors, std::move(metadata), out, order);
  return std::move(out).take();
}

}  // namespace qcts
