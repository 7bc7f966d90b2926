// SPDX-License-Identifier: BSD-3-Clause
// Reads the structure of a zip archive of stored entries and checks it from both ends.
// The central directory, local headers and data descriptors must agree.
// Every byte of the file must belong to exactly one record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/refusal.h"

namespace qcts {

struct ZipEntry {
  std::string_view name;  // full name in the file, including the archive's prefix
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t size = 0;
  uint64_t stored_size = 0;    // equals `size`, except for deflated sources of TorchScript
  uint64_t header_offset = 0;  // position of the local header
  uint64_t data_offset = 0;
  uint64_t record_end = 0;                // position after the data descriptor
  bool zip64 = false;                     // true if sizes or offset are in a zip64 extra field
  std::optional<uint16_t> padding_bytes;  // from torch's "FB" extra field in the local header
};

// Size in bytes of a directory entry without its name (APPNOTE 4.3.12).
inline constexpr uint64_t kZipCentralBytes = 46;

struct ZipDirectory {
  std::string prefix;             // the folder that all names share
  std::vector<ZipEntry> entries;  // sorted by offset
};

enum class ZipKind : uint8_t {
  torch_save,   // every entry is stored, and none is constants.pkl
  torchscript,  // entries below code/ may be deflated
};

// Reads the directory. `lenient` accepts plain zips without ZIP64 records, and gaps between records.
// The names point into the file's bytes. Throws Refused.
ZipDirectory read_zip_directory(const MappedFile& file, const Limits& limits, bool lenient,
                                ZipKind kind = ZipKind::torch_save);
ZipDirectory read_zip_directory(std::span<const std::byte> file, const Limits& limits, bool lenient,
                                ZipKind kind = ZipKind::torch_save);

// Returns true if the directory has a name that only TorchScript archives have.
// Such names are constants.pkl and records below code/.
// Returns false if the file is not an archive. Checks nothing else.
bool names_torchscript(std::span<const std::byte> file);

}  // namespace qcts
