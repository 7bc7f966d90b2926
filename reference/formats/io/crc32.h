// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace qcts {

// CRC-32 of zip archives (reflected polynomial 0xEDB88320, initial value and final XOR all ones): zlib's
// crc32(0, ...).
uint32_t crc32_of(std::span<const std::byte> bytes);

// The same of several, in order, by another thread while the caller writes them.
class Crc32Ahead {
 public:
  // The bytes outlive it.
  explicit Crc32Ahead(std::vector<std::span<const std::byte>> records);
  Crc32Ahead(const Crc32Ahead&) = delete;
  Crc32Ahead& operator=(const Crc32Ahead&) = delete;

  // Of records[index]; waits for it.
  uint32_t of(size_t index);

 private:
  static constexpr uint64_t kPending = ~uint64_t{0};

  std::vector<std::span<const std::byte>> records_;
  std::vector<std::atomic<uint64_t>> crcs_;
  std::jthread helper_;  // none where there is too little to do; the last member, so that it ends first
};

}  // namespace qcts
