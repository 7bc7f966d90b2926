// SPDX-License-Identifier: BSD-3-Clause
// Tells copy_box() (kernels/cuda/barrier.h) about a matrix in global memory. The host makes a map for each
// launch, since the map holds an address. It is passed by value: `const __grid_constant__ TensorMap map`.
#pragma once

#include <stdint.h>

#include "kernels/abi/qcts_kernel.h"

#if !defined(__CUDACC__)
#define __grid_constant__
#endif

namespace qcts {

// A CUtensorMap.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

// Rows of `columns` elements, `stride_bytes` apart. A copy takes box_rows rows of 128 bytes. In row r of the
// box, unit u of 16 bytes is stored at place u exclusive-or r % 8 (128-byte swizzle).
struct TensorShape {
  const void* first;     // a multiple of 16
  int64_t stride_bytes;  // a multiple of 16, below 2^40
  int64_t rows, columns;
  uint32_t element_bytes;  // 1 or 2
  uint32_t box_rows;       // 1 to 256
};
inline constexpr uint32_t kBoxRowBytes = 128;

// The two namespaces make this two functions, so that a program can have both (kernels/device_check).
#if defined(__CUDACC__)
inline namespace on_device {
#else
inline namespace on_executor {
#endif
// Returns QCTS_OK. If a requirement is not met or the driver refuses, returns QCTS_FAILED with
// last_failure().
qcts_status make_tensor_map(const TensorShape& shape, TensorMap* map);
}  // namespace

}  // namespace qcts
