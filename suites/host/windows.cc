// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/windows.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "suites/base/process.h"

namespace qcts {
namespace {

constexpr uintptr_t kFirstAddress = 0x200000000000;
constexpr unsigned kAttempts = 32;

std::string error_of(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

// Returns a file of `bytes` bytes, none of which takes memory yet; -1 if there is a limit below that.
int window_file(const char* name, size_t bytes) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) throw std::runtime_error(error_of("memfd_create"));
  const int moved = moved_up(fd);
  if (::ftruncate(moved, static_cast<off_t>(bytes)) == 0) return moved;
  ::close(moved);
  return -1;
}

void seal(int fd, int seals) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seals) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) != 0)
    throw std::runtime_error(error_of("sealing the memory to share with a host"));
}

std::byte* map_at(uintptr_t address, size_t bytes, int fd, int protection) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const got =
      ::mmap(wanted, bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
  if (got == wanted) return static_cast<std::byte*>(got);
  if (got != MAP_FAILED) {  // kernels before 4.17 take the address as a hint
    ::munmap(got, bytes);
    errno = EEXIST;
  }
  return nullptr;
}

int read_only(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) throw std::runtime_error(error_of("opening the inputs to read"));
  return moved_up(opened);
}

}  // namespace

std::optional<uintptr_t> window_address(unsigned attempt) {
  if (attempt >= kAttempts) return std::nullopt;
  return kFirstAddress + attempt * 2 * kWindowStride;
}

// Returns false if a limit of the process forbids windows of bytes_.
bool Windows::map() {
  inputs_fd_ = window_file("qcts-inputs", bytes_);
  outputs_fd_ = window_file("qcts-outputs", bytes_);
  if (inputs_fd_ < 0 || outputs_fd_ < 0) return false;
  for (unsigned attempt = 0; const std::optional<uintptr_t> address = window_address(attempt); ++attempt) {
    inputs_ = map_at(*address, bytes_, inputs_fd_, PROT_READ | PROT_WRITE);
    if (inputs_ == nullptr) continue;
    outputs_ = map_at(*address + kWindowStride, bytes_, outputs_fd_, PROT_READ | PROT_WRITE);
    if (outputs_ != nullptr) return true;
    ::munmap(inputs_, bytes_);
    inputs_ = nullptr;
  }
  return false;
}

Windows::Windows() {
  for (const int bits : {36, 33, 30}) {
    bytes_ = size_t{1} << bits;
    if (map()) break;
    close_fds();
  }
  if (outputs_ == nullptr) throw std::runtime_error(error_of("memory to share with a host"));
  seal(inputs_fd_, F_SEAL_FUTURE_WRITE);
  seal(outputs_fd_, 0);
  const int reading = read_only(inputs_fd_);
  ::close(inputs_fd_);
  inputs_fd_ = reading;
}

Windows::~Windows() {
  ::munmap(inputs_, bytes_);
  ::munmap(outputs_, bytes_);
  close_fds();
}

void Windows::close_fds() {
  for (int* fd : {&inputs_fd_, &outputs_fd_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

std::string map_windows(uintptr_t address, size_t bytes, const RepeatedChunk& repeated) {
  if (map_at(address, bytes, kInputsFd, PROT_NONE) == nullptr) return error_of("the inputs");
  for (size_t i = 1; i < repeated.count; ++i) {
    void* const place = reinterpret_cast<void*>(address + repeated.offset + i * repeated.bytes);
    if (::mmap(place, repeated.bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, kInputsFd,
               static_cast<off_t>(repeated.offset)) != place)
      return error_of("a chunk of the inputs");
  }
  if (map_at(address + kWindowStride, bytes, kOutputsFd, PROT_NONE) == nullptr)
    return error_of("the outputs");
  ::close(kInputsFd);
  ::close(kOutputsFd);
  return {};
}

}  // namespace qcts
