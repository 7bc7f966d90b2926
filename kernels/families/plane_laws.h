// SPDX-License-Identifier: BSD-3-Clause
// Names, dtypes and shapes of a quantized weight's planes, for the families of kernels.inc: what a kernel
// asks of the planes that it is given, from the ABI's side.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

struct PlaneLaw {
  const char* name;
  uint32_t dtype;
  uint32_t ndim;
  int64_t shape[4];
};
constexpr uint32_t kMostPlanes = 5;

// Fills laws[0 .. kMostPlanes) with the planes of `scheme` (a kernel's, with or without policies) in
// `layout`, and returns how many there are; 0 for a family that is not known.
uint32_t plane_laws(const qcts_problem& problem, const char* scheme, const char* layout, PlaneLaw* laws);

// The same of the planes of the problem's activation policy that hold a scale of x which the checkpoint
// gives.
uint32_t given_scale_laws(const qcts_problem& problem, const char* scheme, PlaneLaw* laws);

// Elements along k that have to come together: the group, or a super block. Writes a reason of at most
// why_size bytes unless QCTS_OK.
qcts_status check_blocks(const qcts_problem& problem, const char* scheme, char* why, size_t why_size);

}  // namespace qcts
