// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/formats/io/byte_sink.h"

namespace qcts {

// Writes stored entries exactly as PyTorchStreamWriter does.
// The source is caffe2/serialize/inline_container.cc with its patched miniz.
// Unused header fields are zero, and an extra field "FB" aligns the data.
// A descriptor after the data holds sizes and CRC.
class ZipWriter {
 public:
  // Aligns the data of every record to `alignment_bytes` (1 to 65536).
  // `out` receives the archive from its first byte on and must outlive the writer.
  ZipWriter(ByteSink& out, std::string prefix, uint32_t alignment_bytes);

  // Adds a record. `crc` is written as given; it is 0 if CRCs are off.
  void add(const std::string& name, std::span<const std::byte> data, uint32_t crc) {
    add(name, data, [crc] { return crc; });
  }
  // Adds a record, calls `crc` after the data is written, and returns its result.
  uint32_t add(const std::string& name, std::span<const std::byte> data,
               const std::function<uint32_t()>& crc);
  // Writes the central directory and the three end records.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t size = 0, offset = 0;
    uint32_t crc = 0;
  };

  ByteSink& out_;
  std::string prefix_;
  uint32_t alignment_;
  std::vector<Entry> entries_;
};

}  // namespace qcts
