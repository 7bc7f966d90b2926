// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/device/device.h"

#include <array>
#include <cstdio>
#include <vector>

namespace qcts {
namespace {

std::string uuid_text(const std::array<uint8_t, 16>& bytes) {
  std::string text = "GPU-";
  char pair[3];
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    text += pair;
  }
  return text;
}

DeviceProperties read_properties(const CudaDriver& driver, int device) {
  DeviceProperties read;
  const auto attribute = [&](CuAttribute which) {
    int value = 0;
    check_cuda(driver, driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    return static_cast<uint32_t>(value);
  };
  std::array<char, 256> name{};
  check_cuda(driver, driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
             "cuDeviceGetName");
  read.name = name.data();
  std::array<uint8_t, 16> uuid{};
  check_cuda(driver, driver.cuDeviceGetUuid_v2(uuid.data(), device), "cuDeviceGetUuid");
  read.uuid = uuid_text(uuid);
  size_t memory_bytes = 0;
  check_cuda(driver, driver.cuDeviceTotalMem_v2(&memory_bytes, device), "cuDeviceTotalMem");
  read.memory_bytes = memory_bytes;
  int version = 0;
  check_cuda(driver, driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  read.driver_version = static_cast<uint32_t>(version);
  read.capability = 10 * attribute(kCuCapabilityMajor) + attribute(kCuCapabilityMinor);
  read.multiprocessors = attribute(kCuMultiprocessors);
  read.shared_bytes_per_block = attribute(kCuSharedBytesPerBlock);
  read.l2_bytes = attribute(kCuL2Bytes);
  read.has_ecc = attribute(kCuEccEnabled) != 0;
  read.is_mig = read.name.find("MIG") != read.name.npos;
  read.exports_memory = attribute(kCuVirtualMemory) != 0 && attribute(kCuExportsMemory) != 0;
  return read;
}

int device_of(const CudaDriver& driver, int ordinal) {
  int count = 0, device = 0;
  check_cuda(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count)
    throw CudaError("no GPU " + std::to_string(ordinal) + ": this machine has " + std::to_string(count));
  check_cuda(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  return device;
}

}  // namespace

DeviceProperties device_properties(const CudaDriver& driver, int ordinal) {
  return read_properties(driver, device_of(driver, ordinal));
}

Device::Device(int ordinal) : driver_(open_cuda_driver()), ordinal_(ordinal) {
  const CudaDriver& driver = *driver_;
  device_ = device_of(driver, ordinal);
  properties_ = read_properties(driver, device_);
  check_cuda(driver, driver.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  make_current();
  described_ = {.struct_size = sizeof described_,
                .flags = (properties_.has_ecc ? uint32_t{QCTS_DEVICE_ECC} : 0) |
                         (properties_.is_mig ? uint32_t{QCTS_DEVICE_MIG} : 0),
                .capability = properties_.capability,
                .multiprocessors = properties_.multiprocessors,
                .shared_bytes_per_block = properties_.shared_bytes_per_block,
                .driver_version = properties_.driver_version,
                .l2_bytes = properties_.l2_bytes,
                .memory_bytes = properties_.memory_bytes,
                .name = properties_.name.c_str()};
}

Device::~Device() { driver_->cuDevicePrimaryCtxRelease_v2(device_); }

void Device::make_current() const {
  check_cuda(*driver_, driver_->cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

CapturedWork::CapturedWork(const Device& device, CuGraph graph) : device_(device), graph_(graph) {
  try {
    instantiate();
  } catch (...) {
    device.driver().cuGraphDestroy(graph);
    throw;
  }
}

void CapturedWork::instantiate() {
  const CudaDriver& driver = device_.driver();
  size_t count = 0;
  check_cuda(driver, driver.cuGraphGetNodes(graph_, nullptr, &count), "cuGraphGetNodes");
  std::vector<CuGraphNode> nodes(count);
  check_cuda(driver, driver.cuGraphGetNodes(graph_, nodes.data(), &count), "cuGraphGetNodes");
  for (CuGraphNode node : nodes) {
    int type = -1;
    check_cuda(driver, driver.cuGraphNodeGetType(node, &type), "cuGraphNodeGetType");
    kernels_ += type == kCuKernelNode;
  }
  check_cuda(driver, driver.cuGraphInstantiateWithFlags(&instance_, graph_, 0),
             "cuGraphInstantiateWithFlags");
}

CapturedWork::~CapturedWork() {
  device_.driver().cuGraphExecDestroy(instance_);
  device_.driver().cuGraphDestroy(graph_);
}

CuResult CapturedWork::launch(CuStream stream) const {
  return device_.driver().cuGraphLaunch(instance_, stream);
}

DeviceStream::DeviceStream(const Device& device) : device_(device) {
  check_cuda(device.driver(), device.driver().cuStreamCreate(&stream_, kCuNonBlockingStream),
             "cuStreamCreate");
}

void DeviceStream::wait() const {
  check_cuda(device_.driver(), device_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

}  // namespace qcts
