// SPDX-License-Identifier: BSD-3-Clause
// Reads files by mmap (read-only, private), and replaces files atomically.
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
  // Maps `path`. The span of an empty file is empty. Throws IoError.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // Wraps bytes in memory, for tests and fuzzers.
  static std::shared_ptr<const MappedFile> from_bytes(std::vector<std::byte> bytes,
                                                      std::string name = "memory");

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // Reads bytes [offset, offset + into.size()) of the mapped file, whatever its path names by now.
  // Does not fault pages in. The range must be inside bytes().
  // Throws IoError, also if the file has become shorter.
  void read(uint64_t offset, std::span<std::byte> into) const;
  // Gives back the memory of the pages that were read so far. The bytes stay valid, and are read again when
  // needed.
  void release_pages() const;

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
  void* mapping_ = nullptr;
  int fd_ = -1;  // descriptor of the mapped file
  std::vector<std::byte> heap_;
};

// A small window for reading scattered places of a file, such as record headers, with pread.
// A page fault maps sixteen pages, and unmapping costs as much again.
// For 400 records in 1 GiB, this was more than half of the time to open the file.
// pread takes a fifth of that time.
class PreadWindow {
 public:
  explicit PreadWindow(const MappedFile& file) : file_(&file), bytes_(file.bytes()) {}
  explicit PreadWindow(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // Returns bytes [at, at + count), which must be inside the file. They are valid until the next call.
  std::span<const std::byte> operator()(uint64_t at, uint64_t count);

 private:
  const MappedFile* file_ = nullptr;
  std::span<const std::byte> bytes_;
  uint64_t held_at_ = 0;
  std::vector<std::byte> held_;
};

// Writes a temporary file in the same folder, syncs it and renames it to `path`.
// Even if the process dies, `path` has either all of its old bytes or all of the new ones.
// Throws IoError, and removes the temporary file.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
// Writes the bytes that `fill` passes piece by piece, and buffers at most 1 MiB of them.
// If `fill` throws, `path` is unchanged.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill);

}  // namespace qcts
