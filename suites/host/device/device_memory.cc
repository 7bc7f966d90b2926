// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/device/device_memory.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "suites/base/process.h"

namespace qcts {
namespace {

CuLocation location_of(const Device& device) { return {kCuOnDevice, device.ordinal()}; }

CuMemoryProperties properties_of(const Device& device) {
  return {kCuPinned, kCuFileDescriptor, location_of(device), nullptr, {}};
}

size_t device_window_bytes(const Device& device) {
  const CuMemoryProperties properties = properties_of(device);
  size_t granule = 0;
  check_cuda(device.driver(), device.driver().cuMemGetAllocationGranularity(&granule, &properties, 0),
             "cuMemGetAllocationGranularity");
  const size_t wanted = std::min<size_t>(kDeviceWindowBytes, device.properties().memory_bytes / 16);
  return (wanted + granule - 1) / granule * granule;
}

DeviceMapping allocate(const Device& device, size_t bytes, int& exported_fd) {
  const CudaDriver& driver = device.driver();
  const CuMemoryProperties properties = properties_of(device);
  CuMemory memory = 0;
  check_cuda(driver, driver.cuMemCreate(&memory, bytes, &properties, 0), "cuMemCreate");
  DeviceMapping mapping(device, memory, bytes);
  int fd = -1;
  check_cuda(driver, driver.cuMemExportToShareableHandle(&fd, memory, kCuFileDescriptor, 0),
             "cuMemExportToShareableHandle");
  exported_fd = moved_up(fd);
  return mapping;
}

DeviceMapping import(const Device& device, int fd, size_t bytes) {
  const CudaDriver& driver = device.driver();
  CuMemory memory = 0;
  check_cuda(driver,
             driver.cuMemImportFromShareableHandle(
                 &memory, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kCuFileDescriptor),
             "cuMemImportFromShareableHandle");
  ::close(fd);
  return {device, memory, bytes};
}

}  // namespace

DeviceMapping::DeviceMapping(const Device& device, CuMemory memory, size_t bytes)
    : device_(&device), memory_(memory), bytes_(bytes) {
  const CudaDriver& driver = device.driver();
  const CuAccess access{location_of(device), kCuReadWrite};
  check_cuda(driver, driver.cuMemAddressReserve(&address_, bytes, 0, 0, 0), "cuMemAddressReserve");
  check_cuda(driver, driver.cuMemMap(address_, bytes, 0, memory, 0), "cuMemMap");
  check_cuda(driver, driver.cuMemSetAccess(address_, bytes, &access, 1), "cuMemSetAccess");
}

DeviceMapping::~DeviceMapping() {
  if (device_ == nullptr || address_ == 0) return;
  const CudaDriver& driver = device_->driver();
  driver.cuMemUnmap(address_, bytes_);
  driver.cuMemAddressFree(address_, bytes_);
  driver.cuMemRelease(memory_);
}

DeviceMapping::DeviceMapping(DeviceMapping&& other) noexcept { *this = std::move(other); }

DeviceMapping& DeviceMapping::operator=(DeviceMapping&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(memory_, other.memory_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::DeviceMemory(const Device& device, const std::byte* inputs, const std::byte* outputs)
    : device_(device), inputs_first_(inputs), outputs_first_(outputs), stream_(device) {
  if (!device.properties().exports_memory)
    throw CudaError(device.properties().name + " does not share its memory with another process");
  const size_t bytes = device_window_bytes(device);
  inputs_ = allocate(device, bytes, inputs_fd_);
  outputs_ = allocate(device, bytes, outputs_fd_);
}

void DeviceMemory::close_fds() {
  for (int* fd : {&inputs_fd_, &outputs_fd_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

CuAddress DeviceMemory::place_of(const std::byte* of_window) const {
  for (const auto& [first, mapping] : {std::pair{inputs_first_, &inputs_}, {outputs_first_, &outputs_}})
    if (of_window >= first && of_window < first + mapping->bytes())
      return mapping->address() + static_cast<size_t>(of_window - first);
  throw std::logic_error("a buffer that is not in device memory");
}

void DeviceMemory::copy_to_device(const std::byte* of_window, std::span<const std::byte> bytes) const {
  device_.make_current();
  const CudaDriver& driver = device_.driver();
  check_cuda(driver,
             driver.cuMemcpyHtoDAsync_v2(place_of(of_window), bytes.data(), bytes.size(), stream_.get()),
             "cuMemcpyHtoDAsync");
}

void DeviceMemory::copy_from_device(std::span<std::byte> to, const std::byte* of_window) const {
  device_.make_current();
  const CudaDriver& driver = device_.driver();
  check_cuda(driver, driver.cuMemcpyDtoHAsync_v2(to.data(), place_of(of_window), to.size(), stream_.get()),
             "cuMemcpyDtoHAsync");
}

void DeviceMemory::copy_within(const std::byte* to, const std::byte* from, size_t bytes) const {
  device_.make_current();
  const CudaDriver& driver = device_.driver();
  check_cuda(driver, driver.cuMemcpyDtoDAsync_v2(place_of(to), place_of(from), bytes, stream_.get()),
             "cuMemcpyDtoDAsync");
}

void DeviceMemory::fill(const std::byte* of_window, size_t bytes, std::byte value) const {
  device_.make_current();
  const CudaDriver& driver = device_.driver();
  check_cuda(driver,
             driver.cuMemsetD8Async(place_of(of_window), std::to_integer<unsigned char>(value), bytes,
                                    stream_.get()),
             "cuMemsetD8Async");
}

void DeviceMemory::set_gate(size_t lane, bool is_open) const {
  device_.make_current();
  const uint32_t word = is_open ? 1 : 0;
  const CudaDriver& driver = device_.driver();
  check_cuda(
      driver,
      driver.cuMemcpyHtoDAsync_v2(inputs_.address() + lane * kGateBytes, &word, sizeof word, stream_.get()),
      "cuMemcpyHtoDAsync");
  wait();
}

ImportedMemory::ImportedMemory(const Device& device, uintptr_t inputs, uintptr_t outputs)
    : inputs_first_(inputs), outputs_first_(outputs) {
  const size_t bytes = device_window_bytes(device);
  inputs_ = import(device, kDeviceInputsFd, bytes);
  outputs_ = import(device, kDeviceOutputsFd, bytes);
}

void* ImportedMemory::place_of(const void* of_window) const {
  if (of_window == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(of_window);
  for (const auto& [first, mapping] : {std::pair{inputs_first_, &inputs_}, {outputs_first_, &outputs_}})
    if (address >= first && address - first < mapping->bytes())
      return reinterpret_cast<void*>(mapping->address() + (address - first));
  throw std::logic_error("a buffer that is not in device memory");
}

}  // namespace qcts
