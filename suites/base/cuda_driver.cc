// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/cuda_driver.h"

#include <cstdlib>

#include <dlfcn.h>
#include <link.h>

namespace qcts {
namespace {

constexpr const char* kUsualName = "libcuda.so.1";

std::string wanted_library() {
  const char* given = std::getenv("QCTS_CUDA_DRIVER");
  return given != nullptr && given[0] != '\0' ? given : kUsualName;
}

std::filesystem::path path_of(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(map->l_name, error);
  return error ? std::filesystem::path(map->l_name) : path;
}

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr)
    throw CudaError("the CUDA driver " + path_of(library).string() + " is too old: it has no " + name);
}

}  // namespace

std::shared_ptr<const CudaDriver> open_cuda_driver() {
  const std::string name = wanted_library();
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CudaError(std::string("no CUDA driver: ") + ::dlerror());
  auto driver = std::make_shared<CudaDriver>();
  driver->path = path_of(library);
#define QCTS_FIND(function) find(library, #function, driver->function)
  QCTS_FIND(cuInit);
  QCTS_FIND(cuDriverGetVersion);
  QCTS_FIND(cuDeviceGetCount);
  QCTS_FIND(cuDeviceGet);
  QCTS_FIND(cuDeviceGetName);
  QCTS_FIND(cuDeviceGetUuid_v2);
  QCTS_FIND(cuDeviceTotalMem_v2);
  QCTS_FIND(cuDeviceGetAttribute);
  QCTS_FIND(cuDevicePrimaryCtxRetain);
  QCTS_FIND(cuDevicePrimaryCtxRelease_v2);
  QCTS_FIND(cuCtxSetCurrent);
  QCTS_FIND(cuCtxSynchronize);
  QCTS_FIND(cuStreamCreate);
  QCTS_FIND(cuStreamSynchronize);
  QCTS_FIND(cuStreamWaitValue32_v2);
  QCTS_FIND(cuMemcpyHtoDAsync_v2);
  QCTS_FIND(cuMemcpyDtoHAsync_v2);
  QCTS_FIND(cuMemcpyDtoDAsync_v2);
  QCTS_FIND(cuMemsetD8Async);
  QCTS_FIND(cuEventCreate);
  QCTS_FIND(cuEventDestroy_v2);
  QCTS_FIND(cuEventRecord);
  QCTS_FIND(cuEventElapsedTime);
  QCTS_FIND(cuStreamBeginCapture_v2);
  QCTS_FIND(cuStreamEndCapture);
  QCTS_FIND(cuGraphGetNodes);
  QCTS_FIND(cuGraphNodeGetType);
  QCTS_FIND(cuGraphInstantiateWithFlags);
  QCTS_FIND(cuGraphLaunch);
  QCTS_FIND(cuGraphExecDestroy);
  QCTS_FIND(cuGraphDestroy);
  QCTS_FIND(cuMemGetAllocationGranularity);
  QCTS_FIND(cuMemCreate);
  QCTS_FIND(cuMemRelease);
  QCTS_FIND(cuMemExportToShareableHandle);
  QCTS_FIND(cuMemImportFromShareableHandle);
  QCTS_FIND(cuMemAddressReserve);
  QCTS_FIND(cuMemAddressFree);
  QCTS_FIND(cuMemMap);
  QCTS_FIND(cuMemUnmap);
  QCTS_FIND(cuMemSetAccess);
  QCTS_FIND(cuGetErrorName);
  QCTS_FIND(cuGetErrorString);
#undef QCTS_FIND
  check_cuda(*driver, driver->cuInit(0), "cuInit");
  return driver;
}

std::string result_text(const CudaDriver& driver, CuResult result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName(result, &name) != 0 || name == nullptr)
    return "CUDA error " + std::to_string(result);
  if (driver.cuGetErrorString(result, &text) != 0 || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

void check_cuda(const CudaDriver& driver, CuResult result, const char* function) {
  if (result != 0) throw CudaError(std::string(function) + ": " + result_text(driver, result));
}

}  // namespace qcts
