// SPDX-License-Identifier: BSD-3-Clause
// Parses and formats the header of a safetensors file without its data. The reader and the writer share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/formats/compact.h"
#include "reference/formats/io/read_budget.h"
#include "reference/formats/safetensors/safetensors.h"

namespace qcts {

struct SafetensorsInfo {
  std::string name;
  Text dtype;  // as in the file: "BF16"
  Array<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  bool has_metadata = false;
  std::vector<std::pair<std::string, std::string>> metadata;  // in text order
  std::vector<SafetensorsInfo> tensors;                       // in text order
  ReadBudget budget = {};                                     // budget that has paid for the entries
};

// Returns the memory that a header grants in addition to the 64 MiB of every file.
// An entry takes 65 to 120 bytes of the header, and 930 bytes of memory once it is a named tensor.
// About 300,000 tensors can therefore be read.
// The grant is limited to the header's own size plus 192 MiB.
constexpr uint64_t granted_bytes(uint64_t header_bytes) {
  constexpr uint64_t kTimes = 15, kMaxBytes = 192u << 20;
  return header_bytes + std::min(kTimes * header_bytes, kMaxBytes);
}

// Parses the header's JSON. Does not compare offsets and sizes with any data.
// Throws Refused (StJson, StLayout, Overflow, Dtype, LimitExceeded).
SafetensorsHeader parse_safetensors_header(std::string_view text, const SafetensorsOptions& options);

// Formats compact JSON as serde does, padded with spaces to a multiple of eight bytes.
// The source is safetensors/src/tensor.rs, prepare.
std::string format_safetensors_header(const SafetensorsHeader& header);

// Convert between "BF16" and DType::bfloat16.
// Ranks follow safetensors' enum Dtype (0.8.0), which is in the order of alignment.
std::optional<DType> dtype_of_safetensors(std::string_view name);
bool has_safetensors_dtype(DType dtype);
std::string_view safetensors_dtype(DType dtype);  // throws Refused (Dtype) for a type that the format lacks
int safetensors_rank(DType dtype);                // place in the enum

// Returns the shape for the header.
// For packed float4 the header counts elements, while torch counts pairs of them.
Array<uint64_t> safetensors_shape(const Tensor& tensor);

}  // namespace qcts
