// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace qcts {

// Computes the CRC-32 of zip archives, as zlib's crc32(0, ...) does.
// The reflected polynomial is 0xEDB88320. The initial value and the final XOR are all ones.
uint32_t crc32_of(std::span<const std::byte> bytes);

// Computes the CRC-32 of several records in order, on a helper thread, while the caller writes them.
class Crc32Ahead {
 public:
  // The bytes must outlive this object.
  explicit Crc32Ahead(std::vector<std::span<const std::byte>> records);
  Crc32Ahead(const Crc32Ahead&) = delete;
  Crc32Ahead& operator=(const Crc32Ahead&) = delete;

  // Returns the CRC of records[index], and waits until it is known.
  uint32_t of(size_t index);

 private:
  static constexpr uint64_t kPending = ~uint64_t{0};

  std::vector<std::span<const std::byte>> records_;
  std::vector<std::atomic<uint64_t>> crcs_;
  std::jthread helper_;  // not started for small inputs; declared last, so that it is joined first
};

}  // namespace qcts
