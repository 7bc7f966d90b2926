// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/mutants/file_faults.h"

#include <algorithm>
#include <map>
#include <set>

#include "reference/dialects/own_metadata.h"
#include "reference/formats/pickle/graph.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/value_faults.h"

namespace qcts::mutants {
namespace {

using enum Fault;
using pickle::Kind;
using pickle::Ref;

// Floats of `dtype` with NaN made canonical, or -0 made +0.
std::vector<std::byte> polished(DType dtype, std::span<const std::byte> from) {
  std::vector<std::byte> bytes(from.begin(), from.end());
  const bool wide = dtype == DType::float32;
  if (!wide && dtype != DType::bfloat16 && dtype != DType::float16) return bytes;
  const uint32_t exponent = wide ? 0x7F800000u : dtype == DType::float16 ? 0x7C00u : 0x7F80u;
  const uint32_t magnitude = wide ? 0x7FFFFFFFu : 0x7FFFu;
  const size_t size = wide ? 4 : 2;
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    uint32_t bits = 0;
    std::copy_n(bytes.data() + at, size, reinterpret_cast<std::byte*>(&bits));
    if (planted(f_nan_made_canonical) && (bits & magnitude) > exponent)
      bits = exponent | (exponent ^ exponent >> 1) >> (wide ? 8 : dtype == DType::float16 ? 5 : 8);
    if (planted(f_minus_zero_lost) && bits == magnitude + 1) bits = 0;
    std::copy_n(reinterpret_cast<const std::byte*>(&bits), size, bytes.data() + at);
  }
  return bytes;
}

// tile_packed_4d of [n, k], both padded, in ROCm's order: 16 rows and 64 lanes per tile.
std::vector<std::byte> rocm_tiles(std::span<const std::byte> from, int64_t n_count, int64_t k_count) {
  std::vector<std::byte> to(from.size());
  for (int64_t n = 0; n < n_count; ++n)
    for (int64_t k = 0; k < k_count; ++k) {
      const int64_t j = k % 128 / 32, tiles = k_count / 128;
      const int64_t word = ((n / 8 * tiles + k / 128) * 32 + n % 8 * 4 + k % 8 / 2) * 4 + j;
      const int64_t nibble = k % 2 * 4 + k % 32 / 8;
      const int64_t other_word = ((n / 16 * tiles + k / 128) * 64 + k % 16 / 4 * 16 + n % 16) * 4 + j;
      const int64_t other_nibble = k % 4 % 2 * 4 + 2 * (k % 32 / 16) + k % 4 / 2;
      const auto source = static_cast<size_t>(4 * word + nibble / 2);
      const auto target = static_cast<size_t>(4 * other_word + other_nibble / 2);
      if (target >= to.size()) continue;
      const auto code = from[source] >> (nibble % 2 * 4) & std::byte{15};
      to[target] |= code << (other_nibble % 2 * 4);
    }
  return to;
}

void sort_entries(Safetensors& file) {
  std::ranges::sort(file.entries, {}, &SafetensorsEntry::name);
  uint64_t at = 0;
  for (SafetensorsEntry& entry : file.entries) {
    const uint64_t size = entry.end - entry.begin;
    entry.begin = at;
    entry.end = at += size;
  }
}

bool is_longer(std::string_view name, std::string_view prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix);
}

// Every dict of the graph, including an OrderedDict's pairs.
template <typename Visit>
void for_each_mapping(const Ref& root, Visit&& visit) {
  pickle::for_each_node(root, [&](const Ref& node) {
    if (!node->pairs.empty()) visit(*node);
  });
}

void strike_mapping(pickle::Node& mapping) {
  for (auto& [key, value] : mapping.pairs) {
    if (planted(f_tuple_to_list) && value->kind == Kind::tuple) value = pickle::list(value->items);
    if (planted(f_act_pre_scale_lost) && key->kind == Kind::string && key->text == "act_pre_scale")
      value = pickle::none();
    if (planted(f_prefix_collision) && key->kind == Kind::string && value->kind == Kind::call)
      for (const auto& [other, taken] : mapping.pairs)
        if (other->kind == Kind::string && taken->kind == Kind::call && is_longer(key->text, other->text)) {
          value = taken;
          break;
        }
  }
}

// Turns the graph into a tree: shared objects are copied. Strings, globals and ids stay shared.
Ref without_identity(const Ref& node) {
  if (!node) return node;
  const bool container = node->kind == Kind::tuple || node->kind == Kind::list || node->kind == Kind::dict ||
                         node->kind == Kind::call || node->kind == Kind::new_object;
  if (!container) return node;
  auto fresh = pickle::copy_of(*node);
  for (Ref& item : fresh->items) item = without_identity(item);
  for (auto& [key, value] : fresh->pairs) value = without_identity(value);
  fresh->state = without_identity(node->state);
  return fresh;
}

