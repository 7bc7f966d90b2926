// SPDX-License-Identifier: BSD-3-Clause
// Names, dtypes and shapes of the planes of quantized weights, for the families of kernels.inc.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

struct ExpectedPlane {
  const char* name;
  uint32_t dtype;
  uint32_t ndim;
  int64_t shape[4];
};
constexpr uint32_t kMaxPlanes = 5;

// Fills expected[0 .. kMaxPlanes) with the planes of `scheme` in `layout`, and returns their number.
// `scheme` is the string of a kernel, with or without policies. Returns 0 for an unknown family.
uint32_t expected_planes(const qcts_problem& problem, const char* scheme, const char* layout,
                         ExpectedPlane* expected);

// Does the same for the planes in which a checkpoint stores a scale of x.
// These planes depend on the problem's activation policy.
uint32_t expected_given_scale(const qcts_problem& problem, const char* scheme, ExpectedPlane* expected);

// Checks that the group, or the super block, divides k.
// Writes a reason of at most why_size bytes, unless it returns QCTS_OK.
qcts_status check_blocks(const qcts_problem& problem, const char* scheme, char* why, size_t why_size);

}  // namespace qcts
