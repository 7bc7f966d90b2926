// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes GGUF files, version 2 and 3, little-endian (ggml/docs/gguf.md; gguf 0.19.0).
// A file has a header, pairs of metadata, descriptions of tensors, and the aligned data.
// Only names are copied: strings, arrays and elements are views of the mapped file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/gguf/types.h"
#include "reference/formats/io/byte_sink.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/read_budget.h"
#include "reference/formats/refusal.h"
#include "reference/formats/tensor.h"

namespace qcts {

// The types of metadata values, numbered as in a file.
enum class GgufValueType : uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64,
};
inline constexpr uint32_t kGgufValueTypeCount = static_cast<uint32_t>(GgufValueType::float64) + 1;
std::string_view gguf_value_type_name(GgufValueType type);  // "uint8", "bool", "string"
// Returns the bytes of a number or bool in a file; 0 for strings and arrays.
uint64_t gguf_value_bytes(GgufValueType type);

struct GgufValue {
  GgufValueType type = GgufValueType::uint8;
  uint64_t bits = 0;        // a number or bool: its bytes, zero-extended
  std::string_view text{};  // a string
  // An array: the type and number of its items, and the items as a file encodes them.
  GgufValueType item_type = GgufValueType::uint8;
  uint64_t count = 0;
  std::span<const std::byte> items{};
};

struct GgufPair {
  std::string key;
  GgufValue value;
};

struct GgufEntry {
  std::string name;
  const GgufType* type = nullptr;  // one of gguf_types()
  std::vector<int64_t> shape;      // of elements, row-major: the reverse of the file's order
  // The elements of a type with a dtype. Otherwise the blocks as uint8: the last dimension counts bytes.
  Tensor tensor;
};

// Bytes between tensors that should be 0 and are not.
struct GgufStray {
  uint64_t offset = 0;  // in the file
  std::span<const std::byte> bytes;
};

struct Gguf {
  std::shared_ptr<const MappedFile> file;
  uint32_t version = 3;
  uint64_t alignment = 32;         // general.alignment
  std::vector<GgufPair> metadata;  // in file order
  std::vector<GgufEntry> entries;  // in file order, which is the order of their data
  uint64_t end_padding_bytes = 0;  // after the last tensor
  std::vector<GgufStray> stray;
  uint64_t data_offset = 0;        // in the file
  uint64_t metadata_bytes = 0;     // of all pairs, in the header
  uint64_t description_bytes = 0;  // of all tensors, in the header
  uint64_t padding_bytes = 0;      // before, between and after the tensors
  ReadBudget budget;               // the budget that remains after reading
};

struct GgufOptions {
  Limits limits;
};

// Reads a file. Throws Refused:
//   NotArchive, Version, ByteOrder  the first eight bytes;
//   Truncated                       counts, strings, arrays or tensors that reach beyond the file;
//   GgufHeader                      malformed keys, values, dimensions or general.alignment;
//   GgufLayout                      a tensor that does not begin where the previous one ends, aligned;
//   DuplicateEntry, EntryName, Dtype, Overflow, LimitExceeded, TrailingData.
Gguf read_gguf(std::shared_ptr<const MappedFile> file, const GgufOptions& options = {});

// Writes the file again from the parsed object: version, order, alignment and padding are kept, offsets are
// computed. The result equals the input byte for byte.
void rebuild_gguf(const Gguf& file, ByteSink& out);
std::vector<std::byte> rebuild_gguf(const Gguf& file);

// Returns the value of a key, or nullptr.
const GgufValue* find_gguf_value(const Gguf& file, std::string_view key);
// Returns an integer of any width that fits int64; nullopt for other values.
std::optional<int64_t> gguf_integer(const GgufValue& value);
// Returns a value as text: 32, -0.5, true, llama, ["a", "b"]. An array of arrays or of more than `most` items
// is described by its type and length: "array of 32000 strings".
std::string gguf_value_text(const GgufValue& value, uint64_t most = 16);

// Returns the memory that a file may take for its descriptions of tensors, in addition to 64 MiB: a
// description takes at least 24 bytes of the file, and 1300 bytes of memory once it is a named tensor.
constexpr uint64_t gguf_granted_bytes(uint64_t description_bytes) {
  constexpr uint64_t kTimes = 15, kMaxBytes = 192u << 20;
  return description_bytes + std::min(kTimes * description_bytes, kMaxBytes);
}

}  // namespace qcts
