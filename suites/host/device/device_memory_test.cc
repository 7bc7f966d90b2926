// SPDX-License-Identifier: BSD-3-Clause
// Protects the way of bytes between a window and the host's device memory, on the fake device.
#include "suites/host/device/device_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace qcts {
namespace {

class DeviceMemoryTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("QCTS_CUDA_DRIVER", build_path("lib/libqcts_fakecuda.so").c_str(), 1); }
  void TearDown() override { ::unsetenv("QCTS_CUDA_DRIVER"); }

  std::array<std::byte, 8192> inputs_{}, outputs_{};  // in place of windows
};

TEST_F(DeviceMemoryTest, PropertiesAreThoseOfTheDriver) {
  const Device device(0);
  EXPECT_EQ(device.properties().name, "fake GPU of qcts");
  EXPECT_EQ(device.properties().uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(device.described().capability, 90u);
  EXPECT_EQ(device.described().flags, uint32_t{QCTS_DEVICE_ECC});
  EXPECT_STREQ(device.described().name, device.properties().name.c_str());
  EXPECT_THROW(Device(1), CudaError);
}

TEST_F(DeviceMemoryTest, BytesComeBackFromTheDevice) {
  const Device device(0);
  const DeviceMemory memory(device, inputs_.data(), outputs_.data());
  std::byte* const place = outputs_.data() + 4096;
  std::memset(place, 7, 100);
  memory.copy_to_device(place, {place, 100});
  memory.wait();
  std::memset(place, 0, 100);
  memory.copy_from_device({place, 100}, place);
  memory.wait();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(place[i], std::byte{7}) << i;
}

TEST_F(DeviceMemoryTest, BesideASlotNothingIsMapped) {
  const Device device(0);
  const DeviceMemory memory(device, inputs_.data(), outputs_.data());
  EXPECT_EQ(memory.no_guards(), "");
  const DeviceLayout& layout = memory.layout();
  ASSERT_TRUE(layout.has_guards);
  std::array<std::byte, 8> bytes{};
  for (const size_t slot : {size_t{0}, DeviceLayout::kSlots - 1}) {
    const std::byte* const first = inputs_.data() + layout.slot_offset(slot);
    const std::byte* const end = first + layout.granule_bytes;
    EXPECT_NO_THROW(memory.copy_to_device(first, bytes));
    EXPECT_NO_THROW(memory.copy_to_device(end - bytes.size(), bytes));
    EXPECT_THROW(memory.copy_to_device(first - 1, bytes), CudaError);
    EXPECT_THROW(memory.copy_to_device(end - 1, bytes), CudaError);
  }
  EXPECT_NO_THROW(memory.copy_to_device(inputs_.data() + layout.rest_offset(), bytes));
}

TEST_F(DeviceMemoryTest, AnAddressOutsideIsRefused) {
  const Device device(0);
  const DeviceMemory memory(device, inputs_.data(), outputs_.data());
  std::array<std::byte, 8> elsewhere{};
  EXPECT_THROW(memory.copy_to_device(elsewhere.data(), elsewhere), std::logic_error);
  const std::byte* const before = inputs_.data() - 8;
  EXPECT_THROW(memory.copy_to_device(before, elsewhere), std::logic_error);
}

TEST(CudaDriver, ThereIsAReasonIfThereIsNone) {
  ::setenv("QCTS_CUDA_DRIVER", "/nonexistent/libcuda.so", 1);
  try {
    open_cuda_driver();
    FAIL() << "a driver that does not exist was opened";
  } catch (const CudaError& error) {
    EXPECT_NE(std::string(error.what()).find("no CUDA driver"), std::string::npos) << error.what();
  }
  ::unsetenv("QCTS_CUDA_DRIVER");
}

}  // namespace
}  // namespace qcts
