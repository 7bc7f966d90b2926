// SPDX-License-Identifier: BSD-3-Clause
// The memory that a judge and a host share: one window of inputs and one of outputs.
// Both processes map a window at the same address, so that pointers in it mean the same in both.
// The host can read the inputs and cannot make them writable: its descriptor is read-only, and the memory is
// sealed against further writable mappings and against write().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace qcts {

inline constexpr size_t kWindowStride = size_t{1} << 37;  // bytes from one window to the next

// Returns the address of the first window of attempt `i`: the windows of inputs and outputs follow each
// other. These addresses are free under ASan and valgrind too. Returns nullopt if there are no more.
std::optional<uintptr_t> window_address(unsigned attempt);

// A part of the inputs that the host sees `count` times in a row, from its own place on. Its size is a
// multiple of a page.
struct RepeatedChunk {
  size_t offset = 0, bytes = 0, count = 0;
};

// Descriptors of the windows in the host, as it is started.
inline constexpr int kInputsFd = 4, kOutputsFd = 5;
// Descriptors on which the second lane of a host reads requests and answers them (message.h).
inline constexpr int kSecondRequestFd = 6, kSecondAnswerFd = 7;

// The judge's side.
class Windows {
 public:
  // Maps both windows at the first addresses that are free: as much address space as the process's limits
  // allow, of 64, 8 and 1 GiB each. Pages exist once they are touched. Throws std::runtime_error.
  Windows();
  ~Windows();
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  std::byte* inputs() const { return inputs_; }
  std::byte* outputs() const { return outputs_; }
  size_t bytes() const { return bytes_; }  // of each window
  // Descriptors for the host; that of the inputs is read-only.
  int inputs_fd() const { return inputs_fd_; }
  int outputs_fd() const { return outputs_fd_; }
  void close_fds();  // once the host has them

 private:
  bool map();

  size_t bytes_ = 0;
  std::byte *inputs_ = nullptr, *outputs_ = nullptr;
  int inputs_fd_ = -1, outputs_fd_ = -1;
};

// The host's side: maps the descriptors without access at the address, and closes them.
// Returns "" or the reason why it cannot.
std::string map_windows(uintptr_t address, size_t bytes, const RepeatedChunk& repeated = {});

}  // namespace qcts
