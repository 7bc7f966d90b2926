// SPDX-License-Identifier: BSD-3-Clause
// The functions of the CUDA driver API that qcts calls (cuda.h names and describes them).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "kernels/fakecuda/fake_driver.h"
#include "kernels/fakecuda/state.h"

namespace {

using namespace qcts::fakecuda;

int capability() {
  const char* given = std::getenv("QCTS_FAKECUDA_CAPABILITY");
  return given == nullptr ? 90 : std::atoi(given);
}

struct Name {
  int result;
  const char *name, *text;
};
constexpr Name kNames[] = {
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"}};

}  // namespace

QCTS_DRIVER cuInit(unsigned) { return begin("cuInit"); }

QCTS_DRIVER cuDriverGetVersion(int* version) {
  *version = 13000;
  return begin("cuDriverGetVersion");
}

QCTS_DRIVER cuDeviceGetCount(int* count) {
  *count = 1;
  return begin("cuDeviceGetCount");
}

QCTS_DRIVER cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? begin("cuDeviceGet") : int{kInvalidDevice};
}

QCTS_DRIVER cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "fake GPU of qcts");
  return begin("cuDeviceGetName");
}

QCTS_DRIVER cuDeviceGetUuid_v2(uint8_t* uuid, int) {
  for (uint8_t i = 0; i < 16; ++i) uuid[i] = i;
  return begin("cuDeviceGetUuid_v2");
}

QCTS_DRIVER cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{16} << 30;
  return begin("cuDeviceTotalMem_v2");
}

QCTS_DRIVER cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 16:
      *value = 132;
      break;  // multiprocessors
    case 32:
      *value = 1;
      break;  // ECC
    case 38:
      *value = 50 << 20;
      break;  // bytes of the L2 cache
    case 75:
      *value = capability() / 10;
      break;  // capability
    case 76:
      *value = capability() % 10;
      break;
    case 97:
      *value = 227 << 10;
      break;  // shared memory of a block
    case 102:
      *value = 1;
      break;  // virtual memory management
    case 103:
      *value = 1;
      break;  // memory as a file descriptor
    default:
      return kInvalidValue;
  }
  return begin("cuDeviceGetAttribute");
}

QCTS_DRIVER cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &state();
  return begin("cuDevicePrimaryCtxRetain");
}

QCTS_DRIVER cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }

QCTS_DRIVER cuCtxSetCurrent(void* context) {
  set_current_context(context);
  return begin("cuCtxSetCurrent");
}

QCTS_DRIVER cuCtxSynchronize() {
  if (const int result = begin("cuCtxSynchronize"); result != kSuccess) return result;
  if (const int result = refuse_in_capture(); result != kSuccess) return result;
  std::vector<Stream*> all;
  {
    const std::lock_guard lock(state().mutex);
    for (const auto& stream : state().streams) all.push_back(stream.get());
  }
  for (Stream* stream : all) drain(*stream);
  return state().sticky;
}

QCTS_DRIVER cuStreamCreate(void** stream, unsigned) {
  if (const int result = begin("cuStreamCreate"); result != kSuccess) return result;
  const std::lock_guard lock(state().mutex);
  *stream = state().streams.emplace_back(std::make_unique<Stream>()).get();
  return kSuccess;
}

QCTS_DRIVER cuStreamSynchronize(void* handle) {
  if (const int result = begin("cuStreamSynchronize"); result != kSuccess) return result;
  if (const int result = refuse_in_capture(); result != kSuccess) return result;
  Stream* const stream = stream_of(handle);
  return stream == nullptr ? int{kInvalidHandle} : drain(*stream);
}

QCTS_DRIVER cuStreamWaitValue32_v2(void* handle, uint64_t word, uint32_t value, unsigned) {
  if (const int result = begin("cuStreamWaitValue32_v2"); result != kSuccess) return result;
  const auto wait = [=]() -> const char* {
    const volatile uint32_t* const now = qcts::real_place(reinterpret_cast<uint32_t*>(word));
    while (*now < value) ::usleep(20);
    return nullptr;
  };
  return enqueue(handle, {.run = wait, .is_gate = true});
}

// The source is read at once, as a driver reads memory that is not pinned.
QCTS_DRIVER cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  if (const int result = begin("cuMemcpyHtoDAsync_v2"); result != kSuccess) return result;
  if (!is_mapped(to, bytes)) return kInvalidValue;
  const auto* first = static_cast<const std::byte*>(from);
  std::vector<std::byte> copy(first, first + bytes);
  return enqueue(stream, {[to, copy = std::move(copy)]() -> const char* {
                   std::memcpy(qcts::real_place(reinterpret_cast<void*>(to)), copy.data(), copy.size());
                   return nullptr;
                 }});
}

QCTS_DRIVER cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  if (const int result = begin("cuMemcpyDtoHAsync_v2"); result != kSuccess) return result;
  if (!is_mapped(from, bytes)) return kInvalidValue;
  return enqueue(stream, {[=]() -> const char* {
                   std::memcpy(to, qcts::real_place(reinterpret_cast<const void*>(from)), bytes);
                   return nullptr;
                 }});
}

QCTS_DRIVER cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  if (const int result = begin("cuMemcpyDtoDAsync_v2"); result != kSuccess) return result;
  if (!is_mapped(to, bytes) || !is_mapped(from, bytes)) return kInvalidValue;
  return enqueue(stream, {[=]() -> const char* {
                   std::memmove(qcts::real_place(reinterpret_cast<void*>(to)),
                                qcts::real_place(reinterpret_cast<const void*>(from)), bytes);
                   return nullptr;
                 }});
}

QCTS_DRIVER cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  if (const int result = begin("cuMemsetD8Async"); result != kSuccess) return result;
  if (!is_mapped(to, bytes)) return kInvalidValue;
  return enqueue(stream, {[=]() -> const char* {
                   std::memset(qcts::real_place(reinterpret_cast<void*>(to)), value, bytes);
                   return nullptr;
                 }});
}

QCTS_DRIVER cuGetErrorName(int result, const char** name) {
  const auto* found = std::ranges::find(kNames, result, &Name::result);
  if (found == std::end(kNames)) return kInvalidValue;
  *name = found->name;
  return kSuccess;
}

// The text of the error that sticks says more than a GPU would.
QCTS_DRIVER cuGetErrorString(int result, const char** text) {
  const auto* found = std::ranges::find(kNames, result, &Name::result);
  if (found == std::end(kNames)) return kInvalidValue;
  *text = result == state().sticky ? state().sticky_text.c_str() : found->text;
  return kSuccess;
}

QCTS_DRIVER qcts_fakecuda_enqueue(void* stream, const char* (*run)(void*), void (*drop)(void*),
                                  void* context) {
  return enqueue(stream, {[=] { return run(context); }, [=] { drop(context); }, true});
}
