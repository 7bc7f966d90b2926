// SPDX-License-Identifier: BSD-3-Clause
// The structure of a zip archive of stored entries, checked from both ends: central directory, local headers
// and data descriptors have to tell one story, and every byte of the file belongs to exactly one of them.
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
  std::string_view name;  // in the file: whole, with the archive's prefix
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t size = 0;
  uint64_t stored_size = 0;    // equal to `size` for everything but the deflated sources of TorchScript
  uint64_t header_offset = 0;  // of the local header
  uint64_t data_offset = 0;
  uint64_t record_end = 0;                // after the data descriptor
  bool zip64 = false;                     // sizes or offset stand in a zip64 extra field
  std::optional<uint16_t> padding_bytes;  // of torch's "FB" extra field in the local header
};

// An entry of the directory without its name (APPNOTE 4.3.12).
inline constexpr uint64_t kZipCentralBytes = 46;

struct ZipDirectory {
  std::string prefix;             // the folder that all names share
  std::vector<ZipEntry> entries;  // by offset
};

enum class ZipKind : uint8_t {
  torch_save,   // every entry stored, and none called constants.pkl
  torchscript,  // entries below code/ may be deflated
};

// Throws Refused. `lenient` accepts plain zips without ZIP64 records, and gaps between records. Names point
// into the file's bytes.
ZipDirectory read_zip_directory(const MappedFile& file, const Limits& limits, bool lenient,
                                ZipKind kind = ZipKind::torch_save);
ZipDirectory read_zip_directory(std::span<const std::byte> file, const Limits& limits, bool lenient,
                                ZipKind kind = ZipKind::torch_save);

// Does the directory name what only TorchScript archives have: constants.pkl, or a record below code/? False
// for what is no archive; nothing is checked.
bool names_torchscript(std::span<const std::byte> file);

}  // namespace qcts
