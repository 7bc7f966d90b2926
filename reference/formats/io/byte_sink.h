// SPDX-License-Identifier: BSD-3-Clause
// The destination of a writer: memory, a comparison, or a file (mapped_file.h).
// Writers pass pieces in order and keep none of them.
// Writers can therefore write a file larger than memory from mapped storages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace qcts {

class ByteSink {
 public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;

  // Consumes the bytes before it returns. A sink that writes to a file throws IoError.
  void write(std::span<const std::byte> bytes) {
    put(bytes);
    written_ += bytes.size();
  }
  uint64_t written() const { return written_; }

 private:
  virtual void put(std::span<const std::byte> bytes) = 0;
  uint64_t written_ = 0;
};

class VectorSink final : public ByteSink {
 public:
  explicit VectorSink(uint64_t expected_bytes = 0) { bytes_.reserve(expected_bytes); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  void put(std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> bytes_;
};

// Stores nothing, and checks whether the bytes so far are a prefix of `expected`.
// If a piece is the same memory as the expected bytes, it is not read.
class CompareSink final : public ByteSink {
 public:
  explicit CompareSink(std::span<const std::byte> expected) : expected_(expected) {}
  bool equal() const { return equal_ && written() == expected_.size(); }

 private:
  void put(std::span<const std::byte> bytes) override {
    if (!equal_ || bytes.empty()) return;
    equal_ = written() <= expected_.size() && bytes.size() <= expected_.size() - written();
    if (!equal_) return;
    const std::byte* there = expected_.data() + written();
    equal_ = there == bytes.data() || std::memcmp(there, bytes.data(), bytes.size()) == 0;
  }
  std::span<const std::byte> expected_;
  bool equal_ = true;
};

}  // namespace qcts
