// A file read by mmap (read-only, private), and the atomic way back to disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace qcts {

class MappedFile {
 public:
  // Throws IoError. An empty file has an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // Bytes that are already in memory, for tests and fuzzers.
  static std::shared_ptr<const MappedFile> from_bytes(std::vector<std::byte> bytes, std::string name = "memory");

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
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

// Temporary file in the same folder, fsync, rename: `path` holds its old bytes or the new ones, never a part. Throws IoError.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace qcts