void lose_gradients(const Ref& node) {
  if (pickle::is_call(node, "torch._utils", "_rebuild_tensor_v2") && node->items[1]->items.size() > 4)
    node->items[1]->items[4] = pickle::boolean(false);
  if (pickle::is_call(node, "torch._utils", "_rebuild_parameter") && node->items[1]->items.size() > 1)
    node->items[1]->items[1] = pickle::boolean(false);
}

void strike_graph(TorchObject& object) {
  strike_object_values(object);
  if (planted(f_identity_lost)) object.root = without_identity(object.root);
  for_each_mapping(object.root, strike_mapping);
  pickle::for_each_node(object.root, [](const Ref& node) {
    if (planted(f_requires_grad_flips)) lose_gradients(node);
    if (planted(f_location_cpu) && node->kind == Kind::persistent &&
        node->items[0]->items.at(3)->text != "cpu")
      node->items[0]->items[3] = pickle::string("cpu");
  });
}

}  // namespace

std::span<const std::byte> FileFaults::keep(std::vector<std::byte> bytes) {
  return kept_.emplace_back(std::move(bytes));
}

void FileFaults::replace_entry(SafetensorsEntry& entry, std::vector<std::byte> bytes) {
  auto storage = std::make_shared<Storage>(*entry.tensor.storage);
  storage->bytes = keep(std::move(bytes));
  entry.tensor.storage = storage;
  entry.tensor.offset_elems = 0;
}

void FileFaults::strike(Safetensors& file, const Checkpoint& checkpoint) {
  if (planted(f_metadata_dropped)) file.metadata.clear(), file.has_metadata = false;
  const std::map<std::string, std::string> own = own_metadata(checkpoint);
  if (planted(f_own_metadata_lost))
    std::erase_if(file.metadata, [&](const auto& pair) { return own.contains(pair.first); });
  for (auto& [key, value] : file.metadata)
    if (planted(f_own_metadata_changed) && own.contains(key)) value += "x";
  if (planted(f_metadata_sorted_by_value) && file.metadata.size() > 1)
    std::swap(file.metadata[0].second, file.metadata[1].second);
  const bool values = planted(f_nan_made_canonical) || planted(f_minus_zero_lost);
  std::vector<std::byte> scratch;
  for (SafetensorsEntry& entry : file.entries) {
    if (values) replace_entry(entry, polished(entry.tensor.dtype, row_major_view(entry.tensor, scratch)));
    if (!planted(f_prefix_collision)) continue;
    const auto other = std::ranges::find_if(file.entries, [&](const SafetensorsEntry& e) {
      return is_longer(entry.name, e.name) && e.end - e.begin == entry.end - entry.begin;
    });
    if (other != file.entries.end()) replace_entry(entry, row_major_bytes(other->tensor));
  }
  if (planted(f_entries_sorted)) sort_entries(file);
}

void FileFaults::replace_storage(TorchZip& zip, const std::string& key, std::vector<std::byte> bytes) {
  for (ZipRecord& record : zip.records)
    if (record.name == "data/" + key) record.bytes = keep(std::move(bytes));
}

void FileFaults::strike_values(TorchZip& zip) {
  for (size_t i = 0; i < zip.storages.size(); ++i)
    if (zip.storage_dtypes[i])
      replace_storage(zip, zip.storages[i]->key, polished(*zip.storage_dtypes[i], zip.storages[i]->bytes));
}

void FileFaults::strike_packing(TorchZip& zip, const Checkpoint& checkpoint) {
  for (const NamedTensor& named : checkpoint.tensors) {
    const bool cpu = named.type == "Int4OpaqueTensor";
    const std::optional<SchemeTensor> tensor = scheme_tensor(named, cpu ? "cpu_avx512" : "");
    if (!tensor || named.payload.empty()) continue;
    const WeightShape shape{tensor->dtype, tensor->n, tensor->k};
    Planes planes = tensor->planes;
    if (planted(f_rocm_tiles) && tensor->layout == "tile_packed_4d")
      planes[0].bytes =
          rocm_tiles(planes[0].bytes, (tensor->n + 7) / 8 * 8, (tensor->k + 1023) / 1024 * 1024);
    const std::optional<Layout> avx2 = tensor->scheme->find_layout("cpu_avx2");
    if (planted(f_avx2_bytes) && cpu && avx2 && !tensor->scheme->refusal(shape, *avx2))
      planes = tensor->scheme->pack(tensor->scheme->unpack(planes, shape, tensor->layout), shape, *avx2);
    if (planted(f_requantized)) {
      const Planes plain = tensor->scheme->unpack(planes, shape, tensor->layout);
      const std::vector<std::byte> dense = tensor->scheme->dequantize(plain, shape);
      const Matrix weight{shape.dtype, shape.n, shape.k, dense};
      planes = tensor->scheme->pack(tensor->scheme->quantize(weight, tensor->layout), shape, tensor->layout);
    }
    for (const InnerTensor& inner : named.payload)
      for (Plane& plane : planes)
        if (inner.name.ends_with(plane.name) && plane.bytes.size() == inner.tensor.storage->bytes.size())
          replace_storage(zip, inner.tensor.storage->key, plane.bytes);
  }
}

