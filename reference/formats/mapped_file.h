// A file read by mmap (read-only, private), and the atomic way back to disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/formats/byte_sink.h"

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
  // While a reader jumps from record to record, the kernel reads no pages ahead: of a cold file of 1 GiB it would
  // read all. Back to its default afterwards.
  void expect_jumps(bool jumps) const;
  // The file that was mapped, as stat names it; false for bytes in memory.
  bool is(uint64_t device, uint64_t inode) const {
    return mapping_ != nullptr && device == device_ && inode == inode_;
  }

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
  void* mapping_ = nullptr;
  uint64_t device_ = 0, inode_ = 0;
  std::vector<std::byte> heap_;
};

// Temporary file in the same folder, fsync, rename: `path` holds its old bytes or the new ones, never a part,
// whatever happens to the process. Throws IoError; the temporary file is gone then.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
// The same for bytes that `fill` produces piece by piece; at most 1 MiB of them is held. What `fill` throws
// leaves `path` as it was.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill);

}  // namespace qcts
