// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes safetensors files (safetensors/src/tensor.rs, 0.8.0).
// A file has a u64 header length, a JSON object, and the data.
// Strict by default: a deviation from the specification is refused even if the Rust reader tolerates it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/formats/io/byte_sink.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/read_budget.h"
#include "reference/formats/refusal.h"
#include "reference/formats/tensor.h"

namespace qcts {

struct SafetensorsEntry {
  std::string name;
  Tensor tensor;       // contiguous; its storage is the entry's bytes
  uint64_t begin = 0;  // data_offsets, relative to the data section
  uint64_t end = 0;
};

struct SafetensorsOptions {
  Limits limits;
  bool lenient = false;  // accept leading blanks and unknown fields
};

struct Safetensors {
  std::shared_ptr<const MappedFile> file;
  std::string_view header;  // the JSON text in `file`, including padding
  bool has_metadata = false;
  std::vector<std::pair<std::string, std::string>> metadata;  // __metadata__, in file order
  std::vector<SafetensorsEntry> entries;                      // in header order
  ReadBudget budget;                                          // the budget that remains after reading
};

Safetensors read_safetensors(std::shared_ptr<const MappedFile> file, const SafetensorsOptions& options = {});

// Writes the file again from the parsed entries, in their order.
// The order of the metadata and the writer's rule for padding are kept.
// The result equals the input byte for byte for files of safetensors >= 0.4.
// The header text is copied only if its spacing differs from the writer's.
void rebuild_safetensors(const Safetensors& file, ByteSink& out);
std::vector<std::byte> rebuild_safetensors(const Safetensors& file);

enum class SafetensorsOrder : uint8_t {
  by_dtype,  // by descending dtype, then by name, as safetensors 0.8.0 does
  as_given,  // in the given order, as MLX and torch's distributed checkpoints do
};

// Writes a new file, with the metadata sorted by key.
// If `make` is given, it is called for each tensor when that is written, so that memory holds one at a time.
// `tensors` then need no storage; they have the dtype and shape of what make(index) returns.
void write_safetensors(const std::vector<std::pair<std::string, Tensor>>& tensors,
                       std::vector<std::pair<std::string, std::string>> metadata, ByteSink& out,
                       SafetensorsOrder order = SafetensorsOrder::by_dtype,
                       const std::function<Tensor(size_t index)>& make = nullptr);
std::vector<std::byte> write_safetensors(const std::vector<std::pair<std::string, Tensor>>& tensors,
                                         std::vector<std::pair<std::string, std::string>> metadata,
                                         SafetensorsOrder order = SafetensorsOrder::by_dtype);

}  // namespace qcts
