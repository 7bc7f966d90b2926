// SPDX-License-Identifier: BSD-3-Clause
// Parses and formats the header of a safetensors file, without its data. Reader and writer share it.
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
  ReadBudget budget;                                          // its entries are charged
};

// Memory that a header grants in addition to the 64 MiB of every file. An entry takes 65 to 120 bytes of the
// header, and 930 bytes of memory once it is a named tensor: about 300,000 tensors can be read. The grant is
// limited to the header's own size plus 192 MiB.
constexpr uint64_t granted_bytes(uint64_t header_bytes) {
  constexpr uint64_t kTimes = 15, kMaxBytes = 192u << 20;
  return header_bytes + std::min(kTimes * header_bytes, kMaxBytes);
}

// Parses the header's JSON. Offsets and sizes are not compared with any data here. Throws Refused (StJson,
// StLayout, Overflow, Dtype, LimitExceeded).
SafetensorsHeader parse_safetensors_header(std::string_view text, const SafetensorsOptions& options);

// Formats compact JSON as serde does, padded with spaces to a multiple of eight bytes
// (safetensors/src/tensor.rs, prepare).
std::string format_safetensors_header(const SafetensorsHeader& header);

// Convert between "BF16" and DType::bfloat16. Ranks follow safetensors' Dtype enum (0.8.0), which is the
// order of alignment.
std::optional<DType> dtype_of_safetensors(std::string_view name);
bool has_safetensors_dtype(DType dtype);
std::string_view safetensors_dtype(DType dtype);  // throws Refused (Dtype) for what the format cannot hold
int safetensors_rank(DType dtype);                // place in the enum

// Returns the shape for the header: for packed float4 the header counts elements, torch pairs of them.
Array<uint64_t> safetensors_shape(const Tensor& tensor);

}  // namespace qcts