void FileFaults::break_ties(TorchZip& zip) {
  std::set<std::string> seen;
  std::vector<ZipRecord> copies;
  pickle::for_each_node(zip.root, [&](const Ref& node) {
    if (node->kind != Kind::persistent) return;
    const std::string key = node->items.at(0)->items.at(2)->text;
    if (seen.insert(key).second) return;
    const std::string fresh = std::to_string(zip.storages.size() + copies.size());
    const auto record = std::ranges::find(zip.records, "data/" + key, &ZipRecord::name);
    if (record == zip.records.end()) return;
    copies.push_back(*record);
    copies.back().name = "data/" + fresh;
    auto id = pickle::copy_of(*node->items[0]);
    id->items[2] = pickle::string(fresh);
    node->items[0] = id;
  });
  add_records(zip, copies);
}

void FileFaults::add_records(TorchZip& zip, const std::vector<ZipRecord>& records) {
  const auto last =
      std::ranges::find_if(zip.records.rbegin(), zip.records.rend(),
                           [](const ZipRecord& record) { return record.name.starts_with("data/"); });
  zip.records.insert(last.base(), records.begin(), records.end());
}

// The second and each later tensor over one storage gets its own storage, with only its own elements.
void FileFaults::untie(TorchZip& zip) {
  std::set<std::string> seen;
  std::vector<ZipRecord> copies;
  pickle::for_each_node(zip.root, [&](const Ref& node) {
    if (!pickle::is_call(node, "torch._utils", "_rebuild_tensor_v2")) return;
    const std::optional<Tensor> tensor = tensor_of(zip, node);
    if (!tensor || seen.insert(tensor->storage->key).second) return;
    const auto record =
        std::ranges::find(zip.records, "data/" + tensor->storage->key.str(), &ZipRecord::name);
    if (record == zip.records.end()) return;
    const std::string fresh = std::to_string(zip.storages.size() + copies.size());
    copies.push_back(*record);
    copies.back().name = "data/" + fresh;
    copies.back().bytes = keep(row_major_bytes(*tensor));
    const Ref owner = pickle::copy_of(*node->items[1]->items[0]), id = pickle::copy_of(*owner->items[0]);
    id->items[2] = pickle::string(fresh);
    id->items[4] = pickle::integer(tensor->numel());
    owner->items[0] = id;
    pickle::Refs& arguments = node->items[1]->items;
    arguments[0] = owner;
    arguments[1] = pickle::integer(0);
    pickle::Refs strides;
    for (int64_t stride : contiguous_stride(tensor->shape)) strides.push_back(pickle::integer(stride));
    arguments[3] = pickle::tuple(strides);
  });
  add_records(zip, copies);
}

void FileFaults::lose_strides(TorchZip& zip) {
  pickle::for_each_node(zip.root, [&](const Ref& node) {
    if (!pickle::is_call(node, "torch._utils", "_rebuild_tensor_v2")) return;
    const std::optional<Tensor> tensor = tensor_of(zip, node);
    if (!tensor || tensor->is_contiguous() || tensor->offset_elems != 0) return;
    std::vector<std::byte> bytes = row_major_bytes(*tensor);
    if (bytes.size() != tensor->storage->bytes.size()) return;
    pickle::Refs strides;
    for (int64_t stride : contiguous_stride(tensor->shape)) strides.push_back(pickle::integer(stride));
    node->items[1]->items[3] = pickle::tuple(strides);
    replace_storage(zip, tensor->storage->key, std::move(bytes));
  });
}

void FileFaults::strike(TorchLegacy& legacy) { strike_graph(legacy); }

void FileFaults::strike(TorchZip& zip, const Checkpoint& checkpoint) {
  if (planted(f_nan_made_canonical) || planted(f_minus_zero_lost)) strike_values(zip);
  if (planted(f_avx2_bytes) || planted(f_rocm_tiles) || planted(f_requantized))
    strike_packing(zip, checkpoint);
  if (planted(f_ties_broken)) break_ties(zip);
  if (planted(f_storages_untied)) untie(zip);
  if (planted(f_stride_lost)) lose_strides(zip);
  strike_graph(zip);
  if (planted(f_alignment_lost)) zip.storage_alignment_bytes = 8;
  // The writer lays out changed parts again and copies a file without changes.
  if (planted(f_alignment_lost) || planted(f_crc_left_out))
    for (ZipRecord& record : zip.records)
      if (record.name.starts_with("data/")) record.bytes = keep({record.bytes.begin(), record.bytes.end()});
  for (ZipRecord& record : zip.records)
    if (planted(f_crc_left_out)) record.crc_written = false;
  if (planted(f_record_dropped))
    std::erase_if(zip.records, [](const ZipRecord& r) { return r.name == ".data/serialization_id"; });
}

}  // namespace qcts::mutants
