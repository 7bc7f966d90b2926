// SPDX-License-Identifier: BSD-3-Clause
// Caller-owned buffers for one kernel call. Each buffer has no more alignment than its element type needs.
// A buffer is filled before the call, checked afterwards, and surrounded by red zones.
// Inaccessible pages follow the red zones: in this process, or in the host that computes.
// An access beyond the red zones therefore ends that process in this case and damages nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "suites/providers/memory/host_memory.h"

namespace qcts {

// The contents of an output before a call. An answer that depends on them was not written by the call.
enum class Poison : uint8_t {
  nan,  // every byte is 0xff: NaN in every float type, -1 in the integers
  zeros,
  previous,  // an earlier answer, or its bitwise inverse if there is none
};

// The end of a buffer's data that touches inaccessible pages, without a red zone between.
enum class Flush : uint8_t { none, start, end };

// A buffer of `rows` runs of `row_bytes` bytes, `stride_bytes` apart; one row for contiguous data.
// Red zones are before the first row, after the last one, and in the gaps between rows.
class GuardedBuffer {
 public:
  static constexpr size_t kRedZoneBytes = 256, kDeviceRedZoneBytes = 4096;
  static constexpr size_t kForbiddenBytes = size_t{1} << 20;  // inaccessible bytes on either side

  // Places the first byte at `misalign_bytes` modulo 64, on a device modulo 256, or where `flush` puts it. On
  // a device, `flush` needs a slot (HostMemory::take_slot): without one, the first byte is placed as without
  // it. Requires stride_bytes >= row_bytes. The buffer is in `memory`, which must outlive it, or only in this
  // process if `memory` is nullptr.
  GuardedBuffer(std::string name, size_t rows, size_t row_bytes, size_t stride_bytes, size_t misalign_bytes,
                HostMemory* memory = nullptr, HostAccess access = HostAccess::reads,
                Flush flush = Flush::none);
  GuardedBuffer(std::string name, size_t bytes, size_t misalign_bytes)
      : GuardedBuffer(std::move(name), 1, bytes, bytes, misalign_bytes) {}
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  // Returns nullptr if the buffer is empty, so that an unchecked read crashes.
  std::byte* data() { return bytes_ == 0 ? nullptr : first_; }
  // Returns the address of the first row, or of painted bytes if the buffer is empty.
  std::byte* start() { return first_; }
  // True if the buffer is empty and violation() would report a byte written at start().
  bool notices_write_at_start();
  const std::string& name() const { return name_; }
  size_t stride_bytes() const { return stride_bytes_; }

  // Copy the rows without the gaps.
  void write(std::span<const std::byte> bytes);
  std::vector<std::byte> read() const;
  // Returns true if read() == bytes.
  bool holds(std::span<const std::byte> bytes) const;

  // Fills the rows and paints the red zones.
  // For Poison::previous, the rows get `answer`, or 0xa5 if its length differs.
  // The pattern of the red zones depends on the poison.
  // Values that are read from outside the rows therefore change between runs.
  void poison(Poison poison, std::span<const std::byte> answer = {});
  // Paints only the red zones.
  void paint(Poison poison);

  // Describes the bytes outside the rows that have changed. Returns nullopt if there are none.
  // An example is "y: 1 byte written after the end, the first at +0".
  std::optional<std::string> violation() const;

 private:
  // Returns one period of paint()'s pattern, starting at `position`.
  std::span<const std::byte> zone_pattern(size_t position) const;
  template <class Visit>
  void visit_zones(
      Visit&& visit) const;  // calls visit(first, last) for each range of block_ outside the rows

  std::span<std::byte> own_pages(size_t all_bytes, size_t open_bytes);
  void touch_edge(Flush flush);
  bool place_in_slot(HostAccess access, Flush flush);  // returns false if there is no slot for it

  std::string name_;
  HostMemory* memory_;
  size_t rows_, row_bytes_, stride_bytes_, bytes_;
  std::span<std::byte> mapping_;  // whole pages, including the inaccessible ones
  std::span<std::byte> block_;    // red zones and rows; ends at an inaccessible page
  std::byte* first_ = nullptr;
  size_t pattern_ = 0;  // the current Poison of the red zones
};

}  // namespace qcts
