// SPDX-License-Identifier: BSD-3-Clause
// The errors of every reader. A file is either read exactly or refused.
// A refusal has a class, a detail and, if there is one, a byte offset.
// reference/formats and reference/dialects throw no other exception for the content of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

enum class RefusalClass : uint8_t {
  NotArchive,      // the first bytes match no supported format
  Truncated,       // the file ends earlier than it declares
  ZipStructure,    // local headers, central directory and end records contradict each other
  ZipUnsupported,  // an unsupported compression, or encryption
  ZipOverlap,      // two entries claim the same bytes
  DuplicateEntry,  // two entries have the same name, ignoring case
  EntryName,       // a name outside the archive's prefix, or with "..", NUL or a backslash
  CrcMismatch,     // the CRC-32 of a record differs from the recorded one
  LimitExceeded,   // a limit of Limits is exceeded; checked before any memory is allocated
  Version,         // an unsupported version of the format
  ByteOrder,       // a byte order that is neither little nor big endian
  PickleOpcode,    // an opcode outside the allow-list (security)
  PickleStack,     // an operand is missing, or values are left over at STOP
  PickleGlobal,    // a global outside the allow-list (security)
  PickleCall,      // a call that no schema allows (security)
  PickleType,      // a value of the wrong type for its place
  StorageRef,      // a persistent id that names a missing storage or contradicts its record
  TensorBounds,    // size, stride and offset reach outside the storage
  Overflow,        // an integer or a product does not fit its type
  Dtype,           // an unknown element type
  SubclassSchema,  // a tensor subclass whose parts contradict its schema
  StHeader,        // safetensors: a fault of the eight length bytes or of the length itself
  StJson,          // safetensors: the header is not the JSON object that the format requires
  StLayout,        // safetensors: offsets with holes or overlaps, or a size that contradicts shape and dtype
  GgufHeader,      // GGUF: a key, value or description of a tensor that the format does not allow
  GgufLayout,      // GGUF: offsets with holes or overlaps, or off the alignment
  TrailingData,    // bytes follow the end of the format
};

std::string_view refusal_class_name(RefusalClass cls);  // "CrcMismatch"
std::optional<RefusalClass> refusal_class_from_name(std::string_view name);

struct Refusal {
  RefusalClass cls;
  std::string detail;                // one line that names the record, tensor or global
  std::optional<uint64_t> offset{};  // position in the file, or in data.pkl if the detail says so
  bool security =
      false;  // true for PickleOpcode, PickleGlobal, PickleCall and disallowed functions in metadata
  std::vector<std::string>
      allow{};  // PickleGlobal: the names, "module.name", that ReadOptions::allow would have to contain
};

// Formats a refusal: "CrcMismatch: data/3 (tensor 0.weight): recorded 0x..., computed 0x... (offset 4096)".
std::string describe(const Refusal& refusal);

class Refused : public std::runtime_error {
 public:
  explicit Refused(Refusal refusal) : std::runtime_error(describe(refusal)), refusal_(std::move(refusal)) {}
  const Refusal& refusal() const { return refusal_; }

 private:
  Refusal refusal_;
};

// Throws Refused and derives its `security` from the class.
[[noreturn]] void refuse(RefusalClass cls, std::string detail, std::optional<uint64_t> offset = std::nullopt);

// Reports a failure of the operating system (open, read, write, rename, disk full).
// The file's content is not at fault. The exit code is 5, or 2 for a path that does not exist.
class IoError : public std::runtime_error {
 public:
  IoError(const std::string& path, const std::string& action, int error_number);
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// Limits of a reader, checked before memory is allocated. A file that exceeds one is refused as
// LimitExceeded. The defaults leave ample room for everything that each format's own producer writes.
struct Limits {
  uint64_t zip_entries = 1u << 19;
  uint64_t zip_name_bytes = 4096;
  uint64_t zip_directory_bytes = 256u << 20;
  uint64_t pickle_bytes = 512u << 20;
  uint64_t pickle_ops = 1u << 28;
  uint64_t pickle_stack = 1u << 20;
  uint64_t pickle_depth = 512;  // at most 1024
  uint64_t pickle_string_bytes = 16u << 20;
  // Heap bytes that the values of a pickle may take by the reader's account.
  // The pickle's own bytes are allowed in addition.
  // torch.save's dicts of tensors take about 40 bytes per opcode.
  // Lists that contain only lists take 80 bytes per opcode, so a million of them fit.
  uint64_t pickle_heap_bytes = 40u << 20;
  uint64_t pickle_heap_bytes_per_op = 48;
  uint64_t tensors = 1u << 22;
  uint64_t dims = 64;
  uint64_t safetensors_header_bytes = 100'000'000;  // safetensors' own MAX_HEADER_SIZE
  uint64_t json_depth = 8;
  uint64_t json_string_bytes = 16u << 20;
  uint64_t gguf_pairs = 1u << 16;             // of metadata
  uint64_t gguf_name_bytes = (1u << 16) - 1;  // of a key, as the format allows, or of a tensor's name
  uint64_t gguf_depth = 8;                    // arrays in arrays
  uint64_t script_code_bytes = 32u << 20;     // bytes of all sources of a TorchScript archive, inflated
};

}  // namespace qcts
