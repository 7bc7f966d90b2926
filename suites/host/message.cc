// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/message.h"

#include "kernels/abi/problem.h"

namespace qcts {
namespace {

uint64_t element_bytes(uint32_t dtype) {
  if (dtype == QCTS_C64) return 8;
  if (dtype == QCTS_C128) return 16;
  const uint32_t known = dtype_bytes(dtype);
  return known == 0 ? 1 : known;
}

}  // namespace

uint64_t bytes_of_plane(const qcts_plane& plane) {
  if (plane.data == nullptr) return 0;
  if (plane.ndim > 8) return UINT64_MAX;
  uint64_t bytes = element_bytes(plane.dtype);
  for (uint32_t d = 0; d < plane.ndim; ++d)
    if (plane.shape[d] < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(plane.shape[d]), &bytes))
      return UINT64_MAX;
  return bytes;
}

}  // namespace qcts
