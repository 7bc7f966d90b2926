// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes torch.save's zip container (torch 1.6 to 2.13; caffe2/serialize/inline_container.cc).
// The container has stored entries, a pickle, and one record per storage.
// zip_reader.cc and zip_writer.cc describe the layout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/formats/io/byte_sink.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/torch/object.h"

namespace qcts {

struct ZipRecord {
  std::string name;  // without the archive's prefix: "data.pkl", "data/0"
  std::span<const std::byte> bytes;
  bool crc_written = true;      // false if 0 is recorded: set_crc32_options(False), or skipped data
  uint64_t header_offset = 0;   // position of the local header
  uint64_t data_offset = 0;     // position of the first data byte
  uint64_t recorded_bytes = 0;  // size in the file; an edit may replace `bytes`
  uint32_t recorded_crc = 0;    // CRC-32 in the file
};

using TorchZipOptions = TorchOptions;

// An archive: the object graph, and everything that a byte-identical save needs.
struct TorchZip : TorchObject {
  std::shared_ptr<const MappedFile> file;
  std::string prefix;              // "archive", "toy_int8"
  std::vector<ZipRecord> records;  // in file order
  uint32_t storage_alignment_bytes = 64;
  bool big_endian = false;
};

TorchZip read_torch_zip(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options = {});

// Writes the file again from the parsed records and graph. The pickle is encoded again, not copied.
// The result equals the input byte for byte for every file that torch.save wrote.
// With the help of RebuildNotes, the same is true for every accepted file that was not edited.
void rebuild_torch_zip(const TorchZip& zip, ByteSink& out, RebuildNotes* notes = nullptr);
std::vector<std::byte> rebuild_torch_zip(const TorchZip& zip, RebuildNotes* notes = nullptr);

// Writes a new archive as torch.save 2.13 does. `storages[i]` becomes data/i.
void write_torch_zip(const std::string& prefix, const pickle::Ref& root,
                     const std::vector<std::shared_ptr<const Storage>>& storages, ByteSink& out);
std::vector<std::byte> write_torch_zip(const std::string& prefix, const pickle::Ref& root,
                                       const std::vector<std::shared_ptr<const Storage>>& storages);

}  // namespace qcts
