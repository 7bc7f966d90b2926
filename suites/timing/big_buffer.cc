// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/big_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace qcts {
namespace {

constexpr size_t kHugePageBytes = size_t{1} << 21, kPageBytes = size_t{1} << 12;

size_t whole_pages(size_t bytes, size_t page_bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

std::span<std::byte> map_shared(size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(data), bytes};
}

// In a window, the pages may hold earlier data. Returns false if the kernel cannot do it (Linux 5.14 can).
bool touch_at_once(std::span<std::byte> pages) {
#ifdef MADV_POPULATE_WRITE
  return ::madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE) == 0;
#else
  static_cast<void>(pages);
  return false;
#endif
}

}  // namespace

BigBuffer::BigBuffer(size_t bytes) : BigBuffer(bytes, "", HostAccess::reads, nullptr) {}

BigBuffer::BigBuffer(size_t bytes, std::string name, HostAccess access, HostMemory* memory)
    : memory_(memory), bytes_(bytes) {
  const size_t rounded =
      whole_pages(std::max<size_t>(bytes, 1), bytes < kHugePageBytes ? kPageBytes : kHugePageBytes);
  data_ = memory ? memory->take(std::move(name), access, rounded, 0, rounded, true) : map_shared(rounded);
  if (memory && memory->is_on_device()) return;     // the window's pages stay untouched
  ::madvise(data_.data(), rounded, MADV_HUGEPAGE);  // where shared memory may have huge pages
  if (!touch_at_once(data_) && !memory) std::memset(data_.data(), 0, rounded);
}

BigBuffer& BigBuffer::operator=(BigBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

BigBuffer::~BigBuffer() {
  if (data_.empty()) return;
  if (memory_)
    memory_->give_back(data_);
  else
    ::munmap(data_.data(), data_.size());
}

}  // namespace qcts
