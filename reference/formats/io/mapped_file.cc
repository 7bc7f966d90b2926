// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "reference/formats/refusal.h"

namespace qcts {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  // Some file systems report write errors only on close.
  int close() { return ::close(release()); }

 private:
  int fd_;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw IoError(path, "write", errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

// Creates the temporary file with the mode that open(O_CREAT, 0666) gives. umask() can only be read by
// setting it, which races with other threads, so the kernel applies it here.
int create_beside(const std::filesystem::path& path, std::string& temporary) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary = path.string() + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

void sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) throw IoError(folder.string(), "open folder", errno);
  // Some file systems cannot sync a folder and say EINVAL; the rename itself stays atomic there.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) throw IoError(folder.string(), "fsync", errno);
}

// Buffers small pieces and passes large ones straight to write().
class FileSink final : public ByteSink {
 public:
  FileSink(int fd, const std::string& path) : fd_(fd), path_(path) { pending_.reserve(kGatheredBytes); }
  void flush() {
    write_all(fd_, pending_, path_);
    pending_.clear();
  }

 private:
  static constexpr size_t kGatheredBytes = 1u << 20;

  void put(std::span<const std::byte> bytes) override {
    if (pending_.size() + bytes.size() > kGatheredBytes) flush();
    if (bytes.size() > kGatheredBytes) return write_all(fd_, bytes, path_);
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  }

  int fd_;
  const std::string& path_;
  std::vector<std::byte> pending_;
};

void fill_and_rename(int fd, const std::string& temporary, const std::filesystem::path& target,
                     const std::function<void(ByteSink&)>& fill) {
  Descriptor file(fd);
  struct stat old {};
  if (::stat(target.c_str(), &old) == 0 && ::fchmod(file.get(), old.st_mode & 07777) != 0) {
    throw IoError(temporary, "fchmod", errno);
  }
  const std::string path = target.string();
  FileSink sink(file.get(), path);
  fill(sink);
  sink.flush();
  if (::fsync(file.get()) != 0) throw IoError(path, "fsync", errno);
  if (file.close() != 0) throw IoError(path, "close", errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) throw IoError(target.string(), "rename", errno);
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // A named pipe without a writer would block.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) throw IoError(path.string(), "open", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw IoError(path.string(), "stat", errno);
  if (S_ISDIR(info.st_mode)) throw IoError(path.string(), "open", EISDIR);
  if (!S_ISREG(info.st_mode))
    refuse(RefusalClass::NotArchive, path.string() + " is " +
                                         (S_ISFIFO(info.st_mode) ? "a pipe" : "a device") +
                                         ", but qcts needs random access: save it to a file and pass that");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path.string();
  if (info.st_size == 0) return file;
  const size_t size = static_cast<size_t>(info.st_size);
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapping == MAP_FAILED) throw IoError(path.string(), "mmap", errno);
  file->mapping_ = mapping;
  file->fd_ = fd.release();
  file->bytes_ = {static_cast<const std::byte*>(mapping), size};
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::from_bytes(std::vector<std::byte> bytes, std::string name) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = std::move(name);
  file->heap_ = std::move(bytes);
  file->bytes_ = file->heap_;
  return file;
}

void MappedFile::read(uint64_t offset, std::span<std::byte> into) const {
  if (fd_ < 0) {
    std::ranges::copy(bytes_.subspan(offset, into.size()), into.begin());
    return;
  }
  while (!into.empty()) {
    const ssize_t count = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw IoError(path_, "read", count < 0 ? errno : EIO);
    into = into.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void MappedFile::release_pages() const {
  if (mapping_ != nullptr) ::madvise(mapping_, bytes_.size(), MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, bytes_.size());
  if (fd_ >= 0) ::close(fd_);
}

std::span<const std::byte> PreadWindow::operator()(uint64_t at, uint64_t count) {
  if (file_ == nullptr) return bytes_.subspan(at, count);
  // One read covers a record's descriptor and the next header, or all of a small archive.
  constexpr uint64_t kHeldBytes = 512;
  if (at < held_at_ || at + count > held_at_ + held_.size()) {
    held_.resize(std::min(std::max(count, kHeldBytes), bytes_.size() - at));
    held_at_ = at;
    file_->read(at, held_);
  }
  return std::span<const std::byte>(held_).subspan(at - held_at_, count);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, [&](ByteSink& sink) { sink.write(bytes); });
}

void write_file_atomically(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill) {
  std::error_code error;
  // Replaces the target of a symbolic link, not the link.
  const std::filesystem::path resolved = std::filesystem::canonical(path, error);
  const std::filesystem::path target = error ? path : resolved;
  std::string temporary;
  const int fd = create_beside(target, temporary);
  if (fd < 0) throw IoError(path.string(), "create", errno);
  try {
    fill_and_rename(fd, temporary, target, fill);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(target);
}

}  // namespace qcts
