// SPDX-License-Identifier: BSD-3-Clause
// What reading one file may cost, by the reader's own account, so that a few bytes cannot ask for much.
// Memory: 64 MiB, and what is granted beside (for a safetensors header granted_bytes(), for a pickle 64 bytes
// an opcode); 3 MiB of it stay for what is not charged. Steps, looks at a value that was read before (20 to
// 60 ns each): 10 million, and one for four bytes of the file. Charged before it is spent, or right behind
// where one step spends little.
#pragma once

#include <algorithm>
#include <cstdint>

namespace qcts {

class ReadBudget {
 public:
  ReadBudget() : ReadBudget(0) {}
  explicit ReadBudget(uint64_t granted_bytes, uint64_t file_bytes = 0)
      : most_bytes_(kFreeBytes + granted_bytes), most_steps_(kFreeSteps + file_bytes / 4) {}

  // Of no file: to join others to.
  static ReadBudget none() {
    ReadBudget budget;
    budget.most_bytes_ = budget.most_steps_ = 0;
    return budget;
  }

  // Refuse LimitExceeded.
  void take_bytes(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > most_bytes_) refuse_bytes();
  }
  void take_steps(uint64_t steps) {
    steps_ += steps;
    if (steps_ > most_steps_) refuse_steps();
  }
  void grant_bytes(uint64_t bytes) { most_bytes_ += bytes; }
  void give_back_bytes(uint64_t bytes) { bytes_ -= std::min(bytes_, bytes); }

  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_left() const { return most_bytes_ - std::min(bytes_, most_bytes_); }
  bool is_spent() const { return bytes_ > most_bytes_ || steps_ > most_steps_; }
  // Of several files read together.
  void join(const ReadBudget& other) {
    most_bytes_ += other.most_bytes_;
    most_steps_ += other.most_steps_;
    bytes_ += other.bytes_;
    steps_ += other.steps_;
  }

 private:
  static constexpr uint64_t kFreeBytes = 61u << 20, kFreeSteps = 10'000'000;

  [[noreturn]] void refuse_bytes() const;
  [[noreturn]] void refuse_steps() const;

  uint64_t most_bytes_, most_steps_;
  uint64_t bytes_ = 0, steps_ = 0;
};

// What malloc takes for a block.
constexpr uint64_t block_bytes(uint64_t bytes) {
  return bytes == 0 ? 0 : std::max<uint64_t>(24, (bytes + 23) / 16 * 16 - 8);
}
// What a std::string keeps outside itself: nothing up to 15 characters.
constexpr uint64_t text_block_bytes(uint64_t length) { return length > 15 ? block_bytes(length + 1) : 0; }

}  // namespace qcts
