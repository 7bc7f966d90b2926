// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management: physical memory is a memfd, which goes to another process as its descriptor.
#include <iterator>

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/fakecuda/fake_driver.h"
#include "kernels/fakecuda/state.h"

namespace {

using namespace qcts::fakecuda;

constexpr size_t kGranuleBytes = size_t{2} << 20;

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

uint64_t add_allocation(int fd, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  state().allocations[++state().last_handle] = {fd, bytes};
  return state().last_handle;
}

}  // namespace

bool qcts::fakecuda::is_mapped(uint64_t address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto after = state().mapped.upper_bound(address);
  if (after == state().mapped.begin()) return false;
  const auto& [first, piece] = *std::prev(after);
  return address + bytes <= first + piece.bytes;
}

QCTS_DRIVER cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  *bytes = kGranuleBytes;
  return begin("cuMemGetAllocationGranularity");
}

QCTS_DRIVER cuMemCreate(uint64_t* memory, size_t bytes, const void*, uint64_t) {
  if (const int result = begin("cuMemCreate"); result != kSuccess) return result;
  if (bytes == 0 || bytes % kGranuleBytes != 0) return kInvalidValue;
  const int fd = ::memfd_create("fake device memory", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  *memory = add_allocation(fd, bytes);
  return kSuccess;
}

QCTS_DRIVER cuMemRelease(uint64_t memory) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().allocations.find(memory);
  if (found == state().allocations.end()) return kInvalidValue;
  ::close(found->second.fd);
  state().allocations.erase(found);
  return kSuccess;
}

QCTS_DRIVER cuMemExportToShareableHandle(void* handle, uint64_t memory, int, uint64_t) {
  if (const int result = begin("cuMemExportToShareableHandle"); result != kSuccess) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().allocations.find(memory);
  if (found == state().allocations.end()) return kInvalidValue;
  *static_cast<int*>(handle) = ::dup(found->second.fd);
  return kSuccess;
}

QCTS_DRIVER cuMemImportFromShareableHandle(uint64_t* memory, void* handle, int) {
  if (const int result = begin("cuMemImportFromShareableHandle"); result != kSuccess) return result;
  const int fd = ::dup(static_cast<int>(reinterpret_cast<intptr_t>(handle)));
  const off_t bytes = fd < 0 ? -1 : ::lseek(fd, 0, SEEK_END);
  if (bytes < 0) return kInvalidValue;
  *memory = add_allocation(fd, static_cast<size_t>(bytes));
  return kSuccess;
}

// Reserves the device addresses, where nothing will be, and the memory above them.
QCTS_DRIVER cuMemAddressReserve(uint64_t* address, size_t bytes, size_t, uint64_t, uint64_t) {
  if (const int result = begin("cuMemAddressReserve"); result != kSuccess) return result;
  const std::lock_guard lock(state().mutex);
  uint64_t first = qcts::kFakeFirst;
  for (const auto& [taken, taken_bytes] : state().reserved) first = taken + taken_bytes + kGranuleBytes;
  if (first + bytes > qcts::kFakeEnd) return kOutOfMemory;
  for (const uint64_t at : {first, first + qcts::kFakeOffset})
    if (::mmap(pointer(at), bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != pointer(at))
      return kOutOfMemory;
  state().reserved[first] = bytes;
  *address = first;
  return kSuccess;
}

QCTS_DRIVER cuMemAddressFree(uint64_t address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (state().reserved.erase(address) == 0) return kInvalidValue;
  for (const uint64_t at : {address, address + qcts::kFakeOffset}) ::munmap(pointer(at), bytes);
  return kSuccess;
}

QCTS_DRIVER cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t memory, uint64_t) {
  if (const int result = begin("cuMemMap"); result != kSuccess) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().allocations.find(memory);
  if (found == state().allocations.end() || offset + bytes > found->second.bytes) return kInvalidValue;
  state().mapped[address] = {memory, offset, bytes};
  return kSuccess;
}

QCTS_DRIVER cuMemUnmap(uint64_t address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (state().mapped.erase(address) == 0) return kInvalidValue;
  ::mmap(pointer(address + qcts::kFakeOffset), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return kSuccess;
}

QCTS_DRIVER cuMemSetAccess(uint64_t address, size_t bytes, const void*, size_t) {
  if (const int result = begin("cuMemSetAccess"); result != kSuccess) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().mapped.find(address);
  if (found == state().mapped.end()) return kInvalidValue;
  const auto& [memory, offset, all_bytes] = found->second;
  if (bytes > all_bytes) return kInvalidValue;
  void* const place = pointer(address + qcts::kFakeOffset);
  return ::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, state().allocations[memory].fd,
                static_cast<off_t>(offset)) == place
             ? int{kSuccess}
             : int{kOutOfMemory};
}

// Memory of only this process. It stays until the process ends.
QCTS_DRIVER cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (const int result = begin("cuMemAlloc_v2"); result != kSuccess) return result;
  if (const int result = refuse_in_capture(); result != kSuccess) return result;
  const size_t rounded = (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  uint64_t memory = 0;
  int result = cuMemCreate(&memory, rounded, nullptr, 0);
  if (result == kSuccess) result = cuMemAddressReserve(address, rounded, 0, 0, 0);
  if (result == kSuccess) result = cuMemMap(*address, rounded, 0, memory, 0);
  return result == kSuccess ? cuMemSetAccess(*address, rounded, nullptr, 0) : result;
}
