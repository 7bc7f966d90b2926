// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/safetensors/header.h"
#include "reference/formats/safetensors/safetensors.h"

namespace qcts {
namespace {

// Returns a tensor with the entry's dtype and shape; their size must match its offsets.
Tensor tensor_of_info(const SafetensorsInfo& info) {
  const auto dtype = dtype_of_safetensors(info.dtype);
  if (!dtype)
    refuse(RefusalClass::Dtype, "tensor " + info.name + ": unknown dtype " + info.dtype.str().substr(0, 40));
  Tensor tensor;
  tensor.dtype = *dtype;
  tensor.shape.assign(info.shape.begin(), info.shape.end());
  const auto count = static_cast<uint64_t>(numel_of(tensor.shape));
  const uint32_t bits = *dtype == DType::float4_e2m1fn_x2 ? 4 : dtype_bits(*dtype);
  uint64_t total_bits = 0;
  if (__builtin_mul_overflow(count, uint64_t{bits}, &total_bits)) {
    refuse(RefusalClass::Overflow, "tensor " + info.name + ": its bits do not fit in 64 bits");
  }
  if (info.begin > info.end)
    refuse(RefusalClass::StLayout, "tensor " + info.name + ": its offsets go backwards");
  if (total_bits % 8 != 0 || total_bits / 8 != info.end - info.begin) {
    refuse(RefusalClass::StLayout, "tensor " + info.name + ": dtype and shape take " +
                                       std::to_string(total_bits) + " bits, its offsets " +
                                       std::to_string(info.end - info.begin) + " bytes");
  }
  if (*dtype == DType::float4_e2m1fn_x2) {
    if (tensor.shape.empty() || tensor.shape.back() % 2 != 0) {
      refuse(RefusalClass::StLayout, "tensor " + info.name + ": the last dimension of packed float4 is odd");
    }
    tensor.shape.back() /= 2;
  }
  tensor.stride = contiguous_stride(tensor.shape);
  return tensor;
}

// Checks that the entries cover the data without holes or overlaps.
void check_layout(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes, uint64_t data_offset) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
  const auto by_offsets = [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  };
  if (!std::ranges::is_sorted(order, by_offsets)) std::ranges::sort(order, by_offsets);
  uint64_t expected = 0;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin != expected) {
      refuse(RefusalClass::StLayout,
             "tensor " + entry->name + " begins at " + std::to_string(entry->begin) + " where " +
                 std::to_string(expected) + " is due",
             data_offset + std::min(entry->begin, data_bytes));
    }
    expected = entry->end;
  }
  if (expected > data_bytes) {
    refuse(RefusalClass::Truncated,
           "the header declares " + std::to_string(expected) + " bytes of data, " +
               std::to_string(data_bytes) + " are there: was the copy or download complete?",
           data_offset + data_bytes);
  }
  if (expected < data_bytes) {
    refuse(RefusalClass::StLayout, std::to_string(data_bytes - expected) + " bytes follow the last tensor",
           data_offset + expected);
  }
}

}  // namespace

Safetensors read_safetensors(std::shared_ptr<const MappedFile> file, const SafetensorsOptions& options) {
  const auto bytes = file->bytes();
  if (bytes.empty()) refuse(RefusalClass::StHeader, "the file is empty", 0);
  if (bytes.size() < 8)
    refuse(RefusalClass::StHeader, "the file is shorter than the length of its header", 0);
  const uint64_t length = load_le<uint64_t>(bytes, 0);
  if (length == 0) refuse(RefusalClass::StHeader, "the header is empty", 0);
  if (length > options.limits.safetensors_header_bytes) {
    refuse(RefusalClass::LimitExceeded, "the header has " + std::to_string(length) + " bytes", 0);
  }
  if (length > bytes.size() - 8) {
    refuse(RefusalClass::Truncated,
           "the header of " + std::to_string(length) +
               " bytes reaches beyond the file: was the copy or download complete?",
           8);
  }
  Safetensors result;
  result.file = std::move(file);
  result.header = as_text(bytes.subspan(8, length));
  SafetensorsHeader header = parse_safetensors_header(result.header, options);
  result.has_metadata = header.has_metadata;
  result.metadata = std::move(header.metadata);
  result.entries.reserve(header.tensors.size());
  for (SafetensorsInfo& info : header.tensors) {
    Tensor tensor = tensor_of_info(info);
    header.budget.give_back_bytes(text_block_bytes(info.name.size()));  // charged by the parser
    result.entries.push_back({std::move(info.name), std::move(tensor), info.begin, info.end});
  }
  header.tensors = {};
  result.budget = header.budget;
  const auto data = bytes.subspan(8 + length);
  check_layout(result.entries, data.size(), 8 + length);
  for (SafetensorsEntry& entry : result.entries) {
    auto storage = std::make_shared<Storage>();
    storage->bytes = data.subspan(entry.begin, entry.end - entry.begin);
    storage->key = entry.name;
    storage->location = "cpu";
    storage->owner = result.file;
    entry.tensor.storage = std::move(storage);
  }
  return result;
}

}  // namespace qcts
