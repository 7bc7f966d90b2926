// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/tensor_map.h"

#include "kernels/cuda/failure.h"

#if defined(__CUDACC__)
#include <cuda.h>
#include <cuda_runtime.h>
#else
#include <cstring>

#include "kernels/cuda/executor.h"
#endif

namespace qcts {
namespace {

// Limits of cuTensorMapEncodeTiled in the CUDA driver API.
constexpr int64_t kMaxStrideBytes = int64_t{1} << 40, kMaxExtent = int64_t{1} << 32;
constexpr uint32_t kMaxBoxRows = 256;

qcts_status check_shape(const TensorShape& s) {
  if (reinterpret_cast<uintptr_t>(s.first) % 16 != 0)
    return launch_failed("tensor map: the address %p is not a multiple of 16", s.first);
  if (s.stride_bytes <= 0 || s.stride_bytes % 16 != 0 || s.stride_bytes >= kMaxStrideBytes)
    return launch_failed("tensor map: rows %lld bytes apart; a multiple of 16 below 2^40 is possible",
                         static_cast<long long>(s.stride_bytes));
  if (s.rows < 1 || s.rows > kMaxExtent || s.columns < 1 || s.columns > kMaxExtent)
    return launch_failed("tensor map: %lld x %lld elements", static_cast<long long>(s.rows),
                         static_cast<long long>(s.columns));
  if (s.box_rows < 1 || s.box_rows > kMaxBoxRows || (s.element_bytes != 1 && s.element_bytes != 2))
    return launch_failed("tensor map: a box of %u rows of elements of %u bytes", s.box_rows, s.element_bytes);
  return QCTS_OK;
}

}  // namespace

#if defined(__CUDACC__)

qcts_status on_device::make_tensor_map(const TensorShape& shape, TensorMap* map) {
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) >= alignof(CUtensorMap));
  if (check_shape(shape) != QCTS_OK) return QCTS_FAILED;
  // The driver is not linked, so that the library loads where there is none.
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kFirstVersionWithMaps = 12000;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &entry, kFirstVersionWithMaps, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return launch_failed("tensor map: the driver has no cuTensorMapEncodeTiled (%s)",
                         cudaGetErrorString(error));
  }
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  const cuuint64_t extent[2] = {static_cast<cuuint64_t>(shape.columns), static_cast<cuuint64_t>(shape.rows)};
  const cuuint64_t stride[1] = {static_cast<cuuint64_t>(shape.stride_bytes)};
  const cuuint32_t box[2] = {kBoxRowBytes / shape.element_bytes, shape.box_rows};
  const cuuint32_t step[2] = {1, 1};
  const CUresult result = encode(
      reinterpret_cast<CUtensorMap*>(map),
      shape.element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
      const_cast<void*>(shape.first), extent, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return launch_failed("tensor map: cuTensorMapEncodeTiled returned %d", static_cast<int>(result));
  return QCTS_OK;
}

#else

// The executor's map is the shape itself.
qcts_status on_executor::make_tensor_map(const TensorShape& shape, TensorMap* map) {
  static_assert(sizeof shape <= sizeof map->opaque);
  if (check_shape(shape) != QCTS_OK) return QCTS_FAILED;
  std::memset(map, 0, sizeof *map);
  std::memcpy(map->opaque, &shape, sizeof shape);
  return QCTS_OK;
}

#endif

}  // namespace qcts
