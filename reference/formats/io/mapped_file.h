// SPDX-License-Identifier: BSD-3-Clause
// A file read by mmap (read-only, private), and the atomic way back to disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/formats/io/byte_sink.h"

namespace qcts {

class MappedFile {
 public:
  // Throws IoError. An empty file has an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // Bytes that are already in memory, for tests and fuzzers.
  static std::shared_ptr<const MappedFile> from_bytes(std::vector<std::byte> bytes,
                                                      std::string name = "memory");

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // Bytes [offset, offset + into.size()) of the file that is mapped, whatever its path names by now; they
  // have to lie inside bytes(). Reads, and maps no page for it. Throws IoError, also when the file became
  // shorter.
  void read(uint64_t offset, std::span<std::byte> into) const;

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
  void* mapping_ = nullptr;
  int fd_ = -1;  // of the mapping
  std::vector<std::byte> heap_;
};

// Short looks at scattered places of a file, such as the headers of an archive's records. A page fault maps
// the sixteen pages around it, and their unmapping costs as much again: of 400 records in 1 GiB that was more
// than half of opening the file. Reading what is looked at costs a fifth of it.
class Glimpses {
 public:
  explicit Glimpses(const MappedFile& file) : file_(&file), bytes_(file.bytes()) {}
  explicit Glimpses(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // Bytes [at, at + count), valid until the next call; they have to lie inside the file.
  std::span<const std::byte> operator()(uint64_t at, uint64_t count);

 private:
  const MappedFile* file_ = nullptr;
  std::span<const std::byte> bytes_;
  uint64_t held_at_ = 0;
  std::vector<std::byte> held_;
};

// Temporary file in the same folder, fsync, rename: `path` holds its old bytes or the new ones, never a part,
// whatever happens to the process. Throws IoError; the temporary file is gone then.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
// The same for bytes that `fill` produces piece by piece; at most 1 MiB of them is held. What `fill` throws
// leaves `path` as it was.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill);

}  // namespace qcts
