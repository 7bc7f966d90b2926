// SPDX-License-Identifier: BSD-3-Clause
// Limits the memory and time of reading one file, so that a few bytes cannot demand much of either.
// Memory is 64 MiB plus grants: granted_bytes() of a safetensors header, or 64 bytes per pickle opcode.
// 3 MiB of this memory are reserved for allocations that are not charged.
// Time is counted in steps. A step is a second look at a value (20 to 60 ns).
// A file may take 10 million steps plus one per four bytes.
// Costs are charged before they are spent, or just after a step that spends little.
#pragma once

#include <algorithm>
#include <cstdint>

namespace qcts {

class ReadBudget {
 public:
  ReadBudget() : ReadBudget(0) {}
  explicit ReadBudget(uint64_t granted_bytes, uint64_t file_bytes = 0)
      : max_bytes_(kFreeBytes + granted_bytes), max_steps_(kFreeSteps + file_bytes / 4) {}

  // Returns an empty budget that others can join.
  static ReadBudget none() {
    ReadBudget budget;
    budget.max_bytes_ = budget.max_steps_ = 0;
    return budget;
  }

  // These functions charge the budget, and throw Refused (LimitExceeded) if it is spent.
  void take_bytes(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > max_bytes_) refuse_bytes();
  }
  void take_steps(uint64_t steps) {
    steps_ += steps;
    if (steps_ > max_steps_) refuse_steps();
  }
  void grant_bytes(uint64_t bytes) { max_bytes_ += bytes; }
  void give_back_bytes(uint64_t bytes) { bytes_ -= std::min(bytes_, bytes); }

  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_left() const { return max_bytes_ - std::min(bytes_, max_bytes_); }
  bool is_spent() const { return bytes_ > max_bytes_ || steps_ > max_steps_; }
  // Adds the budget of another file that is read together with this one.
  void join(const ReadBudget& other) {
    max_bytes_ += other.max_bytes_;
    max_steps_ += other.max_steps_;
    bytes_ += other.bytes_;
    steps_ += other.steps_;
  }

 private:
  static constexpr uint64_t kFreeBytes = 61u << 20, kFreeSteps = 10'000'000;

  [[noreturn]] void refuse_bytes() const;
  [[noreturn]] void refuse_steps() const;

  uint64_t max_bytes_, max_steps_;
  uint64_t bytes_ = 0, steps_ = 0;
};

// Returns the number of bytes that malloc takes for a block.
constexpr uint64_t block_bytes(uint64_t bytes) {
  return bytes == 0 ? 0 : std::max<uint64_t>(24, (bytes + 23) / 16 * 16 - 8);
}
// Returns the heap bytes of a std::string, which are 0 for up to 15 characters.
constexpr uint64_t text_block_bytes(uint64_t length) { return length > 15 ? block_bytes(length + 1) : 0; }

}  // namespace qcts
