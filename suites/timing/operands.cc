// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/operands.h"

#include <cstring>

#include "kernels/machine/stream.h"

namespace qcts {
namespace {

class OperandsHere final : public Operands {
 public:
  void write(std::byte* to, std::span<const std::byte> bytes) override {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }
  void fill(std::byte* to, size_t bytes, std::byte value) override {
    if (bytes != 0) std::memset(to, std::to_integer<int>(value), bytes);
  }
  void read(const std::byte* from, std::span<std::byte> to) const override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  size_t alignment() const override { return kLineBytes; }
};

class OperandsOnDevice final : public Operands {
 public:
  explicit OperandsOnDevice(const DeviceMemory& memory) : memory_(memory) {}
  void write(std::byte* to, std::span<const std::byte> bytes) override {
    if (!bytes.empty()) memory_.copy_to_device(to, bytes);
  }
  void fill(std::byte* to, size_t bytes, std::byte value) override {
    if (bytes != 0) memory_.fill(to, bytes, value);
  }
  void read(const std::byte* from, std::span<std::byte> to) const override {
    if (to.empty()) return;
    memory_.copy_from_device(to, from);
    memory_.wait();
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes != 0) memory_.copy_within(to, from, bytes);
  }
  void finish() const override { memory_.wait(); }
  size_t alignment() const override { return 256; }

 private:
  const DeviceMemory& memory_;
};

}  // namespace

std::unique_ptr<Operands> operands_in(const DeviceMemory* device) {
  if (device == nullptr) return std::make_unique<OperandsHere>();
  return std::make_unique<OperandsOnDevice>(*device);
}

}  // namespace qcts
