// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/memory/arena.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <stdexcept>

#include <sys/mman.h>
#include <unistd.h>

namespace qcts {

namespace {

constexpr size_t kPatternPeriod = 128;
using Pattern = std::array<std::byte, 2 * kPatternPeriod>;

// nan: NaN in every float type, so that using it is visible; others: bytes that differ from their neighbours.
constexpr Pattern pattern_of(Poison poison) {
  Pattern pattern{};
  for (size_t i = 0; i < pattern.size(); ++i)
    pattern[i] = poison == Poison::nan
                     ? std::byte{0xff}
                     : static_cast<std::byte>((i * 37 + static_cast<size_t>(poison) * 101) % kPatternPeriod);
  return pattern;
}
constexpr Pattern kPatterns[] = {pattern_of(Poison::nan), pattern_of(Poison::zeros),
                                 pattern_of(Poison::previous)};

size_t whole_pages(size_t bytes) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

// Returns pages of which only `open_bytes`, in the middle, are accessible.
std::span<std::byte> GuardedBuffer::own_pages(size_t all_bytes, size_t open_bytes) {
  void* pages = ::mmap(nullptr, all_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  if (::mprotect(static_cast<std::byte*>(pages) + kForbiddenBytes, open_bytes, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(pages, all_bytes);
    throw std::bad_alloc();
  }
  return {static_cast<std::byte*>(pages), all_bytes};
}

GuardedBuffer::GuardedBuffer(std::string name, size_t rows, size_t row_bytes, size_t stride_bytes,
                             size_t misalign_bytes, HostMemory* memory, HostAccess access, Flush flush)
    : name_(std::move(name)),
      memory_(memory),
      rows_(rows),
      row_bytes_(row_bytes),
      stride_bytes_(stride_bytes) {
  if (stride_bytes < row_bytes) throw std::invalid_argument("GuardedBuffer " + name_ + ": rows overlap");
  bytes_ = rows == 0 ? 0 : (rows - 1) * stride_bytes + row_bytes;
  const bool on_device = memory_ != nullptr && memory_->is_on_device();
  if (on_device && flush != Flush::none && place_in_slot(access, flush)) return;
  if (on_device) flush = Flush::none;
  const size_t alignment = on_device ? 256 : 64,
               red_zone_bytes = on_device ? kDeviceRedZoneBytes : kRedZoneBytes;
  const size_t block_bytes = bytes_ + 2 * red_zone_bytes + 2 * alignment,
               open_bytes = whole_pages(block_bytes);
  const size_t all_bytes = open_bytes + 2 * kForbiddenBytes, slack_bytes = open_bytes - block_bytes;
  mapping_ = memory_ ? memory_->take(name_, access, all_bytes, kForbiddenBytes, open_bytes)
                     : own_pages(all_bytes, open_bytes);
  // Another buffer may have been here.
  if (memory_) std::memset(mapping_.data() + kForbiddenBytes, 0, slack_bytes);
  block_ = mapping_.subspan(kForbiddenBytes + slack_bytes, block_bytes);
  if (flush == Flush::start) block_ = mapping_.subspan(kForbiddenBytes, open_bytes);
  if (flush != Flush::none) {
    touch_edge(flush);
    return;
  }
  const uintptr_t start = reinterpret_cast<uintptr_t>(block_.data()) + red_zone_bytes;
  const uintptr_t aligned = (start + alignment - 1) / alignment * alignment + misalign_bytes % alignment;
  first_ = block_.data() + (aligned - reinterpret_cast<uintptr_t>(block_.data()));
  paint(Poison::nan);
}

void GuardedBuffer::touch_edge(Flush flush) {
  first_ = flush == Flush::start ? block_.data() : block_.data() + (block_.size() - bytes_);
  paint(Poison::nan);
}

bool GuardedBuffer::place_in_slot(HostAccess access, Flush flush) {
  const size_t open_bytes = whole_pages(bytes_ + kDeviceRedZoneBytes);
  const auto taken = memory_->take_slot(name_, access, open_bytes, flush == Flush::end);
  if (!taken) return false;
  mapping_ = taken->all;
  block_ = taken->open;
  touch_edge(flush);
  return true;
}

GuardedBuffer::~GuardedBuffer() {
  if (memory_)
    memory_->give_back(mapping_);
  else
    ::munmap(mapping_.data(), mapping_.size());
}

template <class Visit>
void GuardedBuffer::visit_zones(Visit&& visit) const {
  const size_t begin = static_cast<size_t>(first_ - block_.data());
  visit(0, begin);
  for (size_t r = 0; r + 1 < rows_; ++r)
    visit(begin + r * stride_bytes_ + row_bytes_, begin + (r + 1) * stride_bytes_);
  visit(begin + bytes_, block_.size());
}

std::span<const std::byte> GuardedBuffer::zone_pattern(size_t position) const {
  return std::span(kPatterns[pattern_]).subspan(position % kPatternPeriod);
}

void GuardedBuffer::paint(Poison poison) {
  pattern_ = static_cast<size_t>(poison);
  visit_zones([&](size_t first, size_t last) {
    while (first < last) {
      const auto pattern = zone_pattern(first);
      const size_t count = std::min(pattern.size(), last - first);
      std::memcpy(block_.data() + first, pattern.data(), count);
      first += count;
    }
  });
}

bool GuardedBuffer::notices_write_at_start() {
  if (bytes_ != 0) return false;
  *first_ ^= std::byte{1};
  const bool noticed = violation().has_value();
  *first_ ^= std::byte{1};
  return noticed;
}

void GuardedBuffer::write(std::span<const std::byte> bytes) {
  if (bytes.size() != rows_ * row_bytes_)
    throw std::invalid_argument("GuardedBuffer " + name_ + ": wrong number of bytes");
  if (row_bytes_ == 0) return;
  for (size_t r = 0; r < rows_; ++r)
    std::memcpy(first_ + r * stride_bytes_, bytes.data() + r * row_bytes_, row_bytes_);
}

std::vector<std::byte> GuardedBuffer::read() const {
  std::vector<std::byte> bytes(rows_ * row_bytes_);
  if (row_bytes_ == 0) return bytes;
  for (size_t r = 0; r < rows_; ++r)
    std::memcpy(bytes.data() + r * row_bytes_, first_ + r * stride_bytes_, row_bytes_);
  return bytes;
}

bool GuardedBuffer::holds(std::span<const std::byte> bytes) const {
  if (bytes.size() != rows_ * row_bytes_) return false;
  for (size_t r = 0; r < rows_ && row_bytes_ != 0; ++r)
    if (std::memcmp(first_ + r * stride_bytes_, bytes.data() + r * row_bytes_, row_bytes_) != 0) return false;
  return true;
}

void GuardedBuffer::poison(Poison poison, std::span<const std::byte> answer) {
  if (poison == Poison::previous && answer.size() == rows_ * row_bytes_) {
    write(answer);
  } else {
    const int fill = poison == Poison::nan ? 0xff : poison == Poison::zeros ? 0 : 0xa5;
    for (size_t r = 0; r < rows_; ++r) std::memset(first_ + r * stride_bytes_, fill, row_bytes_);
  }
  paint(poison);
}

std::optional<std::string> GuardedBuffer::violation() const {
  const size_t begin = static_cast<size_t>(first_ - block_.data());
  size_t before = 0, behind = 0, between = 0;
  size_t first_before = 0, first_behind = 0, first_between = 0;
  const auto look = [&](size_t i) {
    if (i < begin) {
      first_before = i;  // the last one found is the closest to the rows
      ++before;
    } else if (i >= begin + bytes_) {
      if (behind++ == 0) first_behind = i - begin - bytes_;
    } else if (between++ == 0) {
      first_between = i - begin;
    }
  };
  visit_zones([&](size_t first, size_t last) {
    while (first < last) {
      const auto pattern = zone_pattern(first);
      const size_t count = std::min(pattern.size(), last - first);
      if (std::memcmp(block_.data() + first, pattern.data(), count) != 0)
        for (size_t i = 0; i < count; ++i)
          if (block_[first + i] != pattern[i]) look(first + i);
      first += count;
    }
  });
  const auto text = [&](size_t count, const std::string& where) {
    return name_ + ": " + std::to_string(count) + (count == 1 ? " byte" : " bytes") + " written " + where;
  };
  if (behind) return text(behind, "after the end, the first at +" + std::to_string(first_behind));
  if (before)
    return text(before, "before the start, the nearest at -" + std::to_string(begin - first_before));
  if (between)
    return text(between, "between two rows, the first at byte " +
                             std::to_string(first_between % stride_bytes_) + " of row " +
                             std::to_string(first_between / stride_bytes_));
  return std::nullopt;
}

}  // namespace qcts
