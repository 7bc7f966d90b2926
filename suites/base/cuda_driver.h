// SPDX-License-Identifier: BSD-3-Clause
// The CUDA driver as a table of functions, opened at run time: nothing here needs nvcc or a GPU to build.
// QCTS_CUDA_DRIVER=FILE names a library other than libcuda.so.1, such as the fake one of kernels/fakecuda.
// Names, layouts and numbers are those of the CUDA driver API 12 and 13 (cuda.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

namespace qcts {

using CuResult = int;  // 0: success
using CuContext = void*;
using CuStream = void*;
using CuAddress = uint64_t;  // CUdeviceptr
using CuMemory = uint64_t;   // CUmemGenericAllocationHandle
using CuGraph = void*;
using CuGraphNode = void*;
using CuGraphExec = void*;  // an instantiated graph
using CuEvent = void*;

struct CuLocation {
  int type, id;  // type 1: a device
};
struct CuMemoryProperties {  // CUmemAllocationProp
  int type;                  // 1: pinned, the only one
  int handle_types;          // 1: can be exported as a file descriptor
  CuLocation location;
  void* windows_metadata;
  uint8_t flags[8];
};
struct CuAccess {  // CUmemAccessDesc
  CuLocation location;
  int flags;  // 3: read and write
};
static_assert(sizeof(CuMemoryProperties) == 32 && sizeof(CuAccess) == 12, "as in cuda.h");

inline constexpr int kCuOnDevice = 1, kCuPinned = 1, kCuFileDescriptor = 1, kCuReadWrite = 3;
inline constexpr unsigned kCuNonBlockingStream = 1;
// While a stream captures, no thread may call what cannot be captured (CU_STREAM_CAPTURE_MODE_GLOBAL).
inline constexpr int kCuCaptureGlobal = 0;
inline constexpr int kCuKernelNode = 0;  // CUgraphNodeType

// Attributes of a device (CUdevice_attribute).
enum CuAttribute : int {
  kCuMultiprocessors = 16,
  kCuEccEnabled = 32,
  kCuL2Bytes = 38,
  kCuCapabilityMajor = 75,
  kCuCapabilityMinor = 76,
  kCuSharedBytesPerBlock = 97,
  kCuVirtualMemory = 102,
  kCuExportsMemory = 103
};

struct CudaDriver {
  std::filesystem::path path;  // the file that was loaded

  CuResult (*cuInit)(unsigned flags);
  CuResult (*cuDriverGetVersion)(int* version);  // 1000 * major + 10 * minor
  CuResult (*cuDeviceGetCount)(int* count);
  CuResult (*cuDeviceGet)(int* device, int ordinal);
  CuResult (*cuDeviceGetName)(char* name, int bytes, int device);
  CuResult (*cuDeviceGetUuid_v2)(uint8_t* uuid, int device);  // 16 bytes
  CuResult (*cuDeviceTotalMem_v2)(size_t* bytes, int device);
  CuResult (*cuDeviceGetAttribute)(int* value, int attribute, int device);
  CuResult (*cuDevicePrimaryCtxRetain)(CuContext* context, int device);
  CuResult (*cuDevicePrimaryCtxRelease_v2)(int device);
  CuResult (*cuCtxSetCurrent)(CuContext context);
  CuResult (*cuCtxSynchronize)();
  CuResult (*cuStreamCreate)(CuStream* stream, unsigned flags);
  CuResult (*cuStreamSynchronize)(CuStream stream);
  // The stream goes on once the word is at least `value` (flags 0).
  CuResult (*cuStreamWaitValue32_v2)(CuStream stream, CuAddress word, uint32_t value, unsigned flags);
  CuResult (*cuMemcpyHtoDAsync_v2)(CuAddress to, const void* from, size_t bytes, CuStream stream);
  CuResult (*cuMemcpyDtoHAsync_v2)(void* to, CuAddress from, size_t bytes, CuStream stream);
  CuResult (*cuMemcpyDtoDAsync_v2)(CuAddress to, CuAddress from, size_t bytes, CuStream stream);
  CuResult (*cuMemsetD8Async)(CuAddress to, unsigned char value, size_t bytes, CuStream stream);
  CuResult (*cuEventCreate)(CuEvent* event, unsigned flags);
  CuResult (*cuEventDestroy_v2)(CuEvent event);
  CuResult (*cuEventRecord)(CuEvent event, CuStream stream);
  // The time from one event to another, both of which have happened.
  CuResult (*cuEventElapsedTime)(float* milliseconds, CuEvent start, CuEvent end);
  CuResult (*cuStreamBeginCapture_v2)(CuStream stream, int mode);
  CuResult (*cuStreamEndCapture)(CuStream stream, CuGraph* graph);
  CuResult (*cuGraphGetNodes)(CuGraph graph, CuGraphNode* nodes, size_t* count);  // nodes NULL: the count
  CuResult (*cuGraphNodeGetType)(CuGraphNode node, int* type);
  CuResult (*cuGraphInstantiateWithFlags)(CuGraphExec* instance, CuGraph graph, uint64_t flags);
  CuResult (*cuGraphLaunch)(CuGraphExec instance, CuStream stream);
  CuResult (*cuGraphExecDestroy)(CuGraphExec instance);
  CuResult (*cuGraphDestroy)(CuGraph graph);
  CuResult (*cuMemGetAllocationGranularity)(size_t* bytes, const CuMemoryProperties* properties, int option);
  CuResult (*cuMemCreate)(CuMemory* memory, size_t bytes, const CuMemoryProperties* properties,
                          uint64_t flags);
  CuResult (*cuMemRelease)(CuMemory memory);
  CuResult (*cuMemExportToShareableHandle)(void* handle, CuMemory memory, int type, uint64_t flags);
  CuResult (*cuMemImportFromShareableHandle)(CuMemory* memory, void* handle, int type);
  CuResult (*cuMemAddressReserve)(CuAddress* address, size_t bytes, size_t alignment, CuAddress wanted,
                                  uint64_t flags);
  CuResult (*cuMemAddressFree)(CuAddress address, size_t bytes);
  CuResult (*cuMemMap)(CuAddress address, size_t bytes, size_t offset, CuMemory memory, uint64_t flags);
  CuResult (*cuMemUnmap)(CuAddress address, size_t bytes);
  CuResult (*cuMemSetAccess)(CuAddress address, size_t bytes, const CuAccess* access, size_t count);
  CuResult (*cuGetErrorName)(CuResult result, const char** name);
  CuResult (*cuGetErrorString)(CuResult result, const char** text);
};

// Reports that the driver refused or failed: "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws CudaError if there is no driver, if it is too old to have one of the functions, or if it refuses.
std::shared_ptr<const CudaDriver> open_cuda_driver();

// Throws CudaError unless `result` is success. `function` is the one that returned it.
void check_cuda(const CudaDriver& driver, CuResult result, const char* function);
// Returns "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string result_text(const CudaDriver& driver, CuResult result);

}  // namespace qcts
