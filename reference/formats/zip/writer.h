// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/formats/io/byte_sink.h"

namespace qcts {

// Stored entries exactly as PyTorchStreamWriter lays them out (caffe2/serialize/inline_container.cc and its
// patched miniz): all header fields that do not matter are zero, data is aligned by an "FB" extra field,
// sizes and CRC stand in a descriptor behind the data.
class ZipWriter {
 public:
  // `alignment_bytes` of every record's data, 1 to 65536. `out` takes the archive from its first byte on and
  // outlives the writer.
  ZipWriter(ByteSink& out, std::string prefix, uint32_t alignment_bytes);

  // `crc` is written as given: 0 where the writer was told to leave it out.
  void add(const std::string& name, std::span<const std::byte> data, uint32_t crc) {
    add(name, data, [crc] { return crc; });
  }
  // The same; `crc` is asked once the data is written, and its answer is returned.
  uint32_t add(const std::string& name, std::span<const std::byte> data,
               const std::function<uint32_t()>& crc);
  // Central directory and the three end records.
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
