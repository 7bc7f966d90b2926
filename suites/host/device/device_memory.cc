// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/device/device_memory.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

#include "suites/base/process.h"

namespace qcts {
namespace {

CuLocation location_of(const Device& device) { return {kCuOnDevice, device.ordinal()}; }

CuMemoryProperties properties_of(const Device& device) {
  return {kCuPinned, kCuFileDescriptor, location_of(device), nullptr, {}};
}

CuMemory allocate_piece(const Device& device, size_t bytes, int& exported_fd) {
  const CudaDriver& driver = device.driver();
  const CuMemoryProperties properties = properties_of(device);
  CuMemory memory = 0;
  check_cuda(driver, driver.cuMemCreate(&memory, bytes, &properties, 0), "cuMemCreate");
  int fd = -1;
  const CuResult result = driver.cuMemExportToShareableHandle(&fd, memory, kCuFileDescriptor, 0);
  if (result != 0) driver.cuMemRelease(memory);
  check_cuda(driver, result, "cuMemExportToShareableHandle");
  exported_fd = moved_up(fd);
  return memory;
}

DeviceMapping import(const Device& device, const DeviceLayout& layout, int first_fd) {
  const CudaDriver& driver = device.driver();
  std::vector<CuMemory> memory;
  for (size_t i = 0; i < layout.pieces().size(); ++i) {
    const int fd = first_fd + static_cast<int>(i);
    check_cuda(
        driver,
        driver.cuMemImportFromShareableHandle(
            &memory.emplace_back(), reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kCuFileDescriptor),
        "cuMemImportFromShareableHandle");
    ::close(fd);
  }
  return {device, layout, std::move(memory)};
}

}  // namespace

std::vector<DeviceLayout::Piece> DeviceLayout::pieces() const {
  if (!has_guards) return {{0, bytes}};
  std::vector<Piece> all = {{0, granule_bytes}};
  for (size_t slot = 0; slot < kSlots; ++slot) all.push_back({slot_offset(slot), granule_bytes});
  all.push_back({rest_offset(), bytes - rest_offset()});
  return all;
}

size_t DeviceLayout::slot_offset(size_t slot) const { return kGuardsOffset + (2 * slot + 1) * granule_bytes; }

size_t DeviceLayout::rest_offset() const { return has_guards ? slot_offset(kSlots) : kGuardsOffset; }

DeviceLayout device_layout(const Device& device, bool has_guards) {
  const CuMemoryProperties properties = properties_of(device);
  DeviceLayout layout{0, 0, has_guards};
  check_cuda(device.driver(),
             device.driver().cuMemGetAllocationGranularity(&layout.granule_bytes, &properties, 0),
             "cuMemGetAllocationGranularity");
  const size_t wanted = std::min<size_t>(kDeviceWindowBytes, device.properties().memory_bytes / 16);
  layout.bytes = (wanted + layout.granule_bytes - 1) / layout.granule_bytes * layout.granule_bytes;
  if (has_guards && (kGuardsOffset % layout.granule_bytes != 0 || layout.rest_offset() >= layout.bytes))
    throw CudaError("its memory is too small, or has granules of " + std::to_string(layout.granule_bytes) +
                    " bytes");
  return layout;
}

DeviceMapping::DeviceMapping(const Device& device, const DeviceLayout& layout, std::vector<CuMemory> memory)
    : device_(&device), pieces_(layout.pieces()), memory_(std::move(memory)), bytes_(layout.bytes) {
  const CudaDriver& driver = device.driver();
  const CuAccess access{location_of(device), kCuReadWrite};
  try {
    check_cuda(driver, driver.cuMemAddressReserve(&address_, bytes_, 0, 0, 0), "cuMemAddressReserve");
    for (const auto& [offset, bytes] : pieces_) {
      check_cuda(driver, driver.cuMemMap(address_ + offset, bytes, 0, memory_[mapped_], 0), "cuMemMap");
      ++mapped_;
      check_cuda(driver, driver.cuMemSetAccess(address_ + offset, bytes, &access, 1), "cuMemSetAccess");
    }
  } catch (...) {
    release();
    throw;
  }
}

void DeviceMapping::release() noexcept {
  const CudaDriver& driver = device_->driver();
  for (size_t i = 0; i < mapped_; ++i) driver.cuMemUnmap(address_ + pieces_[i].offset, pieces_[i].bytes);
  if (address_ != 0) driver.cuMemAddressFree(address_, bytes_);
  for (const CuMemory memory : memory_) driver.cuMemRelease(memory);
}

DeviceMapping::~DeviceMapping() {
  if (device_ != nullptr) release();
}

DeviceMapping::DeviceMapping(DeviceMapping&& other) noexcept { *this = std::move(other); }

DeviceMapping& DeviceMapping::operator=(DeviceMapping&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pieces_, other.pieces_);
  std::swap(memory_, other.memory_);
  std::swap(mapped_, other.mapped_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::DeviceMemory(const Device& device, const std::byte* inputs, const std::byte* outputs)
    : device_(device), inputs_first_(inputs), outputs_first_(outputs), stream_(device) {
  if (!device.properties().exports_memory)
    throw CudaError(device.properties().name + " does not share its memory with another process");
  try {
    allocate(true);
    probe_guards();
  } catch (const CudaError& error) {
    no_guards_ = error.what();
    close_fds();
    allocate(false);
  }
}

void DeviceMemory::allocate(bool has_guards) {
  inputs_ = DeviceMapping();
  outputs_ = DeviceMapping();
  layout_ = device_layout(device_, has_guards);
  for (DeviceMapping* mapping : {&inputs_, &outputs_}) {
    std::vector<CuMemory> memory;
    for (const DeviceLayout::Piece& piece : layout_.pieces())
      memory.push_back(allocate_piece(device_, piece.bytes, fds_.emplace_back(-1)));
    *mapping = DeviceMapping(device_, layout_, std::move(memory));
  }
}

// Touches no byte next to a slot: a driver that does not refuse that at once would lose the context.
void DeviceMemory::probe_guards() const {
  const CudaDriver& driver = device_.driver();
  for (const DeviceMapping* mapping : {&inputs_, &outputs_})
    for (size_t slot = 0; slot < DeviceLayout::kSlots; ++slot) {
      const CuAddress first = mapping->address() + layout_.slot_offset(slot);
      check_cuda(driver, driver.cuMemsetD8Async(first, 0, layout_.granule_bytes, stream_.get()),
                 "a slot that ends where nothing is mapped");
    }
  wait();
}

void DeviceMemory::close_fds() {
  for (const int fd : fds_)
    if (fd >= 0) ::close(fd);
  fds_.clear();
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

ImportedMemory::ImportedMemory(const Device& device, uintptr_t inputs, uintptr_t outputs, bool has_guards)
    : inputs_first_(inputs), outputs_first_(outputs) {
  const DeviceLayout layout = device_layout(device, has_guards);
  inputs_ = import(device, layout, kFirstDeviceFd);
  outputs_ = import(device, layout, kFirstDeviceFd + static_cast<int>(layout.pieces().size()));
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
