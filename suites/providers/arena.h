// SPDX-License-Identifier: BSD-3-Clause
// Caller-owned buffers for one kernel call: each between red zones, at an alignment that is no better than
// its element type needs, filled before the call and checked after it. Behind the red zones lie pages without
// access: what a kernel writes or reads beyond them ends its worker in this case and spoils nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace qcts {

// What an output holds before a call. An answer that depends on it was not written by the call.
enum class Poison : uint8_t {
  nan,  // every byte 0xff: NaN in every float type, -1 in the integers
  zeros,
  previous,  // the answer of an earlier call, bit-inverted where it is unknown
};

// `rows` runs of `row_bytes` bytes, `stride_bytes` apart. One row where nothing is strided. The red zones lie
// before the first row, behind the last one, and in the gaps between rows.
class GuardedBuffer {
 public:
  static constexpr size_t kRedZoneBytes = 256;
  static constexpr size_t kForbiddenBytes = size_t{1} << 20;  // without access, on either side

  // The first byte lies at `misalign_bytes` modulo 64. stride_bytes >= row_bytes.
  GuardedBuffer(std::string name, size_t rows, size_t row_bytes, size_t stride_bytes, size_t misalign_bytes);
  GuardedBuffer(std::string name, size_t bytes, size_t misalign_bytes)
      : GuardedBuffer(std::move(name), 1, bytes, bytes, misalign_bytes) {}
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  // nullptr when there is no element, so that an unchecked read shows.
  std::byte* data() { return bytes_ == 0 ? nullptr : first_; }
  const std::string& name() const { return name_; }
  size_t stride_bytes() const { return stride_bytes_; }

  // Rows one after another, without the gaps.
  void write(std::span<const std::byte> bytes);
  std::vector<std::byte> read() const;
  // read() == bytes
  bool holds(std::span<const std::byte> bytes) const;

  // Fills the rows (previous: with `answer`, or with 0xa5 where that has another length), and paints the red
  // zones with a pattern of their own per poison, so that a value read from beyond the ends changes between
  // the runs.
  void poison(Poison poison, std::span<const std::byte> answer = {});
  // Paints the red zones and leaves the rows.
  void paint(Poison poison);

  // A byte outside the rows that is no longer as painted: "y: 1 byte written behind the end, the first at
  // +0".
  std::optional<std::string> violation() const;

 private:
  // What paint() put at `position` and behind it, as far as the result reaches.
  std::span<const std::byte> zone_pattern(size_t position) const;
  template <class Visit>
  void visit_zones(Visit&& visit) const;  // visit(first, last) of positions in block_ outside the rows

  std::string name_;
  size_t rows_, row_bytes_, stride_bytes_, bytes_;
  std::span<std::byte> mapping_;  // whole pages, the forbidden ones included
  std::span<std::byte> block_;    // red zones and rows; ends at a forbidden page
  std::byte* first_ = nullptr;
  size_t pattern_ = 0;  // the Poison with which the zones are painted
};

}  // namespace qcts
