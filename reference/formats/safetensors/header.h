// SPDX-License-Identifier: BSD-3-Clause
// The header of a safetensors file: text <-> fields, without the data. Shared by reader and writer.
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
  Text dtype;  // as spelt: "BF16"
  Array<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  bool has_metadata = false;
  std::vector<std::pair<std::string, std::string>> metadata;  // in text order
  std::vector<SafetensorsInfo> tensors;                       // in text order
  ReadBudget budget;                                          // its entries charged
};

// Bytes of memory that a header grants beside the 64 MiB of every file. An entry takes 65 to 120 bytes of it
// and 930 of memory, once it is a named tensor: some 300,000 are read, and no header gets more than its own
// bytes and 192 MiB.
constexpr uint64_t granted_bytes(uint64_t header_bytes) {
  constexpr uint64_t kTimes = 15, kMostBytes = 192u << 20;
  return header_bytes + std::min(kTimes * header_bytes, kMostBytes);
}

// Throws Refused (StJson, StLayout, Overflow, Dtype, LimitExceeded). Offsets and sizes are not compared with
// any data here.
SafetensorsHeader parse_safetensors_header(std::string_view text, const SafetensorsOptions& options);

// Compact JSON as serde writes it, padded with blanks to a multiple of eight bytes
// (safetensors/src/tensor.rs, prepare).
std::string format_safetensors_header(const SafetensorsHeader& header);

// "BF16" <-> DType::bfloat16, in the order of safetensors' Dtype enum (0.8.0), which is the order of
// alignment.
std::optional<DType> dtype_of_safetensors(std::string_view name);
std::string_view safetensors_dtype(DType dtype);  // refuses Dtype for what the format cannot hold
int safetensors_rank(DType dtype);                // place in the enum

// The shape in the header: packed float4 counts elements there, and pairs of them in torch.
Array<uint64_t> safetensors_shape(const Tensor& tensor);

}  // namespace qcts
