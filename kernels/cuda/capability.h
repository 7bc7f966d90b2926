// SPDX-License-Identifier: BSD-3-Clause
// Tells which devices run the code of a variant.
#pragma once

#include <stddef.h>
#include <string.h>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Returns why kernels of the variant cannot run on the problem's device, or NULL. Code for sm80 runs on newer
// devices too; sm90a has instructions that only capability 9.0 has.
inline const char* capability_refusal(const char* variant, const qcts_problem& problem) {
  const size_t known_bytes = offsetof(qcts_problem, device_info) + sizeof problem.device_info;
  if (problem.struct_size < known_bytes || problem.device_info == nullptr)
    return "the problem does not describe its device";
  const uint32_t capability = problem.device_info->capability;
  if (strcmp(variant, "sm90a") == 0) return capability == 90 ? nullptr : "needs a device of capability 9.0";
  return capability >= 80 ? nullptr : "needs a device of capability 8.0 or newer";
}

}  // namespace qcts
